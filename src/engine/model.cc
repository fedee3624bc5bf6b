#include "winnow/model.h"

#include <utility>

#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow {

namespace {

void append(std::vector<Token>& to, const std::vector<Token>& more) { to.insert(to.end(), more.begin(), more.end()); }

ModelInfo describe(const std::string& path, const model::Weights& weights) {
  const auto& h = weights.hparams();
  return {path,        h.arch,     h.name,    weights.weight_type(), h.n_layer,      h.n_embd, h.n_head,
          h.n_head_kv, h.head_dim, h.n_vocab, h.ctx_train,           weights.bytes()};
}

}  // namespace

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options) {
  auto weights = model::Weights::load(path, {options.rope_freq_base, options.rope_scaling});
  ModelInfo info = describe(path, *weights);
  return std::shared_ptr<const Model>(new Model(std::make_unique<Impl>(Impl{std::move(weights), model::Vocab(path), std::move(info)})));
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }

Prompt Model::tokenize(const PromptText& prompt) const {
  const auto& vocab = impl_->vocab;
  if (prompt.text.empty() && prompt.question.empty()) throw InputError("the prompt is empty: give a text (-f), a question (-p) or both");
  Prompt out{vocab.beginning(), {}};
  if (prompt.format == PromptFormat::raw) {
    append(out.text, vocab.tokenize(prompt.text, prompt.control));
    append(out.question, vocab.tokenize(prompt.question, prompt.control));
    return out;
  }
  // The template's own pieces hold control tokens; what the user wrote does not, unless it is asked for. A template may open with BOS
  // itself.
  const auto frame = vocab.chat_frame(prompt.system);
  const auto before = vocab.tokenize(frame.before, ControlTokens::parsed);
  if (!before.empty() && out.text == std::vector<Token>{before.front()}) out.text.clear();
  append(out.text, before);
  const std::string separator = prompt.text.empty() || prompt.question.empty() ? "" : "\n\n";
  append(out.text, vocab.tokenize(prompt.text + separator, prompt.control));
  append(out.question, vocab.tokenize(prompt.question, prompt.control));
  append(out.question, vocab.tokenize(frame.after, ControlTokens::parsed));
  return out;
}

std::vector<Token> Model::tokenize(std::string_view text) const { return impl_->vocab.tokenize(text, ControlTokens::as_text); }
std::string Model::piece(Token token) const { return impl_->vocab.piece(token); }
bool Model::ends(Token token) const { return impl_->vocab.ends(token); }

}  // namespace winnow
