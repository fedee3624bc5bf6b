// SPDX-License-Identifier: Apache-2.0
#include "network/bf16_kernel.h"

#ifdef WINNOW_HAS_ONEDNN

#include <spdlog/fmt/fmt.h>

#include <dnnl.hpp>
#include <string>
#include <utility>

#include "base/check_memory.h"
#include "base/cpu.h"
#include "base/tile_state.h"
#include "network/bf16_rows.h"
#include "winnow/error.h"

// From libgomp, which oneDNN uses. <omp.h> belongs to the compiler, whose OpenMP may be another.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace winnow::network {

namespace {

/// Keeps oneDNN on the calling thread: the threads of a team call it side by side.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

using dnnl::matmul;
using dnnl::memory;

const dnnl::engine& cpu() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

matmul::primitive_desc describe(const Bf16Kernel::Shape& s) {
  const memory::desc x({s.rows, s.inputs}, memory::data_type::bf16, memory::dims{s.inputs, 1});
  const memory::desc w({s.inputs, s.outputs}, memory::data_type::bf16, memory::format_tag::BA16a64b2a);
  const memory::desc y({s.rows, s.outputs}, memory::data_type::f32, memory::dims{s.outputs, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(
      dnnl::scratchpad_mode::user);  // the library's own is shared by threads that share a primitive
#if DNNL_VERSION_MAJOR >= 3
  return {cpu(), x, w, y, attributes};
#else
  return {matmul::desc(x, w, y), attributes, cpu()};
#endif
}

}  // namespace

struct Bf16Kernel::Impl {
  explicit Impl(const matmul::primitive_desc& d)
      : x(d.src_desc()), w(d.weights_desc()), y(d.dst_desc()), scratch(d.scratchpad_desc()), product(d) {}
  memory::desc x;
  memory::desc w;
  memory::desc y;
  memory::desc scratch;
  matmul product;
};

bool Bf16Kernel::available() {
  static const bool has = multiplies_bf16() && make({16, kBlockInputs, kBlockOutputs}) != nullptr;
  return has;
}

const char* Bf16Kernel::library() {
  static const std::string name = [] {
    const auto* const v = dnnl::version();
    return fmt::format("oneDNN {}.{}.{}", v->major, v->minor, v->patch);
  }();
  return name.c_str();
}

std::unique_ptr<Bf16Kernel> Bf16Kernel::try_to_make(const Shape& shape) {
  constexpr std::size_t kCode = std::size_t{8} << 20U;  // oneDNN crashes if it cannot allocate memory for its code
  check_memory(kCode, "the code of a product in bf16");
  const OneThread one;  // a primitive is divided among as many threads as there are at its creation
  const TileState tiles;
  try {
    const auto description = describe(shape);
    // The library's fallbacks are plain loops, a thousand times slower.
    if (std::string(description.impl_info_str()).rfind("brg", 0) != 0) return nullptr;
    return std::unique_ptr<Bf16Kernel>(new Bf16Kernel(std::make_unique<Impl>(description)));
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw MemoryError("oneDNN has no memory for a product in bf16", kCode);
    return nullptr;
  }
}

/// Tries twice: if memory is briefly short, the library may report that it has no kernel.
std::unique_ptr<Bf16Kernel> Bf16Kernel::make(const Shape& shape) {
  auto first = try_to_make(shape);
  return first == nullptr ? try_to_make(shape) : std::move(first);
}

Bf16Kernel::Bf16Kernel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Bf16Kernel::~Bf16Kernel() = default;

std::size_t Bf16Kernel::scratch_bytes() const { return impl_->scratch.get_size(); }

void Bf16Kernel::run(const std::uint16_t* x, const std::uint16_t* packed, float* y, std::byte* scratch) const {
  const OneThread one;
  const TileState tiles;
  const auto wrap = [](const memory::desc& d, const void* data) { return memory(d, cpu(), const_cast<void*>(data)); };
  try {
    dnnl::stream stream(cpu());
    impl_->product.execute(stream, {{DNNL_ARG_SRC, wrap(impl_->x, x)},
                                    {DNNL_ARG_WEIGHTS, wrap(impl_->w, packed)},
                                    {DNNL_ARG_DST, wrap(impl_->y, y)},
                                    {DNNL_ARG_SCRATCHPAD, wrap(impl_->scratch, scratch)}});
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("oneDNN failed: {}", error.what()));
  }
}

}  // namespace winnow::network

#else

namespace winnow::network {

struct Bf16Kernel::Impl {};

bool Bf16Kernel::available() { return false; }
const char* Bf16Kernel::library() { return "no oneDNN"; }
std::unique_ptr<Bf16Kernel> Bf16Kernel::make(const Shape& /*shape*/) { return nullptr; }
Bf16Kernel::~Bf16Kernel() = default;
std::size_t Bf16Kernel::scratch_bytes() const { return 0; }
void Bf16Kernel::run(const std::uint16_t* /*x*/, const std::uint16_t* /*packed*/, float* /*y*/,
                     std::byte* /*scratch*/) const {}

}  // namespace winnow::network

#endif
