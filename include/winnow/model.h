// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/conversation.h"
#include "winnow/export.h"
#include "winnow/model_options.h"
#include "winnow/prompt.h"

namespace winnow {

/// The attention of one layer.
struct LayerInfo {
  int n_head = 0;  ///< query heads
  int n_head_kv = 0;
  int head_dim = 0;
  int window = 0;  ///< tokens that a query sees, its own included; 0: all up to its own

  bool operator==(const LayerInfo&) const = default;
};

struct WINNOW_EXPORT ModelInfo {
  std::string path;
  std::string arch;         ///< GGUF's general.architecture
  std::string name;         ///< GGUF's general.name, may be empty
  std::string weight_type;  ///< most frequent type of the matrices, such as `q4_1`
  int n_layer = 0;
  int n_embd = 0;
  int n_head = 0;  ///< of the first layer, as the next two; `layers` has all
  int n_head_kv = 0;
  int head_dim = 0;
  int n_expert = 0;       ///< of the first layer; 0: its feed-forward part is one
  int n_expert_used = 0;  ///< of them by each token
  int n_vocab = 0;
  int ctx_train = 0;                   ///< tokens that it was trained with, as its file says
  int context = 0;                     ///< tokens that it reads: more than ctx_train where RoPE is scaled
  std::size_t n_params = 0;            ///< elements of all tensors
  std::size_t weight_bytes = 0;        ///< memory that the weights take
  std::size_t kv_bytes_per_token = 0;  ///< an f16 key and value of every head of every layer without a window
  std::vector<LayerInfo> layers = {};  ///< [n_layer]

  /// The largest window of a layer; 0: none has one.
  int window() const;
  int window_layers() const;
  /// Bytes of an f16 cache of everything that so many tokens leave to be seen.
  std::size_t full_cache_bytes(int tokens) const;
};

/// A model: weights and vocabulary. Immutable after load() and safe to share between threads. Its file stays mapped:
/// who cuts it ends the process by SIGBUS, unless the program handles that signal, as the command does.
class WINNOW_EXPORT Model {
 public:
  /// `path`: a GGUF file, or the first of a model's parts. Throws ModelError, MemoryError, UsageError for wrong
  /// options.
  static std::shared_ptr<const Model> load(const std::string& path, const ModelOptions& options = {});
  ~Model();

  const ModelInfo& info() const;

  /// Throws InputError for an empty prompt and for one that must have more than 64 times the tokens that the model was
  /// trained with (RoPE options widen that), UsageError for a chat template that is not known.
  Prompt tokenize(const PromptText& prompt) const;
  /// A conversation of which nothing has been said yet, and each of these as its first question: the text once for all.
  /// Throws as above.
  Prompts tokenize(const Conversation& text, std::span<const std::string> questions) const;
  /// A conversation from its beginning to where the next answer begins, or its text, ready for any question. Throws as
  /// above, and UsageError when it ends with an answer.
  std::vector<Token> tokenize(const Conversation& conversation) const;
  /// Tokens that a question adds to a conversation that has been read. Where that ends with a question, its answer is
  /// left empty. Throws InputError for a question that is too long, UsageError for a chat template that is not known.
  Turn turn(const Conversation& read, const std::string& question) const;
  /// Plain text without BOS, control names as text.
  std::vector<Token> tokenize(std::string_view text) const;
  /// Bytes of one token; control tokens give none. Concatenated pieces are the text, which need not be valid UTF-8 at
  /// every cut.
  std::string piece(Token token) const;
  /// Whether generation ends with this token.
  bool ends(Token token) const;
  /// Identity of this model: a hash of the whole file, or of all its parts. Computed at the first call, 0.3
  /// s for a GB that is in memory.
  std::uint64_t hash() const;

  struct WINNOW_NO_EXPORT Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
