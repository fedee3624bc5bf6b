// SPDX-License-Identifier: Apache-2.0
#include "model/weights.h"

#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>
#include <vector>

#include "model/mapped_file.h"
#include "model/rope_divisors.h"
#include "model/tensor_loader.h"
#include "winnow/error.h"

namespace winnow::model {

struct Weights::Impl {
  explicit Impl(const ModelFile& from) : path(from.path()), mapped(from.mapped()), file(*mapped) {}

  std::string path;
  std::shared_ptr<const MappedFile> mapped;
  const MappedFile& file;
  Hparams hparams;
  std::vector<LayerWeights> layers;
  ggml_tensor* token_embedding = nullptr;
  Affine output_norm;
  Affine output;
  std::optional<RopeDivisors> rope_divisors;
  LoadedTensors tensors;
};

namespace {

Affine load_output(TensorLoader& loader, const Hparams& h) {
  using Output = Architecture::Output;
  const Architecture& a = *h.architecture;
  const bool own = a.output == Output::untied || (a.output == Output::tied_or_not && loader.has("output.weight"));
  return {loader.matrix(own ? "output.weight" : "token_embd.weight", h.n_embd, h.n_vocab),
          a.output_bias ? loader.mapped_if_there("output.bias", {h.n_vocab}) : nullptr};
}

/// Which block a tensor belongs to; -1: none.
int block_of(const std::string& name) {
  int block = -1;
  return std::sscanf(name.c_str(), "blk.%d.", &block) == 1 ? block : -1;
}

/// A tensor that is not used would change what the network computes, except in the blocks that predict further tokens.
void refuse_unused(const TensorLoader& loader, const Hparams& h, const std::string& path) {
  for (const auto& name : loader.unused()) {
    const int block = block_of(name);
    if (block >= h.n_layer && block < h.n_block) continue;
    throw ModelError(
        fmt::format("{}: tensor {} is not supported for the architecture {}", path, name, h.architecture->name));
  }
}

}  // namespace

Weights::Weights() = default;
Weights::~Weights() = default;

std::shared_ptr<const Weights> Weights::load(const std::string& path, const ModelOptions& options) {
  return load(ModelFile(path), options);
}

std::shared_ptr<const Weights> Weights::load(const ModelFile& file, const ModelOptions& options) {
  std::shared_ptr<Weights> weights(new Weights);
  weights->impl_ = std::make_unique<Impl>(file);
  auto& w = *weights->impl_;
  w.hparams = read_hparams(file.gguf(), file.path(), options);
  auto& h = w.hparams;

  TensorLoader loader(w.tensors, file.gguf(), w.file, file.path());
  w.token_embedding = loader.mapped("token_embd.weight", {h.n_embd, h.n_vocab});
  w.output_norm = load_norm(loader, h, "output_norm");
  w.output = load_output(loader, h);
  apply_rope_factors(loader, h, file.path());
  w.rope_divisors.emplace(h);
  for (int i = 0; i < h.n_layer; ++i) w.layers.push_back(load_layer(loader, h, i));
  refuse_unused(loader, h, file.path());
  loader.finish();
  return weights;
}

const Hparams& Weights::hparams() const { return impl_->hparams; }
const LayerWeights& Weights::layer(int l) const { return impl_->layers[l]; }
ggml_tensor* Weights::token_embedding() const { return impl_->token_embedding; }
const Affine& Weights::output_norm() const { return impl_->output_norm; }
const Affine& Weights::output() const { return impl_->output; }
ggml_tensor* Weights::rope_divisors(int layer) const {
  return impl_->rope_divisors->of_kind(impl_->hparams.kind_of[as_size(layer)]);
}
std::size_t Weights::bytes() const { return impl_->tensors.bytes; }
const std::byte* Weights::in_file(const ggml_tensor* tensor) const {
  const auto at = impl_->tensors.offsets.find(tensor);
  return at == impl_->tensors.offsets.end() ? static_cast<const std::byte*>(tensor->data)
                                            : impl_->file.data() + at->second;
}
const std::string& Weights::path() const { return impl_->path; }
std::span<const std::byte> Weights::file() const { return {impl_->file.data(), impl_->file.size()}; }

std::string Weights::weight_type() const {
  const auto& by_type = impl_->tensors.bytes_by_type;
  const auto most = std::max_element(by_type.begin(), by_type.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string name = ggml_type_name(most->first);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace winnow::model
