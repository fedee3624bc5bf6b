// SPDX-License-Identifier: Apache-2.0
#include "winnow/model.h"

#include <ggml.h>
#include <gguf.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/as_size.h"
#include "base/log.h"
#include "cache/element.h"
#include "chat/builtin.h"
#include "engine/model_impl.h"
#include "model/stated_info.h"
#include "winnow/describe.h"
#include "winnow/error.h"

namespace winnow {

namespace {

std::size_t parameters(const model::ModelFile& file) {
  std::size_t out = 0;
  for (const auto& part : file.parts()) {
    const gguf_context* const gguf = part.gguf.get();
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf); ++i) {
      const auto type = gguf_get_tensor_type(gguf, i);
      out += gguf_get_tensor_size(gguf, i) / ggml_type_size(type) * as_size(ggml_blck_size(type));
    }
  }
  return out;
}

/// Bytes of one token's key and value, in f16.
std::size_t kv_bytes(const LayerInfo& layer) {
  return 2 * as_size(layer.n_head_kv) * cache::row_bytes(ElementType::f16, layer.head_dim);
}

ModelInfo info_of(const model::ModelFile& file, const model::Hparams& h) {
  ModelInfo info;
  info.path = file.path();
  info.n_params = parameters(file);
  info.arch = h.architecture->name;
  info.name = h.name;
  info.n_layer = h.n_layer;
  info.n_embd = h.n_embd;
  info.n_head = h.layer(0).n_head;
  info.n_head_kv = h.layer(0).n_head_kv;
  info.head_dim = h.layer(0).head_dim;
  info.n_expert = h.layer(h.n_layer - 1).n_expert;  // the first layers may have none
  info.n_expert_used = h.layer(h.n_layer - 1).n_expert_used;
  info.n_vocab = h.n_vocab;
  info.ctx_train = h.ctx_train;
  info.context = h.context;
  for (int layer = 0; layer < h.n_layer; ++layer) {
    const auto& spec = h.layer(layer);
    info.layers.push_back({spec.n_head, spec.n_head_kv, spec.head_dim, spec.window});
    if (spec.window == 0 && layer < h.n_kv_layer) info.kv_bytes_per_token += kv_bytes(info.layers.back());
  }
  return info;
}

/// 64 times the context; unlimited if the user has set the RoPE frequency base.
std::size_t most_tokens(const model::Hparams& hparams, const ModelOptions& options) {
  constexpr double kContexts = 64;
  if (options.rope_freq_base > 0) return std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(kContexts * hparams.context);
}

}  // namespace

int ModelInfo::window() const {
  int most = 0;
  for (const auto& layer : layers) most = std::max(most, layer.window);
  return most;
}

int ModelInfo::window_layers() const {
  return static_cast<int>(std::count_if(layers.begin(), layers.end(), [](const auto& l) { return l.window > 0; }));
}

std::size_t ModelInfo::full_cache_bytes(int tokens) const {
  std::size_t bytes = 0;
  for (const auto& layer : layers)
    bytes += as_size(layer.window > 0 ? std::min(tokens, layer.window) : tokens) * kv_bytes(layer);
  return bytes;
}

ModelDescription describe_model(const std::string& path) {
  ModelDescription out;
  try {
    const model::ModelFile file(path);
    const auto outline = model::outline(file);
    const model::Vocab vocabulary(file);
    out.info = info_of(file, outline.hparams);
    out.info.weight_type = outline.weight_type;
    out.info.weight_bytes = outline.bytes;
    out.parts = static_cast<int>(file.parts().size());
    for (const auto& part : file.parts()) {
      const std::span bytes(part.mapped->data(), part.mapped->size());
      model::add_file(model::read_gguf_header(bytes, part.path), bytes.size(), out);
    }
    out.window = out.info.window();
  } catch (const ModelError& error) {
    out = model::stated_info(path);
    out.refusal = error.what();
  }
  return out;
}

std::shared_ptr<const Model> Model::load(const std::string& path, const ModelOptions& options) {
  const model::ModelFile file(path);
  auto weights = model::Weights::load(file, options);
  ModelInfo info = info_of(file, weights->hparams());
  info.weight_type = weights->weight_type();
  info.weight_bytes = weights->bytes();
  const std::size_t most = most_tokens(weights->hparams(), options);
  auto impl =
      std::make_unique<Impl>(std::move(weights), model::Vocab(file), std::move(info), model::sampling_keys(file),
                             model::read_pooling(file), most, options.chat_template);
  if (!options.chat_template.empty()) impl->chat_template();  // reports mistakes in it at once
  return std::shared_ptr<const Model>(new Model(std::move(impl)));
}

namespace {

chat::Template template_of(const Model::Impl& model) {
  const auto& vocab = model.vocab;
  const auto name_of = [&vocab](Token token) { return token < 0 ? std::string() : vocab.name(token); };
  const std::string bos = name_of(vocab.beginning_of_text());
  const std::string eos = name_of(vocab.end_of_text());
  if (!model.own_template.empty()) return {"--chat-template", {model.own_template}, bos, eos};
  const auto has_token = [&vocab](const std::string& name) {
    return vocab.tokenize(name, ControlTokens::parsed).size() == 1;
  };
  const chat::TemplateSources sources{vocab.chat_template(), vocab.tool_use_template()};
  auto opened = chat::open_template(model.info.path, sources, bos, eos, has_token);
  if (!opened.notice.empty()) log().info("{}", opened.notice);
  return std::move(opened.chat_template);
}

}  // namespace

const chat::Template& Model::Impl::chat_template() const {
  const std::scoped_lock lock(template_mutex_);
  if (!template_) template_.emplace(template_of(*this));
  return *template_;
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }
const Vocab& Model::vocab() const { return impl_->vocab; }

std::uint64_t Model::hash() const {
  std::call_once(impl_->hashed, [this] { impl_->hash = impl_->weights->hash_of_file(); });
  return impl_->hash;
}

}  // namespace winnow
