#include "winnow/model.h"

#include <limits>
#include <utility>

#include "base/hash.h"
#include "engine/model_impl.h"

namespace winnow {

namespace {

ModelInfo describe(const std::string& path, const model::Weights& weights) {
  const auto& h = weights.hparams();
  return {path,        h.arch,     h.name,    weights.weight_type(), h.n_layer,      h.n_embd, h.n_head,
          h.n_head_kv, h.head_dim, h.n_vocab, h.ctx_train,           weights.bytes()};
}

/// 64 contexts, as RoPE's scaling widens them; no limit where the user has set the frequencies.
std::size_t most_tokens(const model::Hparams& hparams, const ModelOptions& options) {
  constexpr double kContexts = 64;
  if (options.rope_freq_base > 0) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(kContexts * hparams.ctx_train / hparams.kinds.front().rope_freq_scale);
}

}  // namespace

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options) {
  const model::ModelFile file(path);
  auto weights = model::Weights::load(file, {options.rope_freq_base, options.rope_scaling});
  ModelInfo info = describe(path, *weights);
  const std::size_t most = most_tokens(weights->hparams(), options);
  return std::shared_ptr<const Model>(
      new Model(std::make_unique<Impl>(std::move(weights), model::Vocab(file), std::move(info), most)));
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }

std::uint64_t Model::hash() const {
  std::call_once(impl_->hashed, [this] { impl_->hash = hash_of(impl_->weights->file()); });
  return impl_->hash;
}

std::string Model::piece(Token token) const { return impl_->vocab.piece(token); }
bool Model::ends(Token token) const { return impl_->vocab.ends(token); }

}  // namespace winnow
