// SPDX-License-Identifier: Apache-2.0
#include "model/weights.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <vector>

#include "base/as_size.h"
#include "base/hash.h"
#include "model/hparams.h"
#include "model/mapped_file.h"
#include "model/rope_divisors.h"
#include "model/tensor_loader.h"
#include "winnow/error.h"

namespace winnow::model {

struct Weights::Impl {
  explicit Impl(const ModelFile& from, std::shared_ptr<device::Device> place = {})
      : path(from.path()), device(std::move(place)) {
    for (const auto& part : from.parts()) mapped.push_back(part.mapped);
  }

  std::string path;
  std::shared_ptr<device::Device> device;                 ///< outlives the tensors
  std::vector<std::shared_ptr<const MappedFile>> mapped;  ///< the file, or its parts
  Hparams hparams;
  std::vector<LayerWeights> layers;
  ggml_tensor* token_embedding = nullptr;
  ggml_tensor* layer_embedding = nullptr;
  Affine output_norm;
  Affine output;
  std::optional<RopeDivisors> rope_divisors;
  LoadedTensors tensors;
};

namespace {

/// Reads blk.N.attn_sinks.weight [H_q] of every layer if the network has learnt attention sinks. Throws ModelError if a
/// tensor is missing, has another shape or type, or has values that are not finite.
void read_sinks(TensorLoader& loader, Hparams& hparams, const std::string& path) {
  if (!hparams.architecture->sinks) return;
  for (int layer = 0; layer < hparams.n_layer; ++layer) {
    const std::string name = fmt::format("blk.{}.attn_sinks.weight", layer);
    const int heads = hparams.layer(layer).n_head;
    const auto* const logits = static_cast<const float*>(loader.in_file(name, {heads})->data);
    for (int head = 0; head < heads; ++head) {
      if (!std::isfinite(logits[head]))
        throw ModelError(fmt::format("{}: tensor {} has the value {} for head {}, expected a finite number", path, name,
                                     logits[head], head));
    }
    hparams.sink_logits.emplace_back(logits, logits + heads);
  }
}

Affine load_output(TensorLoader& loader, const Hparams& h) {
  using Output = Architecture::Output;
  const Architecture& a = *h.architecture;
  const bool own = a.output == Output::untied || (a.output == Output::tied_or_not && loader.has("output.weight"));
  return {loader.matrix(own ? "output.weight" : "token_embd.weight", h.n_embd, h.n_vocab),
          a.output_bias ? loader.mapped_if_there("output.bias", {h.n_vocab}) : nullptr};
}

/// The table of per-layer embeddings. Each layer reads its part of a row, which begins at a block boundary.
ggml_tensor* load_layer_embedding(TensorLoader& loader, const Hparams& h, const std::string& path) {
  if (h.n_embd_layer == 0) return nullptr;
  ggml_tensor* const table =
      loader.in_file("per_layer_token_embd.weight", {std::int64_t{h.n_layer} * h.n_embd_layer, h.n_vocab});
  if (const auto block = ggml_blck_size(table->type); h.n_embd_layer % block != 0) {
    throw ModelError(fmt::format(
        "{}: tensor per_layer_token_embd.weight is of type {} with blocks of {} values, but a layer's embedding has {}",
        path, ggml_type_name(table->type), block, h.n_embd_layer));
  }
  return table;
}

/// Block of a tensor by its name; -1: none.
int block_of(const std::string& name) {
  int block = -1;
  return std::sscanf(name.c_str(), "blk.%d.", &block) == 1 ? block : -1;
}

/// True for unused K and V weights of a KV-sharing layer; some files contain them.
bool is_of_unread_keys(const std::string& name, int block, const Hparams& h) {
  if (block < h.n_kv_layer || block >= h.n_layer) return false;
  const auto part = name.substr(name.find('.', name.find('.') + 1) + 1);
  return part == "attn_k.weight" || part == "attn_v.weight" || part == "attn_k_norm.weight";
}

/// Throws ModelError for unused tensors, which would change what the network computes, except in the blocks that
/// predict further tokens.
void refuse_unused(const TensorLoader& loader, const Hparams& h, const std::string& path) {
  for (const auto& name : loader.unused()) {
    const int block = block_of(name);
    if ((block >= h.n_layer && block < h.n_block) || is_of_unread_keys(name, block, h)) continue;
    throw ModelError(
        fmt::format("{}: tensor {} is not supported for the architecture {}", path, name, h.architecture->name));
  }
}

/// Places all tensors; repacked ones get no memory yet.
void place(Weights::Impl& w, TensorLoader& loader, const ModelFile& file, const ModelOptions& options) {
  w.hparams = read_hparams(file.gguf(), file.path(), options);
  auto& h = w.hparams;
  w.token_embedding = loader.in_file("token_embd.weight", {h.n_embd, h.n_vocab});
  w.output_norm = load_norm(loader, h, "output_norm");
  w.output = load_output(loader, h);
  apply_rope_factors(loader, h, file.path());
  w.rope_divisors.emplace(h, w.device.get());
  read_sinks(loader, h, file.path());
  w.layer_embedding = load_layer_embedding(loader, h, file.path());
  const auto embeddings = load_layer_embeddings(loader, h);
  for (int i = 0; i < h.n_layer; ++i)
    w.layers.push_back(load_layer(loader, h, i, embeddings.empty() ? LayerEmbedding{} : embeddings[as_size(i)]));
  refuse_unused(loader, h, file.path());
  w.tensors.bytes = loader.bytes();
}

std::string most_frequent(const std::map<ggml_type, std::size_t>& bytes_by_type) {
  const auto most = std::max_element(bytes_by_type.begin(), bytes_by_type.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string name = ggml_type_name(most->first);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace

Outline outline(const ModelFile& file, const ModelOptions& options) {
  Weights::Impl w(file);
  TensorLoader loader(w.tensors, file);
  place(w, loader, file, options);
  return {w.hparams, most_frequent(w.tensors.bytes_by_type), w.tensors.bytes};
}

Weights::Weights() = default;
Weights::~Weights() = default;

std::shared_ptr<const Weights> Weights::load(const std::string& path, const ModelOptions& options) {
  return load(ModelFile(path), options);
}

std::shared_ptr<const Weights> Weights::load(const ModelFile& file, const ModelOptions& options) {
  std::shared_ptr<Weights> weights(new Weights);
  weights->impl_ = std::make_unique<Impl>(file, options.device);
  TensorLoader loader(weights->impl_->tensors, file, weights->device());
  place(*weights->impl_, loader, file, options);
  loader.finish();
  return weights;
}

const Hparams& Weights::hparams() const { return impl_->hparams; }
device::Device* Weights::device() const { return impl_->device.get(); }
const LayerWeights& Weights::layer(int l) const { return impl_->layers[l]; }
ggml_tensor* Weights::token_embedding() const { return impl_->token_embedding; }
ggml_tensor* Weights::layer_embedding() const { return impl_->layer_embedding; }
const Affine& Weights::output_norm() const { return impl_->output_norm; }
const Affine& Weights::output() const { return impl_->output; }
ggml_tensor* Weights::rope_divisors(int layer) const {
  return impl_->rope_divisors->of_kind(impl_->hparams.kind_of[as_size(layer)]);
}
std::size_t Weights::bytes() const { return impl_->tensors.bytes; }
const std::byte* Weights::in_file(const ggml_tensor* tensor) const {
  const auto at = impl_->tensors.in_file.find(tensor);
  return at == impl_->tensors.in_file.end() ? static_cast<const std::byte*>(tensor->data) : at->second;
}
std::int64_t Weights::first_row(const ggml_tensor* tensor) const {
  const auto at = impl_->tensors.first_rows.find(tensor);
  return at == impl_->tensors.first_rows.end() ? 0 : at->second;
}
const std::string& Weights::path() const { return impl_->path; }
std::uint64_t Weights::hash_of_file() const {
  Hasher hash;
  for (const auto& part : impl_->mapped) hash.add({part->data(), part->size()});
  return hash.value();
}
std::string Weights::weight_type() const { return most_frequent(impl_->tensors.bytes_by_type); }

}  // namespace winnow::model
