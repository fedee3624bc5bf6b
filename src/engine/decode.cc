// SPDX-License-Identifier: Apache-2.0
#include "engine/decode.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

/// Where the probabilities of one row lie, [2][H_q][stride]; stride 0: its method does not look at them.
struct Watched {
  std::ptrdiff_t first = 0;
  int stride = 0;
};

/// Rows of any sequences at every layer of a step.
class LaneAttention : public network::AttentionOp {
 public:
  LaneAttention(attention::DecodeAttention& attention, const model::Hparams& hparams, std::span<const StepRow> rows,
                std::span<const Watched> watched, float* probabilities)
      : attention_(attention),
        hparams_(hparams),
        most_heads_(most_heads(hparams)),
        rows_(rows),
        watched_(watched),
        probabilities_(probabilities),
        plans_(rows.size() * as_size(most_heads_.kv)) {
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto& method = rows[row].cache->method();
      const int together = method.one_set_per_layer ? most_heads_.kv : 1;
      for (int head = 0; method.decoding.step && head < most_heads_.kv; head += together)
        stepping_.push_back({row, head, head + together});
    }
  }

  void stage(int number, const Tensors& tensors, Worker worker) noexcept override {
    switch (number) {
      case 0:
        store(tensors, worker);
        break;
      case 1:
        if (!error_) step_layer_before(tensors.layer);
        if (!error_) attention_.run(worker);
        break;
      case 2:
        if (!error_) attention_.merge(worker);
        break;
      default:
        if (!error_ && tensors.layer + 1 == hparams_.n_layer) step_heads(tensors.layer, worker);
        break;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// What tokens leave in a lane and what they read of it is a matter of that lane, so the threads take heads in turn;
  /// a sequence's rows follow one another, since what later ones read depends on earlier ones. The last thread to be
  /// done gathers what all will read.
  void store(const Tensors& tensors, Worker worker) {
    const int heads = spec_of(tensors.layer).n_head_kv;
    try {
      int task = 0;
      for (int row = 0; row < tensors.rows;) {
        const int end = end_of_sequence(row);
        const int together = rows_[row].cache->method().decoding.heads_read_alike ? heads : 1;
        for (int head = 0; head < heads; head += together) {
          if (task++ % worker.count == worker.index) store_heads(tensors, row, end, head, head + together);
        }
        row = end;
      }
    } catch (...) {
      keep_error();
    }
    if (stored_.fetch_add(1, std::memory_order_acq_rel) + 1 < worker.count) return;
    stored_.store(0, std::memory_order_relaxed);
    if (!error_) begin(tensors);
  }

  void begin(const Tensors& tensors) {
    try {
      reads_.clear();
      for (int row = 0; row < tensors.rows; ++row) read(tensors.layer, row);
      const auto& spec = spec_of(tensors.layer);
      attention_.begin(shape_of(spec), spec.rope, reads_, tensors.q, tensors.out, tensors.rows);
      to_step_.reset(static_cast<int>(stepping_.size()));
    } catch (...) {
      keep_error();
    }
  }

  void keep_error() {
    const std::lock_guard lock(error_mutex_);
    error_ = std::current_exception();
  }

  const model::LayerSpec& spec_of(int layer) const { return hparams_.layer(layer); }
  static const policy::Terms& terms(const StepRow& step, int layer) { return step.cache->terms[layer]; }

  /// Rows of one sequence stand together.
  int end_of_sequence(int row) const {
    const auto* const cache = rows_[row].cache;
    int end = row + 1;
    while (end < static_cast<int>(rows_.size()) && rows_[end].cache == cache) ++end;
    return end;
  }

  void store_heads(const Tensors& tensors, int row, int end_row, int first_head, int end_head) {
    for (; row < end_row; ++row) {
      for (int head = first_head; head < end_head; ++head) enter(tensors, row, head);
      plan(tensors, row, first_head, end_head);
    }
  }

  void enter(const Tensors& tensors, int row, int head) {
    const auto& step = rows_[row];
    const auto& spec = spec_of(tensors.layer);
    const auto dim = as_size(spec.head_dim);
    const std::size_t offset = (as_size(row) * as_size(spec.n_head_kv) + as_size(head)) * dim;
    const std::span<const float> key(tensors.k + offset, dim);
    const std::span<const float> value(tensors.v + offset, dim);
    auto& lanes = step.cache->lanes.layer(tensors.layer);
    const auto& method = step.cache->method();
    if (method.decoding.evict && lanes.length(head) >= step.cache->limit[tensors.layer][head]) {
      lanes.replace(head, method.decoding.evict.call(lanes, head, terms(step, tensors.layer)), step.position, key,
                    value);
    } else {
      lanes.append(head, step.position, key, value);
    }
  }

  std::span<cache::AttendPlan> plans_of(int row) {
    const auto heads = as_size(most_heads_.kv);
    return std::span(plans_).subspan(as_size(row) * heads, heads);
  }

  void plan(const Tensors& tensors, int row, int first_head, int end_head) {
    const auto& step = rows_[row];
    const auto& lanes = step.cache->lanes.layer(tensors.layer);
    const auto& method = step.cache->method();
    const auto plans = plans_of(row);
    for (int head = first_head; head < end_head; ++head) plans[head].clear();
    if (method.decoding.attend) {
      const auto shape = shape_of(spec_of(tensors.layer));
      const auto width = static_cast<std::ptrdiff_t>(shape.query_heads) * shape.head_dim;
      method.decoding.attend.call({tensors.layer, shape, lanes, step.position, terms(step, tensors.layer),
                                   tensors.q + row * width, first_head, end_head},
                                  plans);
    }
    for (int head = first_head; head < end_head; ++head) {
      auto& plan = plans[head];
      // Where effective positions are ranks, the query has the last one.
      const bool ranked = lanes.is_unrotated(head) && lanes.shape().has_ranks();
      const std::int64_t shift = ranked ? static_cast<std::int64_t>(lanes.entries(head)) - 1 - step.position : 0;
      if (plan.empty()) plan.push_back({0, lanes.length(head), shift});
    }
  }

  void read(int layer, int row) {
    const auto plans = plans_of(row);
    for (int head = 0; head < spec_of(layer).n_head_kv; ++head) {
      for (const auto& range : plans[head]) read_range(layer, row, head, range);
    }
  }

  void read_range(int layer, int row, int head, const cache::AttendRange& range) {
    const Watched& watched = watched_[row];
    auto* const cache = rows_[row].cache;
    const bool last = row + 1 == end_of_sequence(row);
    pieces_.clear();
    cache->lanes.layer(layer).pieces(head, range, pieces_);
    for (const auto& piece : pieces_) {
      attention::DecodeRead read{row, head, piece};
      if (watched.stride > 0) {
        read.probabilities = probabilities_of(watched, layer, head) + piece.first;
        read.probabilities_stride = watched.stride;
      }
      if (last) cache->attended += piece.entries();
      reads_.push_back(read);
    }
  }

  /// Layers in turn have one of two places: those of one are still looked at while those of the next come in.
  float* probabilities_of(const Watched& watched, int layer, int kv_head) const {
    const int group = spec_of(layer).group();
    const std::ptrdiff_t place = layer % 2 * static_cast<std::ptrdiff_t>(most_heads_.query) * watched.stride;
    return probabilities_ + watched.first + place + static_cast<std::ptrdiff_t>(kv_head) * group * watched.stride;
  }

  /// Some heads of a row, whose method sees what its query attended to.
  struct Stepping {
    std::size_t row;
    int first_head;
    int end_head;
  };

  /// What a layer's methods do with the attention that they have seen has time until the next step. It is done beside
  /// the next layer's attention, whose many small parts even out that heads are few: three heads' worth on two threads
  /// would else take the time of four.
  void step_layer_before(int layer) {
    if (layer == 0) return;
    for (int i = to_step_.take(); i >= 0; i = to_step_.take()) step_layer(layer - 1, stepping_[i]);
  }

  void step_heads(int layer, Worker worker) const {
    for (std::size_t i = as_size(worker.index); i < stepping_.size(); i += as_size(worker.count)) {
      step_layer(layer, stepping_[i]);
    }
  }

  void step_layer(int layer, const Stepping& stepping) const {
    const auto shape = shape_of(spec_of(layer));
    if (stepping.first_head >= shape.kv_heads) return;
    auto& cache = *rows_[stepping.row].cache;
    const Watched& watched = watched_[stepping.row];
    const float* const probabilities = watched.stride == 0 ? nullptr : probabilities_of(watched, layer, 0);
    cache.method().decoding.step.call({layer, shape, cache.lanes.layer(layer), rows_[stepping.row].position,
                                       terms(rows_[stepping.row], layer), cache.limit[layer], stepping.first_head,
                                       std::min(stepping.end_head, shape.kv_heads), probabilities, watched.stride});
  }

  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  MostHeads most_heads_;
  std::span<const StepRow> rows_;
  std::span<const Watched> watched_;
  float* probabilities_;
  std::vector<attention::DecodeRead> reads_;
  std::vector<cache::LanePiece> pieces_;
  std::vector<cache::AttendPlan> plans_;  ///< [rows][most KV heads of a layer]
  std::vector<Stepping> stepping_;        ///< in the layer with the most KV heads; others have some of them
  WorkQueue to_step_;
  std::atomic<int> stored_ = 0;  ///< threads that are done with storing
  std::mutex error_mutex_;
  std::exception_ptr error_;
};

/// Entries by which a layer's lanes can still grow when `count` tokens come: a per-step method's only up to its limit.
int growth(const Cache::Impl& cache, int layer, int count) {
  if (!cache.method().decoding.evict) return count;
  int most = 0;
  const auto& limits = cache.limit[layer];
  for (std::size_t head = 0; head < limits.size(); ++head) {
    most = std::max(most, limits[head] - cache.lanes.layer(layer).length(static_cast<int>(head)));
  }
  return std::min(most, count);
}

int longest_lane(const Cache::Impl& cache) {
  int most = 0;
  for (int layer = 0; layer < cache.lanes.layers(); ++layer) {
    const auto& lanes = cache.lanes.layer(layer);
    for (int head = 0; head < lanes.shape().kv_heads; ++head) most = std::max(most, lanes.entries(head));
  }
  return most;
}

}  // namespace

