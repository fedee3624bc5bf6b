// SPDX-License-Identifier: Apache-2.0
#include "base/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "base/as_size.h"

namespace winnow {

namespace {

struct Pages {
  std::size_t all = 0;
  std::size_t resident = 0;
};

Pages pages() {
  Pages out;
  std::ifstream("/proc/self/statm") >> out.all >> out.resident;
  return out;
}

std::size_t bytes_of(std::size_t count) { return count * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

std::size_t address_bytes() { return bytes_of(pages().all); }

std::size_t resident_bytes() { return bytes_of(pages().resident); }

std::size_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return as_size(usage.ru_maxrss) * 1024;
}

}  // namespace winnow
