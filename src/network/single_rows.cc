// SPDX-License-Identifier: Apache-2.0
#include "network/single_rows.h"

#include <ggml-backend.h>
#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/as_size.h"
#include "network/packs.h"

namespace winnow::network {

namespace {

constexpr int kOutputsLookedAt = 256;                  // outputs of a matrix that are tried
constexpr int kRowCounts[] = {2, 3, 4, 7, 8, 17, 33};  // on both sides of the counts at which ggml changes kernels
constexpr int kMostRows = 33;

/// Properties by which ggml chooses a kernel, besides the number of rows.
using Kind = std::tuple<ggml_type, std::string_view, std::int64_t>;

std::string_view buffer_of(const ggml_tensor& weight) {
  return weight.buffer == nullptr ? std::string_view() : ggml_backend_buffer_name(weight.buffer);
}

/// Random rows. Every other row has halves of its quantization step, and several values of the largest magnitude, since
/// some kernels round only these differently.
void fill(std::span<float> rows, std::int64_t inputs) {
  std::mt19937 random(1);
  std::normal_distribution<float> any;
  std::uniform_int_distribution<int> halves(-253, 253);
  constexpr int kGreatestEvery = 16;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto column = i % as_size(inputs);
    if (i / as_size(inputs) % 2 == 0) {
      rows[i] = any(random);
    } else if (column % kGreatestEvery == 3) {
      rows[i] = std::copysign(127.0F, any(random));
    } else {
      rows[i] = static_cast<float>(halves(random)) / 2;
    }
  }
}

class Trial {
 public:
  Trial(MemoryAccount& account, Bf16Kernels& kernels, const std::function<void(const ComputeGraph&)>& compute,
        const ggml_tensor& weight)
      : graph_(account, kernels, 0),
        compute_(compute),
        weight_(weight),
        outputs_(std::min<std::int64_t>(kOutputsLookedAt, weight.ne[1])),
        rows_(as_size(kMostRows * weight.ne[0])),
        x_(account, rows_.size() * sizeof(float), "rows of a speed test") {
    fill(rows_, weight.ne[0]);
  }

  /// True if a row's product depends on the other rows.
  bool differs() {
    std::vector<float> alone;
    for (int row = 0; row < kMostRows; ++row) {
      const auto one = product(row, 1);
      alone.insert(alone.end(), one.begin(), one.end());
    }
    return std::any_of(std::begin(kRowCounts), std::end(kRowCounts), [&](int rows) {
      const auto together = product(0, rows);
      return std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)) != 0;
    });
  }

 private:
  std::vector<float> product(int first, int rows) {
    std::memcpy(x_.data(), rows_.data() + first * weight_.ne[0], as_size(rows * weight_.ne[0]) * sizeof(float));
    ggml_context* const context = graph_.begin();
    ggml_tensor* const x = graph_.wrap(GGML_TYPE_F32, weight_.ne[0], rows, x_.data());
    ggml_tensor* const some =
        ggml_view_2d(context, const_cast<ggml_tensor*>(&weight_), weight_.ne[0], outputs_, weight_.nb[1], 0);
    graph_.finish(ggml_mul_mat(context, some, x), rows);
    compute_(graph_);
    std::vector<float> out(as_size(outputs_ * rows));
    graph_.read_result(out);
    return out;
  }

  ComputeGraph graph_;
  const std::function<void(const ComputeGraph&)>& compute_;
  const ggml_tensor& weight_;
  std::int64_t outputs_;
  std::vector<float> rows_;
  Buffer x_;  ///< rows of a product, aligned
};

}  // namespace

WeightSet find_row_by_row(const model::Weights& weights, MemoryAccount& account, Bf16Kernels& kernels,
                          const std::function<void(const ComputeGraph&)>& compute) {
  std::map<Kind, bool> known;
  WeightSet out;
  for (const auto* const weight : all_matrices(weights)) {
    // ggml's products by AMX tiles have the same sums in the same order for one row and for several, and do not support
    // a third dimension.
    if (buffer_of(*weight) == "AMX") continue;
    const auto [kind, is_new] = known.try_emplace({weight->type, buffer_of(*weight), weight->ne[0]});
    if (is_new) kind->second = Trial(account, kernels, compute, *weight).differs();
    if (kind->second) out.insert(weight);
  }
  return out;
}

}  // namespace winnow::network
