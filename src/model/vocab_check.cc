// SPDX-License-Identifier: Apache-2.0
#include "model/vocab_check.h"

#include <gguf.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "base/as_size.h"
#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr std::size_t kLongestToken = 4096;  // bytes; real ones have tens

struct Expected {
  std::string_view key;
  std::uint32_t type;
  std::uint32_t element = 0;
};

/// Types with which libllama reads these keys.
constexpr std::array kExpected = {
    Expected{"tokenizer.ggml.model", GGUF_TYPE_STRING},
    Expected{"tokenizer.ggml.pre", GGUF_TYPE_STRING},
    Expected{"tokenizer.chat_template", GGUF_TYPE_STRING},
    Expected{"tokenizer.chat_template.tool_use", GGUF_TYPE_STRING},
    Expected{"tokenizer.ggml.tokens", GGUF_TYPE_ARRAY, GGUF_TYPE_STRING},
    Expected{"tokenizer.ggml.merges", GGUF_TYPE_ARRAY, GGUF_TYPE_STRING},
    Expected{"tokenizer.ggml.scores", GGUF_TYPE_ARRAY, GGUF_TYPE_FLOAT32},
    Expected{"tokenizer.ggml.token_type", GGUF_TYPE_ARRAY, GGUF_TYPE_INT32},
    Expected{"tokenizer.ggml.add_bos_token", GGUF_TYPE_BOOL},
    Expected{"tokenizer.ggml.add_eos_token", GGUF_TYPE_BOOL},
    Expected{"tokenizer.ggml.add_sep_token", GGUF_TYPE_BOOL},
    Expected{"tokenizer.ggml.add_space_prefix", GGUF_TYPE_BOOL},
    Expected{"tokenizer.ggml.remove_extra_whitespaces", GGUF_TYPE_BOOL},
    Expected{"tokenizer.ggml.suppress_tokens", GGUF_TYPE_ARRAY, GGUF_TYPE_INT32},
    Expected{"tokenizer.ggml.token_type_count", GGUF_TYPE_UINT32},
};

bool is_token_id(std::string_view key) { return key.starts_with("tokenizer.ggml.") && key.ends_with("_token_id"); }

void check_merges(const Value& merges, const std::string& path) {
  for (std::size_t i = 0; i < merges.texts.size(); ++i) {
    const auto space = merges.texts[i].find(' ', 1);
    if (merges.texts[i].size() > 2 * kLongestToken || space == std::string_view::npos ||
        space + 1 >= merges.texts[i].size()) {
      throw ModelError(fmt::format("{}: merge {} of the vocabulary is not two parts separated by a space", path, i));
    }
  }
}

void check_tokens(const std::vector<std::string_view>& tokens, const std::string& path) {
  if (tokens.empty() || tokens.size() > as_size(std::numeric_limits<std::int32_t>::max() / 2)) {
    throw ModelError(fmt::format("{}: the vocabulary has {} tokens", path, tokens.size()));
  }
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty() || tokens[i].size() > kLongestToken || tokens[i].find('\0') != std::string_view::npos) {
      throw ModelError(
          fmt::format("{}: token {} of the vocabulary has {} bytes, expected 1 to {} and none of them zero", path, i,
                      tokens[i].size(), kLongestToken));
    }
    if (!seen.insert(tokens[i]).second)
      throw ModelError(fmt::format("{}: token {} of the vocabulary occurs twice", path, i));
  }
}

/// Token texts are merged in the order of scores.
void check_scores(const Value& scores, const std::string& path) {
  for (std::uint64_t i = 0; i < scores.count; ++i) {
    float score = 0;
    std::memcpy(&score, scores.data + i * sizeof(score), sizeof(score));
    if (std::isnan(score)) throw ModelError(fmt::format("{}: the score of token {} is not a number", path, i));
  }
}

/// SentencePiece vocabularies fall back on byte tokens: without them some texts could not be tokenized.
void check_byte_tokens(const std::vector<std::string_view>& tokens, const std::string& path) {
  const std::unordered_set<std::string_view> all(tokens.begin(), tokens.end());
  for (int byte = 0; byte < 256; ++byte) {
    const std::string name = fmt::format("<0x{:02X}>", byte);
    if (!all.contains(name)) throw ModelError(fmt::format("{}: the vocabulary has no byte token {}", path, name));
  }
}

}  // namespace

void VocabularyKeys::add(const std::string& key, const Value& value, const std::string& path) {
  const auto* const expected =
      std::find_if(kExpected.begin(), kExpected.end(), [&](const Expected& e) { return e.key == key; });
  const bool wrong =
      expected != kExpected.end() &&
      (value.type != expected->type || (expected->type == GGUF_TYPE_ARRAY && value.element != expected->element));
  if (wrong || (is_token_id(key) && value.type != GGUF_TYPE_UINT32)) {
    throw ModelError(
        fmt::format("{}: key {} has the type {}, which is not possible in a vocabulary", path, brief(key), value.type));
  }
  values_.emplace(key, &value);
}

const Value* VocabularyKeys::find(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? nullptr : at->second;
}

void VocabularyKeys::check(const std::string& path) const {
  const Value* const model = find("tokenizer.ggml.model");
  if (model == nullptr) throw ModelError(fmt::format("{}: there is no vocabulary (tokenizer.ggml.model)", path));
  const std::string_view kind = model->texts.front();
  if (kind != "llama" && kind != "gpt2" && kind != "gemma4") {
    throw ModelError(fmt::format("{}: the tokenizer '{}' is not supported; winnow supports llama, gpt2 and gemma4",
                                 path, brief(kind)));
  }
  const Value* const tokens = find("tokenizer.ggml.tokens");
  if (tokens == nullptr) throw ModelError(fmt::format("{}: there is no vocabulary (tokenizer.ggml.tokens)", path));
  check_tokens(tokens->texts, path);
  if (kind != "gpt2") check_byte_tokens(tokens->texts, path);
  const Value* const merges = find("tokenizer.ggml.merges");
  if (kind != "llama" && merges == nullptr)
    throw ModelError(fmt::format("{}: the vocabulary has no merges (tokenizer.ggml.merges)", path));
  // With this tokenizer every text begins with BOS, regardless of add_bos_token, and there is no default id.
  if (kind == "gemma4" && find("tokenizer.ggml.bos_token_id") == nullptr)
    throw ModelError(
        fmt::format("{}: key tokenizer.ggml.bos_token_id is missing, but texts begin with this token", path));
  if (merges != nullptr) check_merges(*merges, path);
  for (const char* key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    const Value* const list = find(key);
    if (list != nullptr && list->count != tokens->texts.size()) {
      throw ModelError(fmt::format("{}: {} has {} elements, expected {} (one for each token)", path, key, list->count,
                                   tokens->texts.size()));
    }
  }
  if (const Value* const scores = find("tokenizer.ggml.scores"); scores != nullptr) check_scores(*scores, path);
  for (const auto& [key, value] : values_) {
    if (!is_token_id(key)) continue;
    std::uint32_t id = 0;
    std::memcpy(&id, value->data, sizeof(id));
    if (id >= tokens->texts.size())
      throw ModelError(
          fmt::format("{}: {} is {}, but there are {} tokens", path, brief(key), id, tokens->texts.size()));
  }
  constexpr std::size_t kDefaultSpecials = 12;  // default ids of special tokens in libllama
  if (tokens->texts.size() < kDefaultSpecials) {
    throw ModelError(fmt::format("{}: the vocabulary has {} tokens, expected at least {}", path, tokens->texts.size(),
                                 kDefaultSpecials));
  }
}

}  // namespace winnow::model
