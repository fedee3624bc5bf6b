// SPDX-License-Identifier: Apache-2.0
#include "model/sampling_keys.h"

#include <llama.h>

#include <algorithm>
#include <limits>

#include "model/gguf_file.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

/// Reads numeric keys, and records invalid ones.
class SamplingReader {
 public:
  explicit SamplingReader(const ModelFile& file) : keys_(file.gguf(), file.path()) {}

  std::optional<float> number(llama_model_meta_key key, double least, double most) {
    const auto value = taken([&] { return keys_.number(llama_model_meta_key_str(key), least, most); });
    return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
  }
  std::optional<int> integer(llama_model_meta_key key, int least, int most) {
    return taken([&] { return keys_.integer(llama_model_meta_key_str(key), least, most); });
  }
  std::vector<std::string> unused() const { return keys_.unasked("general.sampling."); }
  std::vector<std::string> take_wrong() { return std::move(wrong_); }

 private:
  template <class Read>
  auto taken(const Read& read) -> decltype(read()) {
    try {
      return read();
    } catch (const ModelError& error) {
      wrong_.emplace_back(error.what());
      return std::nullopt;
    }
  }

  GgufKeys keys_;
  std::vector<std::string> wrong_;
};

}  // namespace

SamplingKeys sampling_keys(const ModelFile& file) {
  SamplingReader reader(file);
  SamplingKeys out;
  auto& choice = out.choice;
  choice.temperature = reader.number(LLAMA_MODEL_META_KEY_SAMPLING_TEMP, 0, 100);
  choice.top_k = reader.integer(LLAMA_MODEL_META_KEY_SAMPLING_TOP_K, -1, std::numeric_limits<int>::max());
  if (choice.top_k) choice.top_k = std::max(0, *choice.top_k);
  choice.top_p = reader.number(LLAMA_MODEL_META_KEY_SAMPLING_TOP_P, 0, 1);
  choice.min_p = reader.number(LLAMA_MODEL_META_KEY_SAMPLING_MIN_P, 0, 1);
  choice.repeat_penalty = reader.number(LLAMA_MODEL_META_KEY_SAMPLING_PENALTY_REPEAT, 0.01, 100);
  out.wrong = reader.take_wrong();
  out.unused = reader.unused();
  return out;
}

}  // namespace winnow::model
