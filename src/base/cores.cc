// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace winnow {

namespace {

namespace fs = std::filesystem;

/// Reads `cpu.max` of version 2: "QUOTA PERIOD", or "max PERIOD".
std::optional<double> quota_v2(const fs::path& group) {
  double quota = 0;
  double period = 0;
  if (std::ifstream(group / "cpu.max") >> quota >> period && quota > 0 && period > 0) return quota / period;
  return {};
}

/// Reads the two files of version 1; a quota of -1 means none.
std::optional<double> quota_v1(const fs::path& group) {
  double quota = 0;
  double period = 0;
  if (std::ifstream(group / "cpu.cfs_quota_us") >> quota && std::ifstream(group / "cpu.cfs_period_us") >> period &&
      quota > 0 && period > 0)
    return quota / period;
  return {};
}

/// Takes the least quota of a group and its ancestors. In a container the path may be the host's and not exist.
template <typename Read>
void take_least(const fs::path& hierarchy, fs::path group, Read read, std::optional<double>& least) {
  for (;; group = group.parent_path()) {
    if (const auto quota = read(hierarchy / group.relative_path())) least = std::min(least.value_or(*quota), *quota);
    if (!group.has_relative_path()) return;
  }
}

int allowed_cores() {
#ifdef __linux__
  cpu_set_t allowed;  // too small for more than 1,024 cores; then all are counted
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
#endif
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:PATH
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) take_least(mounts, group, quota_v2, least);
    if ((',' + controllers + ',').find(",cpu,") != std::string::npos)
      take_least(mounts / controllers, group, quota_v1, least);
  }
  return least;
}

int usable_cores() {
  const auto quota = cpu_quota();
  const int cores = allowed_cores();
  return quota ? std::clamp(static_cast<int>(std::ceil(*quota)), 1, cores) : cores;
}

}  // namespace winnow
