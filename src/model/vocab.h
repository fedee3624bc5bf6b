#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/model.h"

struct llama_model;
struct llama_vocab;

namespace winnow::model {

/// A GGUF's vocabulary and chat template, by libllama. Immutable, shared by threads.
class Vocab {
 public:
  /// REQUIRES: the file has passed check_gguf(). Throws ModelError.
  explicit Vocab(const std::string& path);

  /// Tokens of some text, without BOS.
  std::vector<Token> tokenize(std::string_view text, ControlTokens control) const;
  /// BOS where the GGUF asks for it, else nothing.
  std::vector<Token> beginning() const;
  std::string piece(Token token) const;
  bool ends(Token token) const;

  /// What the chat template puts before and after the content of one user message (with `system` before it, unless it is empty), up to
  /// where the answer begins. Throws UsageError when libllama does not know the template, or there is none.
  struct Frame {
    std::string before;
    std::string after;
  };
  Frame chat_frame(const std::string& system) const;
  /// The same for a second user message after an answer that is empty: `before` ends the answer.
  Frame next_frame(const std::string& system) const;

 private:
  struct Message {
    const char* role;
    std::string content;
  };
  /// A conversation in the template's words, up to where the next answer begins.
  std::string render(const std::string& system, const std::vector<Message>& messages) const;

  struct Free {
    void operator()(llama_model* model) const;
  };
  std::string path_;
  std::unique_ptr<llama_model, Free> model_;
  const llama_vocab* vocab_ = nullptr;
};

}  // namespace winnow::model
