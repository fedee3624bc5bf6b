// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_loader.h"

#include <ggml-cpu.h>
#include <spdlog/fmt/fmt.h>

#include <numeric>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "base/format.h"
#include "base/memory.h"
#include "model/placement.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

constexpr std::size_t kAlignment = 32;  // required by ggml for tensor addresses

/// True if ggml has products with rows of this type, and a conversion to floats.
bool multiplies_by(ggml_type type) {
  return ggml_get_type_traits_cpu(type)->vec_dot != nullptr &&
         (type == GGML_TYPE_F32 || ggml_get_type_traits(type)->to_float != nullptr);
}

/// True if ggml has multi-row kernels for an expert: if rows are rounded to Q8_K and the weights are in the file's
/// layout. It multiplies repacked experts row by row.
bool has_tiles(ggml_type type) { return ggml_get_type_traits_cpu(type)->vec_dot_type == GGML_TYPE_Q8_K; }

std::size_t size_of(const ModelFile& file) {
  std::size_t out = 0;
  for (const auto& part : file.parts()) out += part.mapped->size();
  return out;
}

std::string print_shape(const TensorLoader::Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

ggml_tensor* make(ggml_context* context, const std::string& name, ggml_type type, const TensorLoader::Shape& shape) {
  ggml_tensor* const tensor = ggml_new_tensor(context, type, static_cast<int>(shape.size()), shape.data());
  return ggml_set_name(tensor, name.c_str());
}

}  // namespace

TensorLoader::TensorLoader(LoadedTensors& out, const ModelFile& file, device::Device* device)
    : out_(out),
      path_(file.path()),
      device_(device),
      repacking_(repacking_buffer_types()),
      // A prompt may need the file in the page cache beside the copies. Without room for both, experts are not
      // repacked.
      repacks_experts_(size_of(file) <= available_memory() / 2) {
  for (const auto& part : file.parts()) {
    const gguf_context* const gguf = part.gguf.get();
    if (gguf_get_alignment(gguf) % kAlignment != 0) {
      throw ModelError(fmt::format("{}: tensors are aligned to {} bytes, expected a multiple of {}", part.path,
                                   gguf_get_alignment(gguf), kAlignment));
    }
    auto* const whole =
        ggml_backend_cpu_buffer_from_ptr(const_cast<std::byte*>(part.mapped->data()), part.mapped->size());
    out_.buffers.emplace_back(whole);
    for (std::int64_t id = 0; id < gguf_get_n_tensors(gguf); ++id)
      places_[gguf_get_tensor_name(gguf, id)] = {&part, whole, id};
  }
  mapped_ = new_context();
}

ggml_tensor* TensorLoader::in_file(const std::string& name, const Shape& shape) {
  const Info info = find(name, shape);
  if (shape.size() == 1) check_f32(name, info);
  return map(name, info);
}

ggml_tensor* TensorLoader::mapped(const std::string& name, const Shape& shape) {
  return shape.size() == 1 ? mapped_f32(name, shape) : for_graphs(name, find(name, shape));
}

ggml_tensor* TensorLoader::mapped_f32(const std::string& name, const Shape& shape) {
  const Info info = find(name, shape);
  check_f32(name, info);
  return for_graphs(name, info);
}

ggml_tensor* TensorLoader::mapped_if_there(const std::string& name, const Shape& shape) {
  return has(name) ? mapped(name, shape) : nullptr;
}

std::vector<ggml_tensor*> TensorLoader::mapped_parts(const std::string& name,
                                                     const std::vector<std::int64_t>& lengths) {
  Info info = find(name, {std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0})});
  check_f32(name, info);
  std::vector<ggml_tensor*> out;
  for (const std::int64_t length : lengths) {
    info.shape = {length};
    out.push_back(for_graphs(name, info));
    info.offset += as_size(length) * sizeof(float);
  }
  return out;
}

ggml_tensor* TensorLoader::matrix(const std::string& name, std::int64_t in, std::int64_t out) {
  return place_matrix(name, find(name, {in, out}));
}

std::vector<ggml_tensor*> TensorLoader::matrices(const std::string& name, std::int64_t in,
                                                 const std::vector<std::int64_t>& outs) {
  Info info = find(name, {in, std::accumulate(outs.begin(), outs.end(), std::int64_t{0})});
  std::vector<ggml_tensor*> parts;
  std::int64_t row = 0;
  for (const std::int64_t out : outs) {
    info.shape = {in, out};
    parts.push_back(place_matrix(name, info));
    out_.first_rows[parts.back()] = row;
    row += out;
    info.offset += as_size(out) * ggml_row_size(info.type, in);
  }
  return parts;
}

ExpertMatrices TensorLoader::experts(const std::string& name, const Shape& shape) {
  const Info info = find(name, shape);
  ggml_tensor* const trial = make(mapped_, name, info.type, info.shape);
  out_.bytes_by_type[info.type] += ggml_nbytes(trial);
  if (device_ != nullptr) {
    auto* const experts = repack(name, info, device_->memory());
    return {experts, experts};
  }
  auto* const type = repacks_experts_ ? repacking_for(trial, GGML_OP_MUL_MAT_ID, repacking_) : nullptr;
  ExpertMatrices out;
  if (type != nullptr) out.of_single_rows = repack(name, info, type);
  out.of_many_rows = type == nullptr || has_tiles(info.type) ? map(name, info) : out.of_single_rows;
  if (type == nullptr) out.of_single_rows = out.of_many_rows;
  return out;
}

