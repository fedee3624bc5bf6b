// Any header before a megabyte of zeros, as a model file: refused with an Error, or loaded, and then its vocabulary
// must be usable. What is behind the header is not fuzzed: no value of a weight can be wrong.
#include <string>

#include "base/log.h"
#include "fuzz/memory_file.h"
#include "winnow/error.h"
#include "winnow/model.h"

namespace {

constexpr std::size_t kZeros = std::size_t{1} << 20U;

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
  std::string bytes(data, size);
  bytes.resize(size + kZeros);
  const winnow::test::MemoryFile file(bytes);
  try {
    use_vocabulary(*winnow::Model::load(file.path()));
  } catch (const winnow::Error&) {
  }
  return 0;
}
