// SPDX-License-Identifier: Apache-2.0
// Files that are replaced atomically.
#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "support/temp.h"
#include "winnow/error.h"

namespace winnow {
namespace {

namespace fs = std::filesystem;

class ReplacingFileTest : public testing::Test {
 protected:
  static void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void replace(const std::string& path, const std::string& text, Readers readers = Readers::by_umask) {
    ReplacingFile file(path, readers);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  static mode_t mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 07777U;
  }
  std::set<std::string> names() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder_ / "")) out.insert(entry.path().filename().string());
    return out;
  }
  /// Kills a process while it writes; returns the partial file that it leaves.
  std::string killed_while_writing(const std::string& path) const {
    const auto before = names();
    if (const pid_t child = fork(); child > 0) {
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status));
    } else {
      ReplacingFile file(path);
      file.write(std::as_bytes(std::span("half", 4)));
      kill(getpid(), SIGKILL);
    }
    for (const auto& name : names()) {
      if (!before.contains(name)) return name;
    }
    return "";
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "saved";
};

TEST_F(ReplacingFileTest, keeps_the_permissions_of_what_it_replaces) {
  for (const mode_t mode : {0600U, 0644U, 0660U, 0755U}) {
    put(path_, "old");
    chmod(path_.c_str(), mode);
    for (const Readers readers : {Readers::owner, Readers::by_umask}) {
      replace(path_, "new", readers);
      EXPECT_EQ(mode_of(path_), mode);
      EXPECT_EQ(text_of(path_), "new");
    }
  }
}

TEST_F(ReplacingFileTest, what_is_new_is_read_by_whom_the_writer_says) {
  const mode_t before = umask(022);
  replace(folder_ / "report", "x");
  replace(folder_ / "saved", "x", Readers::owner);
  umask(before);
  EXPECT_EQ(mode_of(folder_ / "report"), 0644U);
  EXPECT_EQ(mode_of(folder_ / "saved"), 0600U);
}

TEST_F(ReplacingFileTest, a_link_stays_a_link) {
  fs::create_directory(folder_ / "elsewhere");
  put(folder_ / "elsewhere/file", "old");
  fs::create_symlink("elsewhere/file", path_);
  replace(path_, "new");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(text_of(folder_ / "elsewhere/file"), "new");
  fs::create_symlink("nowhere", folder_ / "dangling");
  EXPECT_THROW(replace(folder_ / "dangling", "new"), InputError);
  EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
}

TEST_F(ReplacingFileTest, the_next_write_removes_what_a_kill_has_left) {
  put(path_, "old");
  const std::string part = killed_while_writing(path_);
  ASSERT_NE(part, "");
  EXPECT_EQ(text_of(path_), "old");
  replace(folder_ / "another", "x");
  EXPECT_TRUE(names().contains(part)) << "of another file's writing";
  replace(path_, "new");
  EXPECT_EQ(names(), (std::set<std::string>{"another", "saved"}));
}

TEST_F(ReplacingFileTest, nothing_else_is_removed) {
  std::set<std::string> mine{"saved.part",
                             "saved.1234.part",
                             "saved.0123456.winnow-part",
                             "saved.0123456g.winnow-part",
                             "saved.01234567.winnow-part.txt",
                             "saved_01234567.winnow-part",
                             "saved2.01234567.winnow-part",
                             "saved.kv.01234567.winnow-part"};
  for (const auto& name : mine) put(folder_ / name, "mine");
  fs::create_directory(folder_ / "saved.0000000a.winnow-part");
  fs::create_symlink("saved.part", folder_ / "saved.0000000b.winnow-part");
  mkfifo((folder_ / "saved.0000000c.winnow-part").c_str(), 0600);
  for (const char* const digit : {"a", "b", "c"}) mine.insert(std::string("saved.0000000") + digit + ".winnow-part");
  replace(path_, "new");
  mine.insert("saved");
  EXPECT_EQ(names(), mine);
}

TEST_F(ReplacingFileTest, only_a_file_of_its_kind_is_replaced) {
  const FileKind kind{"magic", "a magic file"};
  for (const char* const text : {"", "magic", "magic and more"}) {
    put(path_, text);
    EXPECT_NO_THROW(ReplacingFile(path_, Readers::by_umask, kind).commit()) << text;
  }
  for (const char* const text : {"m", "magi", "a text of mine"}) {
    put(path_, text);
    EXPECT_THROW(ReplacingFile(path_, Readers::by_umask, kind), InputError) << text;
    EXPECT_EQ(text_of(path_), text);
  }
}

TEST_F(ReplacingFileTest, two_may_write_at_once) {
  ReplacingFile first(path_);
  ReplacingFile second(path_);
  first.write(std::as_bytes(std::span("first", 5)));
  second.write(std::as_bytes(std::span("second", 6)));
  second.commit();
  EXPECT_EQ(text_of(path_), "second");
  first.commit();
  EXPECT_EQ(text_of(path_), "first");
  EXPECT_EQ(names(), std::set<std::string>{"saved"});
}

TEST_F(ReplacingFileTest, a_file_that_must_not_be_written_is_not_replaced) {
  if (geteuid() == 0) GTEST_SKIP() << "the superuser may write everything";
  put(path_, "old");
  chmod(path_.c_str(), 0400);
  EXPECT_THROW(replace(path_, "new"), InputError);
  EXPECT_EQ(text_of(path_), "old");
}

}  // namespace
}  // namespace winnow
