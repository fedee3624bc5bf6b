// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "base/as_size.h"
#include "base/memory.h"
#include "base/worker.h"
#include "device/device.h"
#include "network/bf16_kernel.h"
#include "network/packed_set.h"

namespace winnow::network {

class ExpertRows;

/// The bf16 kernels requested by graphs so far, with their scratch memory and the first error.
class Bf16Kernels {
 public:
  Bf16Kernels(MemoryAccount& account, int threads) : account_(account), threads_(threads) {}

  int threads() const { return threads_; }
  /// The kernel of a shape, made if it is new. Also makes room for every thread to run it, plus `besides` bytes each.
  /// Null: there is no such kernel. Throws MemoryError.
  const Bf16Kernel* get(const Bf16Kernel::Shape& shape, std::size_t besides);
  /// A kernel that get() has returned.
  const Bf16Kernel& existing(const Bf16Kernel::Shape& shape) const { return *kernels_.at(shape); }
  std::byte* scratch(Worker worker) { return scratch_.data() + as_size(worker.index) * scratch_bytes_; }

  void keep_error() noexcept;
  /// Rethrows the kept error, once.
  void rethrow();

 private:
  MemoryAccount& account_;
  int threads_;
  std::map<Bf16Kernel::Shape, std::unique_ptr<Bf16Kernel>> kernels_;
  std::size_t scratch_bytes_ = 0;
  Buffer scratch_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

/// Some matrices of a model.
using WeightSet = std::unordered_set<const ggml_tensor*>;

/// How the products of a graph are computed.
struct Products {
  /// How products by packed matrices are cut into calls, independent of the number of threads.
  enum class Calls : std::uint8_t {
    of_a_prompt,  ///< blocks of 64 rows: a row's result depends on the number of rows in its block
    of_a_step,    ///< one tile of rows per call: a row's result does not depend on the number of rows
  };
  enum class Experts : std::uint8_t {
    together,    ///< all rows of an expert at once: fastest for many rows
    row_by_row,  ///< a row's result does not depend on the other rows
  };
  const PackedSet* packed = nullptr;  ///< null: nothing is packed
  Calls calls = Calls::of_a_prompt;
  const WeightSet* row_by_row = nullptr;  ///< weights by which ggml multiplies each row as if it were alone; null: none
  Experts experts = Experts::together;
  ExpertRows* later = nullptr;  ///< keeps the experts' inputs for later; null: experts multiply at once
  bool operator==(const Products&) const = default;
};

/// Product of x [inputs, rows] and weight by ggml: [outputs, rows]. The rows are put into the third dimension, so that
/// ggml uses its single-row kernel for each.
ggml_tensor* product_of_single_rows(ggml_context* context, ggml_tensor* weight, ggml_tensor* x);

/// The products of one graph with weights: by ggml's kernels, or in bf16 if the matrix is packed. The rest of the graph
/// is the same either way.
class Linear {
 public:
  /// `device`: where the graphs are computed; null: on the CPU.
  explicit Linear(Bf16Kernels& kernels, const device::Device* device = nullptr) : kernels_(kernels), device_(device) {}

  /// Begins a graph.
  void begin(const Products& products);

  /// x [inputs, rows] f32 times weight [inputs, outputs]: [outputs, rows] f32.
  ggml_tensor* product(ggml_context* context, ggml_tensor* weight, ggml_tensor* x);
  /// The same without rounding the weight, for routers: the choice between experts may be close.
  ggml_tensor* exact_product(ggml_context* context, ggml_tensor* weight, ggml_tensor* x) const;
  Products::Experts experts() const { return products_.experts; }
  bool is_on_device() const { return device_ != nullptr; }
  /// Null: experts multiply at once.
  ExpertRows* later() const { return products_.later; }

 private:
  struct Node {
    Bf16Kernels* kernels;
    const PackedMatrix* matrix;
    int rows;
    Products::Calls calls;
  };

  bool has_kernels(std::int64_t rows, std::int64_t inputs, std::int64_t outputs);
  ggml_tensor* rounded(ggml_context* context, ggml_tensor* x);
  static void round_rows(ggml_tensor* out, int index, int count, void* node);
  static void multiply(ggml_tensor* out, int index, int count, void* node);

  Bf16Kernels& kernels_;
  const device::Device* device_;
  Products products_;
  std::deque<Node> nodes_;  ///< ggml's nodes point to these
  ggml_tensor* x_ = nullptr;
  ggml_tensor* rounded_ = nullptr;  ///< x_ in bf16; several matrices share an input
};

}  // namespace winnow::network