std::size_t TensorLoader::bytes() const {
  std::size_t out = out_.bytes;
  for (const auto& [type, place] : repacked_) out += bytes_of(type, place);
  return out;
}

std::size_t TensorLoader::bytes_of(ggml_backend_buffer_type_t type, const Repacked& place) {
  std::size_t bytes = 0;
  for (const auto& [tensor, data] : place.tensors) bytes += ggml_backend_buft_get_alloc_size(type, tensor);
  return bytes;
}

void TensorLoader::finish() {
  for (auto& [type, place] : repacked_) {
    const std::size_t bytes = bytes_of(type, place);
    const std::size_t available = device_ == nullptr ? available_memory() : device_->available();
    auto* const buffer = bytes <= available ? ggml_backend_alloc_ctx_tensors_from_buft(place.context, type) : nullptr;
    if (buffer == nullptr) {
      throw MemoryError(fmt::format("cannot allocate {} for the weights of {} ({} available)", format_bytes(bytes),
                                    path_, format_bytes(available)),
                        bytes);
    }
    if (device_ == nullptr) {
      out_.buffers.emplace_back(buffer);
    } else {
      out_.on_device.emplace_back(*device_, ggml_backend_buffer_ptr(buffer));
    }
    for (const auto& [tensor, data] : place.tensors) ggml_backend_tensor_set(tensor, data, 0, ggml_nbytes(tensor));
  }
}

std::vector<std::string> TensorLoader::unused() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : places_) {
    if (!used_.contains(name)) out.push_back(name);
  }
  return out;
}

ggml_context* TensorLoader::new_context() {
  // Room for every tensor of the file split in three, each with its trial, and a repacked copy of the embedding.
  const auto count = 6 * places_.size() + 2;
  check_memory(count * ggml_tensor_overhead(), "the list of tensors of " + path_);
  const ggml_init_params params{count * ggml_tensor_overhead(), nullptr, true};
  out_.contexts.emplace_back(ggml_init(params));
  return out_.contexts.back().get();
}

TensorLoader::Info TensorLoader::find(const std::string& name, const Shape& expected) {
  const auto at = places_.find(name);
  if (at == places_.end()) throw ModelError(fmt::format("{}: tensor {} is missing", path_, name));
  used_.insert(name);
  const auto& [part, buffer, id] = at->second;
  const gguf_context* const gguf = part->gguf.get();
  Info info{
      part, buffer, gguf_get_tensor_type(gguf, id), {}, gguf_get_data_offset(gguf) + gguf_get_tensor_offset(gguf, id)};
  const std::int64_t* const ne = gguf_get_tensor_ne(gguf, id);
  info.shape.assign(ne, ne + GGML_MAX_DIMS);
  while (info.shape.size() > expected.size() && info.shape.back() == 1) info.shape.pop_back();
  if (info.shape != expected) {
    throw ModelError(fmt::format("{}: tensor {} has the shape {}, expected {}", part->path, name,
                                 print_shape(info.shape), print_shape(expected)));
  }
  if (expected.size() > 1 && !multiplies_by(info.type)) {
    throw ModelError(fmt::format("{}: tensor {} is of type {}, for which ggml has no matrix product", part->path, name,
                                 ggml_type_name(info.type)));
  }
  return info;
}

void TensorLoader::check_f32(const std::string& name, const Info& info) const {
  if (info.type != GGML_TYPE_F32)
    throw ModelError(
        fmt::format("{}: tensor {} is of type {}, expected f32", info.part->path, name, ggml_type_name(info.type)));
}

ggml_tensor* TensorLoader::map(const std::string& name, const Info& info) {
  ggml_tensor* const tensor = make(mapped_, name, info.type, info.shape);
  ggml_backend_tensor_alloc(info.buffer, tensor, info.data());
  if (counted_.insert(info.data()).second) out_.bytes += ggml_nbytes(tensor);
  return tensor;
}

ggml_tensor* TensorLoader::for_graphs(const std::string& name, const Info& info) {
  return device_ == nullptr ? map(name, info) : repack(name, info, device_->memory());
}

ggml_tensor* TensorLoader::place_matrix(const std::string& name, const Info& info) {
  ggml_tensor* const trial = make(mapped_, name, info.type, info.shape);
  auto* const type = device_ == nullptr ? repacking_for(trial, GGML_OP_MUL_MAT, repacking_) : device_->memory();
  out_.bytes_by_type[info.type] += ggml_nbytes(trial);
  return type == nullptr ? map(name, info) : repack(name, info, type);
}

ggml_tensor* TensorLoader::repack(const std::string& name, const Info& info, ggml_backend_buffer_type_t type) {
  auto& place = repacked_[type];
  if (place.context == nullptr) place.context = new_context();
  ggml_tensor* const tensor = make(place.context, name, info.type, info.shape);
  place.tensors.emplace_back(tensor, info.data());
  out_.in_file[tensor] = info.data();
  return tensor;
}

}  // namespace winnow::model
