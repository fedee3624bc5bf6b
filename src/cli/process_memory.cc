// SPDX-License-Identifier: Apache-2.0
#include "cli/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/as_size.h"

namespace winnow::cli {

std::size_t resident_bytes() {
  std::size_t all = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * as_size(static_cast<int>(sysconf(_SC_PAGESIZE)));
}

std::size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return as_size(usage.ru_maxrss) * 1024;
}

}  // namespace winnow::cli
