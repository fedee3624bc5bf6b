#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace winnow {

/// Index into a model's vocabulary.
using Token = std::int32_t;

struct ModelInfo {
  std::string path;
  std::string arch;         ///< GGUF's general.architecture
  std::string name;         ///< GGUF's general.name, may be empty
  std::string weight_type;  ///< most frequent type of the matrices, such as `q4_1`
  int n_layer = 0;
  int n_embd = 0;
  int n_head = 0;
  int n_head_kv = 0;
  int head_dim = 0;
  int n_vocab = 0;
  int ctx_train = 0;
  std::size_t weight_bytes = 0;  ///< memory that the weights take
};

/// What a user may say against the file.
struct ModelOptions {
  float rope_freq_base = 0;  ///< 0: the file's
  std::string rope_scaling;  ///< empty: the file's; `none` or `linear:FACTOR`
};

/// Whether the names of control tokens in a user's text are text or tokens.
enum class ControlTokens : std::uint8_t { as_text, parsed };

enum class PromptFormat : std::uint8_t {
  chat,  ///< the model's chat template: text, blank line, question in one user message
  raw,   ///< the bytes of the text followed by the bytes of the question
};

struct PromptText {
  std::string text;
  std::string question;
  std::string system;  ///< empty: what the model's own template inserts
  PromptFormat format = PromptFormat::chat;
  ControlTokens control = ControlTokens::as_text;
};

/// A prompt, tokenised in two parts so that both protocols (compress before or after the question is seen) see the same tokens.
struct Prompt {
  std::vector<Token> text;
  std::vector<Token> question;  ///< with the template's closing part
};

/// Where the part of a prompt that has been read ends.
enum class Cut : std::uint8_t {
  before_question,  ///< the text, ready for any question
  after_question,   ///< the whole prompt, ready for the answer
};

/// The form in which a prompt has been read, so that what is asked of it later is appended in the same.
struct PromptForm {
  PromptFormat format = PromptFormat::chat;
  Cut cut = Cut::before_question;
  std::string system;  ///< as in PromptText
};

/// A model: weights and vocabulary. Immutable after load() and safe to share between threads.
class Model {
 public:
  /// Throws ModelError, MemoryError, or UsageError for options that cannot be.
  static std::shared_ptr<const Model> load(const std::string& path, const ModelOptions& options = {});
  ~Model();

  const ModelInfo& info() const;

  /// Throws InputError for an empty prompt, UsageError for a chat template that is not known.
  Prompt tokenize(const PromptText& prompt) const;
  /// What a prompt is before its question, the same for every question (`prompt.question` is not looked at). Throws as above.
  std::vector<Token> tokenize_text(const PromptText& prompt) const;
  /// A question about a prompt that has been read before. After a whole prompt, the chat form ends the assistant's turn, left empty, and
  /// asks in a turn of its own; without a question nothing is appended. Throws UsageError for a chat template that is not known.
  std::vector<Token> tokenize_question(const PromptForm& form, const std::string& question, ControlTokens control) const;
  /// Plain text without BOS, control names as text.
  std::vector<Token> tokenize(std::string_view text) const;
  /// Bytes of one token; control tokens give none. Concatenated pieces are the text, which need not be valid UTF-8 at every cut.
  std::string piece(Token token) const;
  /// Whether generation ends with this token.
  bool ends(Token token) const;
  /// What tells this model from others: a hash of the whole file. Computed at the first call, 0.3 s for a GB that is in memory.
  std::uint64_t hash() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
