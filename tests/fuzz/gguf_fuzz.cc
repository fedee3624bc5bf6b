// Any header before a megabyte of zeros, as a model file: refused with an Error, or loaded, and then its vocabulary
// must be usable. What is behind the header is not fuzzed: no value of a weight can be wrong.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/log.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace {

constexpr off_t kZeros = off_t{1} << 20U;

/// A file in memory that has a path.
class MemoryFile {
 public:
  MemoryFile(const char* data, std::size_t size) : fd_(memfd_create("model", 0)) {
    if (fd_ < 0 || write(fd_, data, size) != static_cast<ssize_t>(size) ||
        ftruncate(fd_, static_cast<off_t>(size) + kZeros) != 0)
      std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void use_vocabulary(const winnow::Model& model) {
  for (const auto token : model.tokenize("Some words, 12 numbers \xF0\x9F\x90\x8B and <s> names.")) model.piece(token);
  winnow::PromptText prompt;
  prompt.text = "text";
  prompt.question = "question";
  prompt.control = winnow::ControlTokens::parsed;
  model.tokenize(prompt);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  const MemoryFile file(data, size);
  try {
    use_vocabulary(*winnow::Model::load(file.path()));
  } catch (const winnow::Error&) {
  }
  return 0;
}
