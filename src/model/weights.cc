// SPDX-License-Identifier: Apache-2.0
#include "model/weights.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "base/format.h"
#include "base/memory.h"
#include "model/gguf_file.h"
#include "model/mapped_file.h"
#include "model/placement.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr std::size_t kAlignment = 32;  // what ggml asks of a tensor's address

struct TensorInfo {
  ggml_type type;
  std::vector<std::int64_t> shape;
  std::size_t offset;  ///< in the file
};

/// Whether ggml has products with rows of this type, and a way to make floats of them.
bool multiplies_by(ggml_type type) {
  return ggml_get_type_traits_cpu(type)->vec_dot != nullptr &&
         (type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr);
}

std::string print_shape(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

struct Weights::Impl {
  explicit Impl(const ModelFile& from) : path(from.path()), mapped(from.mapped()), file(*mapped) {}

  std::string path;
  std::shared_ptr<const MappedFile> mapped;
  const MappedFile& file;
  Hparams hparams;
  std::vector<LayerWeights> layers;
  ggml_tensor* token_embedding = nullptr;
  ggml_tensor* output_norm = nullptr;
  ggml_tensor* output = nullptr;
  ggml_tensor* rope_factors = nullptr;
  std::map<ggml_type, std::size_t> bytes_by_type;  ///< of the matrices
  std::size_t bytes = 0;
  std::unordered_map<const ggml_tensor*, std::size_t> offsets;  ///< in the file, of what may be repacked
  std::vector<ggml_context_ptr> contexts;
  std::vector<ggml_backend_buffer_ptr> buffers;
};

namespace {

/// Takes tensors out of a file into the places where the backend wants them.
class Loader {
 public:
  Loader(Weights::Impl& out, const gguf_context* gguf, const std::string& path)
      : out_(out), gguf_(gguf), path_(path), repacking_(repacking_buffer_types()) {
    if (gguf_get_alignment(gguf) % kAlignment != 0) {
      throw ModelError(fmt::format("{}: tensors are aligned to {} bytes, expected a multiple of {}", path,
                                   gguf_get_alignment(gguf), kAlignment));
    }
    auto* const whole = ggml_backend_cpu_buffer_from_ptr(const_cast<std::byte*>(out.file.data()), out.file.size());
    out_.buffers.emplace_back(whole);
    mapped_ = {whole, new_context()};
  }

  bool has(const std::string& name) const { return gguf_find_tensor(gguf_, name.c_str()) >= 0; }

  /// A tensor that is read where it lies in the file.
  ggml_tensor* mapped(const std::string& name, const std::vector<std::int64_t>& shape) {
    const TensorInfo info = find(name, shape);
    ggml_tensor* const tensor = make(mapped_.context, name, info);
    ggml_backend_tensor_alloc(mapped_.buffer, tensor, const_cast<std::byte*>(out_.file.data()) + info.offset);
    out_.bytes += ggml_nbytes(tensor);
    return tensor;
  }

  ggml_tensor* mapped_if_there(const std::string& name, const std::vector<std::int64_t>& shape) {
    return has(name) ? mapped(name, shape) : nullptr;
  }

  /// A matrix [in, out] for products: repacked where that is faster.
  ggml_tensor* matrix(const std::string& name, const std::vector<std::int64_t>& shape) {
    const TensorInfo info = find(name, shape);
    ggml_tensor* const trial = make(mapped_.context, name, info);
    auto* const type = repacking_for(trial, repacking_);
    out_.bytes_by_type[info.type] += ggml_nbytes(trial);
    if (type == nullptr) {
      ggml_tensor* const tensor = mapped(name, shape);
      out_.offsets[tensor] = info.offset;
      return tensor;
    }
    auto& place = repacked_[type];
    if (place.context == nullptr) place.context = new_context();
    ggml_tensor* const tensor = make(place.context, name, info);
    place.tensors.emplace_back(tensor, info.offset);
    out_.offsets[tensor] = info.offset;
    return tensor;
  }

  /// Allocates and fills the repacked tensors.
  void finish() {
    for (auto& [type, place] : repacked_) {
      std::size_t bytes = 0;
      for (const auto& [tensor, offset] : place.tensors) bytes += ggml_backend_buft_get_alloc_size(type, tensor);
      auto* const buffer =
          bytes <= available_memory() ? ggml_backend_alloc_ctx_tensors_from_buft(place.context, type) : nullptr;
      if (buffer == nullptr) {
        throw MemoryError(fmt::format("cannot allocate {} for the weights of {} ({} available)", format_bytes(bytes),
                                      path_, format_bytes(available_memory())),
                          bytes);
      }
      out_.buffers.emplace_back(buffer);
      out_.bytes += ggml_backend_buffer_get_size(buffer);
      for (const auto& [tensor, offset] : place.tensors) {
        ggml_backend_tensor_set(tensor, out_.file.data() + offset, 0, ggml_nbytes(tensor));
      }
    }
  }

 private:
  struct Mapped {
    ggml_backend_buffer_t buffer = nullptr;
    ggml_context* context = nullptr;
  };
  struct Repacked {
    ggml_context* context = nullptr;
    std::vector<std::pair<ggml_tensor*, std::size_t>> tensors;
  };

  ggml_context* new_context() {
    // Room for every tensor of the file, for its trial in the mapped context, and a repacked copy of the embedding.
    const auto count = 2 * as_size(gguf_get_n_tensors(gguf_)) + 2;
    check_memory(count * ggml_tensor_overhead(), "the list of tensors of " + path_);
    const ggml_init_params params{count * ggml_tensor_overhead(), nullptr, true};
    out_.contexts.emplace_back(ggml_init(params));
    return out_.contexts.back().get();
  }

  TensorInfo find(const std::string& name, const std::vector<std::int64_t>& expected) const {
    const auto id = gguf_find_tensor(gguf_, name.c_str());
    if (id < 0) throw ModelError(fmt::format("{}: tensor {} is missing", path_, name));
    TensorInfo info{
        gguf_get_tensor_type(gguf_, id), {}, gguf_get_data_offset(gguf_) + gguf_get_tensor_offset(gguf_, id)};
    const std::int64_t* const ne = gguf_get_tensor_ne(gguf_, id);
    info.shape.assign(ne, ne + GGML_MAX_DIMS);
    while (info.shape.size() > expected.size() && info.shape.back() == 1) info.shape.pop_back();
    if (info.shape != expected) {
      throw ModelError(fmt::format("{}: tensor {} has the shape {}, expected {}", path_, name, print_shape(info.shape),
                                   print_shape(expected)));
    }
    if (expected.size() == 1 && info.type != GGML_TYPE_F32) {
      throw ModelError(
          fmt::format("{}: tensor {} is of type {}, expected f32", path_, name, ggml_type_name(info.type)));
    }
    if (expected.size() > 1 && !multiplies_by(info.type)) {
      throw ModelError(fmt::format("{}: tensor {} is of type {}, which ggml cannot multiply by", path_, name,
                                   ggml_type_name(info.type)));
    }
    return info;
  }

  static ggml_tensor* make(ggml_context* context, const std::string& name, const TensorInfo& info) {
    ggml_tensor* const tensor =
        ggml_new_tensor(context, info.type, static_cast<int>(info.shape.size()), info.shape.data());
    return ggml_set_name(tensor, name.c_str());
  }

  Weights::Impl& out_;
  const gguf_context* gguf_;
  const std::string& path_;
  std::vector<ggml_backend_buffer_type_t> repacking_;
  Mapped mapped_;
  std::map<ggml_backend_buffer_type_t, Repacked> repacked_;
};

LayerWeights load_layer(Loader& loader, const Hparams& h, int index) {
  const auto name = [index](const char* part) { return fmt::format("blk.{}.{}", index, part); };
  const std::int64_t embd = h.n_embd;
  const LayerSpec& spec = h.layer(index);
  const std::int64_t q = static_cast<std::int64_t>(spec.n_head) * spec.head_dim;
  const std::int64_t kv = static_cast<std::int64_t>(spec.n_head_kv) * spec.head_dim;
  LayerWeights w;
  w.attn_norm = loader.mapped(name("attn_norm.weight"), {embd});
  w.wq = loader.matrix(name("attn_q.weight"), {embd, q});
  w.wk = loader.matrix(name("attn_k.weight"), {embd, kv});
  w.wv = loader.matrix(name("attn_v.weight"), {embd, kv});
  w.wo = loader.matrix(name("attn_output.weight"), {q, embd});
  w.bq = loader.mapped_if_there(name("attn_q.bias"), {q});
  w.bk = loader.mapped_if_there(name("attn_k.bias"), {kv});
  w.bv = loader.mapped_if_there(name("attn_v.bias"), {kv});
  w.bo = loader.mapped_if_there(name("attn_output.bias"), {embd});
  if (h.qk_norm) {
    w.q_norm = loader.mapped(name("attn_q_norm.weight"), {spec.head_dim});
    w.k_norm = loader.mapped(name("attn_k_norm.weight"), {spec.head_dim});
  }
  w.ffn_norm = loader.mapped(name("ffn_norm.weight"), {embd});
  w.ffn_gate = loader.matrix(name("ffn_gate.weight"), {embd, spec.n_ff});
  w.ffn_up = loader.matrix(name("ffn_up.weight"), {embd, spec.n_ff});
  w.ffn_down = loader.matrix(name("ffn_down.weight"), {spec.n_ff, embd});
  return w;
}

/// One tensor is for all layers, which must rotate as many pairs as it has factors.
void divide_frequencies(Rope& rope, const ggml_tensor& factors, const std::string& path) {
  if (rope.frequency.size() != as_size(factors.ne[0]))
    throw ModelError(fmt::format("{}: tensor {} has {} factors for layers that rotate {} pairs", path,
                                 ggml_get_name(&factors), factors.ne[0], rope.frequency.size()));
  for (std::size_t i = 0; i < rope.frequency.size(); ++i) {
    const float factor = static_cast<const float*>(factors.data)[i];
    rope.frequency[i] /= factor;
    if (!(factor > 0) || !std::isfinite(rope.frequency[i]))
      throw ModelError(fmt::format("{}: tensor {} holds {}, which no frequency can be divided by", path,
                                   ggml_get_name(&factors), factor));
  }
}

}  // namespace

std::vector<const ggml_tensor*> LayerWeights::all() const {
  std::vector<const ggml_tensor*> out;
  for (const auto* const tensor :
       {attn_norm, wq, wk, wv, wo, bq, bk, bv, bo, q_norm, k_norm, ffn_norm, ffn_gate, ffn_up, ffn_down}) {
    if (tensor != nullptr) out.push_back(tensor);
  }
  return out;
}

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

  Loader loader(w, file.gguf(), file.path());
  w.token_embedding = loader.mapped("token_embd.weight", {h.n_embd, h.n_vocab});
  w.output_norm = loader.mapped("output_norm.weight", {h.n_embd});
  w.output = loader.matrix(loader.has("output.weight") ? "output.weight" : "token_embd.weight", {h.n_embd, h.n_vocab});
  w.rope_factors = loader.mapped_if_there("rope_freqs.weight", {h.kinds.front().rope.rotated_dims() / 2});
  for (int i = 0; i < h.n_layer; ++i) w.layers.push_back(load_layer(loader, h, i));
  loader.finish();

  if (w.rope_factors == nullptr) return weights;
  for (auto& kind : h.kinds) divide_frequencies(kind.rope, *w.rope_factors, file.path());
  return weights;
}

const Hparams& Weights::hparams() const { return impl_->hparams; }
const LayerWeights& Weights::layer(int l) const { return impl_->layers[l]; }
ggml_tensor* Weights::token_embedding() const { return impl_->token_embedding; }
ggml_tensor* Weights::output_norm() const { return impl_->output_norm; }
ggml_tensor* Weights::output() const { return impl_->output; }
ggml_tensor* Weights::rope_factors() const { return impl_->rope_factors; }
std::size_t Weights::bytes() const { return impl_->bytes; }
const std::byte* Weights::in_file(const ggml_tensor* tensor) const {
  const auto at = impl_->offsets.find(tensor);
  return at == impl_->offsets.end() ? static_cast<const std::byte*>(tensor->data) : impl_->file.data() + at->second;
}
const std::string& Weights::path() const { return impl_->path; }
std::span<const std::byte> Weights::file() const { return {impl_->file.data(), impl_->file.size()}; }

std::string Weights::weight_type() const {
  const auto most = std::max_element(impl_->bytes_by_type.begin(), impl_->bytes_by_type.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string name = ggml_type_name(most->first);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

}  // namespace winnow::model
