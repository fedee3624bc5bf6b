// SPDX-License-Identifier: Apache-2.0
#include "network/linear.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/as_size.h"
#include "network/bf16_rows.h"

namespace winnow::network {

namespace {

constexpr int kTileRows = 16;   // of AMX: the rows of a product are padded to whole tiles
constexpr int kCallRows = 64;   // maximum number of rows of a kernel call
constexpr int kCallBlocks = 4;  // block columns per call that stay in the L2 cache, 256 outputs

/// Largest number of inputs that oneDNN sums in one piece, for every shape of call. It splits longer sums depending on
/// the rows and outputs of the call (2.6.3, AMX: sums over 2,048 are whole, those over 3,072 are not).
constexpr std::int64_t kWholeSums = 2048;

/// How a product is cut into calls.
struct CallSizes {
  int rows;             ///< of a call, at most
  bool outputs_by_256;  ///< else by as few groups as threads need

  CallSizes(std::int64_t inputs, Products::Calls calls)
      : rows(calls == Products::Calls::of_a_step ? kTileRows : kCallRows),
        outputs_by_256(calls == Products::Calls::of_a_step || inputs > kWholeSums) {}
};

constexpr std::int64_t padded_rows(std::int64_t rows) { return (rows + kTileRows - 1) / kTileRows * kTileRows; }

/// Calls of a product, which threads share: blocks of rows, and also groups of block columns, if there are too few
/// blocks of rows or the groups must always be the same.
class Calls {
 public:
  Calls(std::int64_t rows, std::int64_t outputs, int threads, const CallSizes& sizes)
      : rows_(static_cast<int>(rows)),
        outputs_(static_cast<int>(outputs)),
        most_rows_(sizes.rows),
        row_blocks_((rows_ + most_rows_ - 1) / most_rows_),
        blocks_((outputs_ + kBlockOutputs - 1) / kBlockOutputs),
        groups_(sizes.outputs_by_256 ? (blocks_ + kCallBlocks - 1) / kCallBlocks
                                     : std::clamp((threads + row_blocks_ - 1) / row_blocks_, 1, blocks_)) {}

  struct Call {
    int first_row;
    int rows;
    int first_output;
    int outputs;
  };
  int count() const { return row_blocks_ * groups_; }
  bool whole_rows() const { return groups_ == 1; }
  Call operator[](int i) const {
    const int row = i % row_blocks_ * most_rows_;
    const int group = i / row_blocks_;
    const int output = part(blocks_, group, groups_) * kBlockOutputs;
    return {row, std::min(most_rows_, rows_ - row), output,
            std::min(outputs_, part(blocks_, group + 1, groups_) * kBlockOutputs) - output};
  }