void Stepper::run(std::span<const StepRow> rows, std::span<float> logits) {
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tokens.push_back(rows[i].token);
    positions.push_back(rows[i].position);
    // Rows of one sequence stand together: the first of them reserves for all.
    if (i > 0 && rows[i].cache == rows[i - 1].cache) continue;
    int count = 0;
    while (i + as_size(count) < rows.size() && rows[i + as_size(count)].cache == rows[i].cache) ++count;
    for (int layer = 0; layer < hparams_.n_layer; ++layer) {
      auto& lanes = rows[i].cache->lanes.layer(layer);
      lanes.reserve(growth(*rows[i].cache, layer, count));
      if (lanes.shape().merged_entries > 0)
        lanes.reserve_merged_entries(1);  // what a full lane gives up for a token follows another
      if (lanes.shape().summary_size > 0)
        lanes.summaries().reserve((lanes.length(0) + count) / rows[i].cache->method().lanes.summary_block + 1);
    }
    rows[i].cache->attended = 0;
  }
  std::vector<Watched> watched;
  std::ptrdiff_t floats = 0;
  for (const auto& row : rows) {
    const auto& method = row.cache->method();
    const bool watches = method.decoding.step && method.decoding.step_sees_attention;
    auto& w = watched.emplace_back(Watched{floats, watches ? longest_lane(*row.cache) + 1 : 0});
    floats += std::ptrdiff_t{2} * most_heads(hparams_).query * w.stride;
  }
  const auto bytes = as_size(floats) * sizeof(float);
  if (probabilities_.size() < bytes)
    probabilities_ = Buffer(account_, bytes + bytes / 2, "attention probabilities of a step");
  LaneAttention attention(attention_, hparams_, rows, watched, probabilities_.as<float>().data());
  executor_.step(tokens, positions, attention, logits);
  attention.rethrow();
  for (const auto& row : rows) row.cache->seen = row.position + 1;
}

}  // namespace winnow::engine
