// SPDX-License-Identifier: Apache-2.0
// Record files when system calls fail: no record is lost, and the message names the error.
#include "eval/record_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "support/refusal.h"
#include "support/temp.h"

namespace {

/// Error numbers that the calls below fail with; 0: none.
struct Faults {
  int read = 0;
  std::size_t bytes_read = 0;  ///< until reads of regular files fail
  int write = 0;
  std::size_t bytes_written = 0;  ///< until writes fail
  int lock = 0;
  int sync = 0;
};
Faults faults;

int failed(int error) {
  errno = error;
  return -1;
}

/// The number of bytes that may be transferred before the error; subtracts it from `left`.
std::size_t allowed(std::size_t& left, std::size_t count) {
  const std::size_t out = std::min(left, count);
  left -= out;
  return out;
}

}  // namespace

// These replace libc's functions in this program and the libraries that it loads.
extern "C" {

ssize_t read(int fd, void* out, std::size_t count) {
  if (faults.read != 0 && (count = allowed(faults.bytes_read, count)) == 0) return failed(faults.read);
  return syscall(SYS_read, fd, out, count);
}

ssize_t pread(int fd, void* out, std::size_t count, off_t at) {
  if (faults.read != 0 && (count = allowed(faults.bytes_read, count)) == 0) return failed(faults.read);
  return syscall(SYS_pread64, fd, out, count, at);
}

ssize_t write(int fd, const void* in, std::size_t count) {
  if (faults.write != 0 && (count = allowed(faults.bytes_written, count)) == 0) return failed(faults.write);
  return syscall(SYS_write, fd, in, count);
}

int flock(int fd, int operation) noexcept {
  if (faults.lock != 0) return failed(faults.lock);
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}

int fdatasync(int fd) {
  if (faults.sync != 0) return failed(faults.sync);
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
}

namespace winnow::eval {
namespace {

constexpr int kGroups = 60;
constexpr int kOfGroup = 3;

std::vector<Record> group(int number) {
  std::vector<Record> out(kOfGroup);
  for (int i = 0; i < kOfGroup; ++i) {
    auto& record = out[i];
    record.key = {"task", std::to_string(number), "spec-" + std::to_string(i), "24", "f16", "question-aware", "00"};
    record.model_hash = "0123";
    record.group = std::to_string(number);
    record.group_size = kOfGroup;
  }
  return out;
}

class RecordFileTest : public testing::Test {
 protected:
  RecordFileTest() {
    RecordFile file(folder_ / "out", "0123");
    for (int i = 0; i < kGroups; ++i) file.add(group(i));
    bytes_ = bytes();
  }
  ~RecordFileTest() override { faults = {}; }

  std::string bytes() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string path() const { return folder_ / "out/records.jsonl"; }

  /// The error message of opening the file. Afterwards no call fails.
  std::string opening() const {
    auto said = test::refusal([&] { const RecordFile file(folder_ / "out", "0123"); });
    faults = {};
    return said;
  }

  test::TempFolder folder_;
  std::string bytes_;
};

TEST_F(RecordFileTest, a_read_that_fails_is_no_shorter_file) {
  // The read fails after the first record of a group, within it, and at once.
  for (const std::size_t length : {bytes_.find('\n', bytes_.size() / 2) + 1, bytes_.size() / 2, std::size_t{0}}) {
    faults.read = EIO;
    faults.bytes_read = length;
    const auto said = opening();
    EXPECT_NE(said.find("cannot read"), std::string::npos) << said;
    EXPECT_NE(said.find(std::strerror(EIO)), std::string::npos) << said;
    EXPECT_EQ(bytes(), bytes_) << "after " << length << " bytes";
  }
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(bytes(), bytes_);
}

TEST_F(RecordFileTest, what_cannot_be_read_is_no_empty_file) {
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  EXPECT_NE(opening().find("it is a folder"), std::string::npos);
  std::filesystem::remove(path());
  EXPECT_EQ(opening(), "");
}

TEST_F(RecordFileTest, only_the_beginning_of_a_record_is_cut) {
  for (const char* text : {"my own notes", "{\"mine\": 1}", "one line\nand one"}) {
    std::ofstream(path()) << text;
    EXPECT_NE(opening().find("is not a record"), std::string::npos) << text;
    EXPECT_EQ(bytes(), text);
  }
  std::ofstream(path()) << bytes_ << bytes_.substr(0, 20);
  EXPECT_EQ(opening(), "");
  EXPECT_EQ(bytes(), bytes_);
}

TEST_F(RecordFileTest, records_from_before_prompt_limits_are_read_by_defaults) {
  std::ofstream(path())
      << R"({"task":"niah","id":"4000/0","spec":"snapkv","budget":"256","kv_type":"f16","protocol":"question-aware",)"
         R"("model_hash":"0123","prompt_hash":"00ff","answer":"42","score":100.0,"values":{"kl":0.25},)"
         R"("labels":{"length":"4000"},"prompt_tokens":4001,"entries":256.0,"bytes_held":1024,)"
         R"("timings":{"prefill_ms":1.5,"decode_ms":2.5},"group":"g","group_size":1,"version":"0.1.0"})"
      << "\n";
  const RecordFile file(folder_ / "out", "0123");
  ASSERT_EQ(file.records().size(), 1U);
  const Record& record = file.records().front();
  EXPECT_EQ(record.key, (Key{"niah", "4000/0", "snapkv", "256", "f16", "question-aware", "00ff"}));
  EXPECT_EQ(record.score, 100);
  EXPECT_EQ(record.prompt_tokens, 4001);
  EXPECT_EQ(record.cut_tokens, 0);
  EXPECT_EQ(record.beyond_context, 0);
}

TEST_F(RecordFileTest, a_record_of_too_many_levels_is_refused) {
  const std::string text = bytes_ + R"({"task":)" + std::string(60000, '[') + std::string(60000, ']') + "}\n";
  std::ofstream(path()) << text;
  const auto said = opening();
  EXPECT_NE(said.find("line 181 is not a record: its JSON has more than 64 levels"), std::string::npos) << said;
  EXPECT_EQ(bytes(), text);
}

TEST_F(RecordFileTest, a_lock_that_cannot_be_had_is_not_another_process) {
  faults.lock = ENOLCK;
  auto said = opening();
  EXPECT_NE(said.find(std::strerror(ENOLCK)), std::string::npos) << said;
  EXPECT_EQ(said.find("another process"), std::string::npos) << said;
  const RecordFile other(folder_ / "out", "0123");
  said = opening();
  EXPECT_NE(said.find("another process is writing"), std::string::npos) << said;
}

TEST_F(RecordFileTest, a_failed_write_is_named_and_taken_back) {
  RecordFile file(folder_ / "out", "0123");
  const auto adding = [&] {
    auto said = test::refusal([&] { file.add(group(kGroups)); });
    faults = {};
    return said;
  };
  faults.sync = EIO;
  auto said = adding();
  EXPECT_NE(said.find(std::strerror(EIO)), std::string::npos) << said;
  for (const int error : {ENOSPC, EFBIG, EIO}) {
    faults.write = error;
    faults.bytes_written = 10;
    said = adding();
    EXPECT_NE(said.find(std::strerror(error)), std::string::npos) << said;
    EXPECT_EQ(bytes(), bytes_);
    EXPECT_EQ(file.records().size(), static_cast<std::size_t>(kGroups * kOfGroup));
  }
  EXPECT_EQ(adding(), "");
  EXPECT_GT(bytes().size(), bytes_.size());
}

}  // namespace
}  // namespace winnow::eval
