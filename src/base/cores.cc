#include "base/cores.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <thread>

namespace winnow {

int usable_cores() {
#ifdef __linux__
  cpu_set_t allowed;  // fails beyond 1,024 cores: then all are counted
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace winnow
