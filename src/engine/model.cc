#include "winnow/model.h"

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

}  // namespace

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options) {
  auto weights = model::Weights::load(path, {options.rope_freq_base, options.rope_scaling});
  ModelInfo info = describe(path, *weights);
  return std::shared_ptr<const Model>(
      new Model(std::make_unique<Impl>(std::move(weights), model::Vocab(path), std::move(info))));
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
