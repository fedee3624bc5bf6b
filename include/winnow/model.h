// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "winnow/conversation.h"
#include "winnow/export.h"
#include "winnow/model_options.h"
#include "winnow/prompt.h"
#include "winnow/vocab.h"

namespace winnow {

/// The attention of one layer.
struct LayerInfo {
  int n_head = 0;  ///< query heads
  int n_head_kv = 0;
  int head_dim = 0;
  int window = 0;  ///< tokens that a query sees, itself included; 0: all up to itself

  bool operator==(const LayerInfo&) const = default;
};

struct WINNOW_EXPORT ModelInfo {
  std::string path;
  std::string arch;         ///< GGUF's general.architecture
  std::string name;         ///< GGUF's general.name, may be empty
  std::string weight_type;  ///< most frequent type of the weight matrices, such as `q4_1`
  int n_layer = 0;
  int n_embd = 0;
  int n_head = 0;  ///< of the first layer, like the next two; `layers` has all
  int n_head_kv = 0;
  int head_dim = 0;
  int n_expert = 0;       ///< of the first layer; 0: dense feed-forward
  int n_expert_used = 0;  ///< experts per token
  int n_vocab = 0;
  int ctx_train = 0;                   ///< context in training, from the file
  int context = 0;                     ///< usable context: more than ctx_train if RoPE is scaled
  std::size_t n_params = 0;            ///< elements of all tensors
  std::size_t weight_bytes = 0;        ///< memory of the weights
  std::size_t kv_bytes_per_token = 0;  ///< f16 keys and values of all heads in layers without a window
  std::vector<LayerInfo> layers = {};  ///< [n_layer]

  /// The largest window of a layer; 0: no layer has one.
  int window() const;
  int window_layers() const;
  /// Bytes of the f16 full cache after `tokens` tokens; layers with windows hold at most their window.
  std::size_t full_cache_bytes(int tokens) const;
};

/// Weights and vocabulary of a model. Immutable after load() and safe to share between threads. The file stays mapped:
/// if it is truncated, the process gets SIGBUS, which the command handles and other programs should.
class WINNOW_EXPORT Model {
 public:
  /// `path`: a GGUF file, or the first part of a split model. Throws ModelError, MemoryError, and UsageError for wrong
  /// options.
  static std::shared_ptr<const Model> load(const std::string& path, const ModelOptions& options = {});
  ~Model();

  const ModelInfo& info() const;
  const Vocab& vocab() const;

  /// Throws InputError for an empty prompt and for one that is certain to exceed 64 times the model's trained context
  /// (RoPE options extend it), UsageError for an unknown chat template.
  Prompt tokenize(const PromptText& prompt) const;
  /// Tokens of a text and of several questions about it, each asked as the conversation's first message. REQUIRES:
  /// `text` has no messages. Throws as above.
  Prompts tokenize(const Conversation& text, std::span<const std::string> questions) const;
  /// Tokens of a conversation up to the beginning of the next answer or, if it has no messages, up to the place of the
  /// first question. Throws as above, and UsageError if it ends with an answer.
  std::vector<Token> tokenize(const Conversation& conversation) const;
  /// Tokens that a question adds to a conversation that was read. If the conversation ends with a question, that
  /// question gets an empty answer. Throws InputError for a question that is too long, UsageError for an unknown chat
  /// template.
  Turn turn(const Conversation& read, const std::string& question) const;
  /// Hash of the whole file, or of all parts. Computed at the first call, in 0.3 s per GB in the page cache.
  std::uint64_t hash() const;

  struct WINNOW_NO_EXPORT Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