 private:
  int rows_;
  int outputs_;
  int most_rows_;  ///< per call
  int row_blocks_;
  int blocks_;
  int groups_;
};

std::size_t whole_lines(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

std::size_t result_bytes(const Bf16Kernel::Shape& s) {
  return whole_lines(as_size(s.rows) * as_size(s.outputs) * sizeof(float));
}

}  // namespace

const Bf16Kernel* Bf16Kernels::get(const Bf16Kernel::Shape& shape, std::size_t besides) {
  auto found = kernels_.find(shape);
  // Shapes that failed for lack of memory are tried again: no request may change the results of later ones.
  if (found == kernels_.end()) found = kernels_.emplace(shape, Bf16Kernel::make(shape)).first;
  if (found->second == nullptr) return nullptr;
  const std::size_t bytes = whole_lines(found->second->scratch_bytes()) + besides;
  if (bytes > scratch_bytes_) {
    scratch_ = Buffer();  // frees the old one first
    scratch_ = Buffer(account_, bytes * as_size(threads_), "the work space of bf16 products");
    scratch_bytes_ = bytes;
  }
  return found->second.get();
}

void Bf16Kernels::keep_error() noexcept {
  const std::lock_guard lock(mutex_);
  error_ = std::current_exception();
}

void Bf16Kernels::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

ggml_tensor* product_of_single_rows(ggml_context* context, ggml_tensor* weight, ggml_tensor* x) {
  ggml_tensor* const rows = ggml_reshape_3d(context, x, x->ne[0], 1, x->ne[1]);
  return ggml_reshape_2d(context, ggml_mul_mat(context, weight, rows), weight->ne[1], x->ne[1]);
}

void Linear::begin(const Products& products) {
  products_ = products;
  nodes_.clear();
  x_ = nullptr;
}

bool Linear::has_kernels(std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
  const Calls calls(rows, outputs, kernels_.threads(), CallSizes(inputs, products_.calls));
  for (int i = 0; i < calls.count(); ++i) {
    const Bf16Kernel::Shape shape{calls[i].rows, static_cast<int>(inputs), calls[i].outputs};
    if (kernels_.get(shape, calls.whole_rows() ? 0 : result_bytes(shape)) == nullptr) return false;
  }
  return true;
}

ggml_tensor* Linear::product(ggml_context* context, ggml_tensor* weight, ggml_tensor* x) {
  const PackedMatrix* const matrix = products_.packed == nullptr ? nullptr : products_.packed->find(weight);
  const std::int64_t rows = padded_rows(x->ne[1]);
  const std::int64_t outputs = weight->ne[1];
  if (matrix == nullptr || !has_kernels(rows, padded_inputs(x->ne[0]), outputs)) {
    const bool row_by_row = products_.row_by_row != nullptr && products_.row_by_row->contains(weight);
    return row_by_row ? product_of_single_rows(context, weight, x) : ggml_mul_mat(context, weight, x);
  }
  ggml_tensor* inputs[] = {rounded(context, x)};
  auto& node = nodes_.emplace_back(Node{&kernels_, matrix, static_cast<int>(x->ne[1]), products_.calls});
  ggml_tensor* const out =
      ggml_custom_4d(context, GGML_TYPE_F32, outputs, rows, 1, 1, inputs, 1, multiply, GGML_N_TASKS_MAX, &node);
  return rows == x->ne[1] ? out : ggml_view_2d(context, out, outputs, x->ne[1], out->nb[1], 0);
}

ggml_tensor* Linear::exact_product(ggml_context* context, ggml_tensor* weight, ggml_tensor* x) const {
  return experts() == Products::Experts::row_by_row ? product_of_single_rows(context, weight, x)
                                                    : ggml_mul_mat(context, weight, x);
}

ggml_tensor* Linear::rounded(ggml_context* context, ggml_tensor* x) {
  if (x == x_) return rounded_;
  x_ = x;
  auto& node = nodes_.emplace_back(Node{&kernels_, nullptr, static_cast<int>(x->ne[1]), products_.calls});
  rounded_ = ggml_custom_4d(context, GGML_TYPE_BF16, padded_inputs(x->ne[0]), padded_rows(x->ne[1]), 1, 1, &x, 1,
                            round_rows, GGML_N_TASKS_MAX, &node);
  return rounded_;
}

void Linear::round_rows(ggml_tensor* out, int index, int count, void* node) {
  const int rows = static_cast<Node*>(node)->rows;
  const ggml_tensor& x = *out->src[0];
  const std::ptrdiff_t padded = out->ne[0];
  auto* const to = static_cast<std::uint16_t*>(out->data);
  const int all = static_cast<int>(out->ne[1]);
  for (int row = part(all, index, count); row < part(all, index + 1, count); ++row) {
    if (row < rows) {
      round_row(reinterpret_cast<const float*>(static_cast<const std::byte*>(x.data) + as_size(row) * x.nb[1]), x.ne[0],
                padded, to + row * padded);
    } else {
      std::memset(to + row * padded, 0, as_size(padded) * sizeof(std::uint16_t));
    }
  }
}

void Linear::multiply(ggml_tensor* out, int index, int count, void* node) {
  auto& kernels = *static_cast<Node*>(node)->kernels;
  const PackedMatrix& matrix = *static_cast<Node*>(node)->matrix;
  const auto inputs = static_cast<std::ptrdiff_t>(out->src[0]->ne[0]);
  const auto outputs = static_cast<std::ptrdiff_t>(out->ne[0]);
  const auto* const x = static_cast<const std::uint16_t*>(out->src[0]->data);
  auto* const y = static_cast<float*>(out->data);
  const Calls calls(out->ne[1], out->ne[0], kernels.threads(), CallSizes(inputs, static_cast<Node*>(node)->calls));
  try {
    for (int i = part(calls.count(), index, count); i < part(calls.count(), index + 1, count); ++i) {
      const auto c = calls[i];
      const Bf16Kernel::Shape shape{c.rows, static_cast<int>(inputs), c.outputs};
      std::byte* const scratch = kernels.scratch({index, count});
      float* const to = y + c.first_row * outputs + c.first_output;
      // The library is fast only if the rows of the result are contiguous.
      const std::size_t besides = calls.whole_rows() ? 0 : result_bytes(shape);
      auto* const result = besides == 0 ? to : reinterpret_cast<float*>(scratch);
      kernels.existing(shape).run(x + c.first_row * inputs, matrix.data + c.first_output * inputs, result,
                                  scratch + besides);
      if (calls.whole_rows()) continue;
      for (int row = 0; row < c.rows; ++row)
        std::memcpy(to + row * outputs, result + static_cast<std::ptrdiff_t>(row) * c.outputs,
                    as_size(c.outputs) * sizeof(float));
    }
  } catch (...) {
    kernels.keep_error();
  }
}

}  // namespace winnow::network
