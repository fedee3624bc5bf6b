#pragma once

namespace winnow {

/// Cores that this process may run on, which may be fewer than the machine has (a container, taskset); at least 1.
int usable_cores();

}  // namespace winnow
