#include "winnow/model.h"

#include <utility>

#include "base/hash.h"
#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow {

namespace {

void append(std::vector<Token>& to, const std::vector<Token>& more) { to.insert(to.end(), more.begin(), more.end()); }

/// Stands between a text and a question in one message.
constexpr const char* kSeparator = "\n\n";

/// What a prompt is before its question.
std::vector<Token> text_tokens(const model::Vocab& vocab, const PromptText& prompt, const std::string& separator) {
  auto out = vocab.beginning();
  if (prompt.format == PromptFormat::raw) {
    append(out, vocab.tokenize(prompt.text, prompt.control));
    return out;
  }
  // The template's own pieces hold control tokens; what the user wrote does not, unless it is asked for. A template may open with BOS
  // itself.
  const auto before = vocab.tokenize(vocab.chat_frame(prompt.system).before, ControlTokens::parsed);
  if (!before.empty() && out == std::vector<Token>{before.front()}) out.clear();
  append(out, before);
  append(out, vocab.tokenize(prompt.text + separator, prompt.control));
  return out;
}

ModelInfo describe(const std::string& path, const model::Weights& weights) {
  const auto& h = weights.hparams();
  return {path,        h.arch,     h.name,    weights.weight_type(), h.n_layer,      h.n_embd, h.n_head,
          h.n_head_kv, h.head_dim, h.n_vocab, h.ctx_train,           weights.bytes()};
}

}  // namespace

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options) {
  auto weights = model::Weights::load(path, {options.rope_freq_base, options.rope_scaling});
  ModelInfo info = describe(path, *weights);
  return std::shared_ptr<const Model>(new Model(std::make_unique<Impl>(std::move(weights), model::Vocab(path), std::move(info))));
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }

Prompt Model::tokenize(const PromptText& prompt) const {
  if (prompt.text.empty() && prompt.question.empty()) throw InputError("the prompt is empty: give a text (-f), a question (-p) or both");
  const char* const separator = prompt.text.empty() || prompt.question.empty() ? "" : kSeparator;
  const PromptForm form{prompt.format, Cut::before_question, prompt.system};
  return {text_tokens(impl_->vocab, prompt, separator), tokenize_question(form, prompt.question, prompt.control)};
}

std::vector<Token> Model::tokenize_text(const PromptText& prompt) const {
  if (prompt.text.empty()) throw InputError("the text is empty: there is nothing to read");
  return text_tokens(impl_->vocab, prompt, kSeparator);
}

std::vector<Token> Model::tokenize_question(const PromptForm& form, const std::string& question, ControlTokens control) const {
  const auto& vocab = impl_->vocab;
  auto asked = vocab.tokenize(question, control);
  const bool whole = form.cut == Cut::after_question;
  if (form.format == PromptFormat::raw || (whole && question.empty())) return asked;
  const auto frame = whole ? vocab.next_frame(form.system) : vocab.chat_frame(form.system);
  std::vector<Token> out;
  if (whole) append(out, vocab.tokenize(frame.before, ControlTokens::parsed));
  append(out, asked);
  append(out, vocab.tokenize(frame.after, ControlTokens::parsed));
  return out;
}

std::uint64_t Model::hash() const {
  std::call_once(impl_->hashed, [this] { impl_->hash = hash_of(impl_->weights->file()); });
  return impl_->hash;
}

std::vector<Token> Model::tokenize(std::string_view text) const { return impl_->vocab.tokenize(text, ControlTokens::as_text); }
std::string Model::piece(Token token) const { return impl_->vocab.piece(token); }
bool Model::ends(Token token) const { return impl_->vocab.ends(token); }

}  // namespace winnow
