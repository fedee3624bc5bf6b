// SPDX-License-Identifier: Apache-2.0
// CPU quotas from the kernel's files.
#include "base/cores.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp.h"

namespace winnow::test {
namespace {

namespace fs = std::filesystem;

/// A folder that serves as the root for the files of control groups.
class CpuQuota : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    const fs::path path = root() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  fs::path root() const { return folder_.path(); }

 private:
  TempFolder folder_;
};

TEST_F(CpuQuota, is_none_where_nothing_limits) {
  EXPECT_FALSE(cpu_quota(root()));
  write("proc/self/cgroup", "0::/user/task\n");
  EXPECT_FALSE(cpu_quota(root()));
  write("sys/fs/cgroup/user/cpu.max", "max 100000\n");
  EXPECT_FALSE(cpu_quota(root()));
}

TEST_F(CpuQuota, is_the_least_of_a_group_and_those_around_it) {
  write("proc/self/cgroup", "0::/user/task\n");
  write("sys/fs/cgroup/user/task/cpu.max", "300000 100000\n");
  EXPECT_EQ(cpu_quota(root()), 3.0);
  write("sys/fs/cgroup/user/cpu.max", "75000 50000\n");
  EXPECT_EQ(cpu_quota(root()), 1.5);
}

TEST_F(CpuQuota, of_a_container_is_at_the_root_of_what_it_sees) {
  write("proc/self/cgroup", "0::/../../docker/0123\n");
  write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(cpu_quota(root()), 0.5);
}

TEST_F(CpuQuota, of_version_1_is_in_two_files) {
  write("proc/self/cgroup", "12:cpuset:/\n4:cpu,cpuacct:/task\n1:name=systemd:/task\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/task/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu,cpuacct/task/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(cpu_quota(root()));
  write("sys/fs/cgroup/cpu,cpuacct/task/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpu_quota(root()), 2.5);
}

TEST_F(CpuQuota, that_is_no_number_is_none) {
  write("proc/self/cgroup", "nonsense\n0::/\n");
  for (const auto* text : {"", "0 100000", "100000 0", "100000", "-5 100000", "a b"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_FALSE(cpu_quota(root())) << text;
  }
}

}  // namespace
}  // namespace winnow::test
