#include "engine/decode.h"

#include <algorithm>
#include <exception>

namespace winnow::engine {

namespace {

/// Rows of any sequences at every layer of a step.
class LaneAttention : public graph::AttentionOp {
 public:
  LaneAttention(attention::DecodeAttention& attention, const model::Hparams& hparams, std::span<const StepRow> rows)
      : attention_(attention), hparams_(hparams), rows_(rows) {}

  void stage(int number, const Tensors& tensors, Worker worker) noexcept override {
    switch (number) {
      case 0:
        if (worker.index == 0) store(tensors);
        break;
      case 1:
        if (!error_) attention_.run(worker);
        break;
      default:
        if (!error_) attention_.merge(worker);
        break;
    }
  }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  /// By one thread: a token's K and V are a few hundred numbers, and what later rows read depends on earlier ones.
  void store(const Tensors& tensors) {
    try {
      reads_.clear();
      for (int row = 0; row < tensors.rows; ++row) {
        for (int head = 0; head < hparams_.n_head_kv; ++head) {
          enter(tensors, row, head);
          read(tensors.layer, row, head);
        }
      }
      attention_.begin(reads_, tensors.q, tensors.out, tensors.rows);
    } catch (...) {
      error_ = std::current_exception();
    }
  }

  void enter(const Tensors& tensors, int row, int head) {
    const auto& step = rows_[static_cast<std::size_t>(row)];
    const auto dim = static_cast<std::size_t>(hparams_.head_dim);
    const std::size_t offset = (static_cast<std::size_t>(row) * static_cast<std::size_t>(hparams_.n_head_kv) + static_cast<std::size_t>(head)) * dim;
    const std::span<const float> key(tensors.k + offset, dim);
    const std::span<const float> value(tensors.v + offset, dim);
    auto& lanes = step.cache->lanes.layer(tensors.layer);
    const auto& method = step.cache->method();
    if (method.evict && lanes.length(head) >= step.cache->limit[static_cast<std::size_t>(tensors.layer)][static_cast<std::size_t>(head)]) {
      lanes.replace(head, method.evict.call(lanes, head, step.cache->forced), step.position, key, value);
    } else {
      lanes.append(head, step.position, key, value);
    }
  }

  void read(int layer, int row, int head) {
    const auto& step = rows_[static_cast<std::size_t>(row)];
    const auto& lanes = step.cache->lanes.layer(layer);
    const auto& method = step.cache->method();
    pieces_.clear();
    cache::AttendPlan plan;
    if (method.attend) plan = method.attend.call(lanes, head, step.position, step.cache->forced);
    if (plan.empty()) plan.push_back({0, lanes.length(head), 0});
    for (const auto& range : plan) lanes.pieces(head, range, pieces_);
    for (const auto& piece : pieces_) {
      attention::DecodeRead read;
      read.row = row;
      read.kv_head = head;
      read.piece = piece;
      reads_.push_back(read);
    }
  }

  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  std::span<const StepRow> rows_;
  std::vector<attention::DecodeRead> reads_;
  std::vector<cache::LanePiece> pieces_;
  std::exception_ptr error_;
};

/// Entries by which a layer's lanes can still grow when `count` tokens come: a per-step method's only up to its limit.
int growth(const Cache::Impl& cache, int layer, int count) {
  if (!cache.method().evict) return count;
  int most = 0;
  const auto& limits = cache.limit[static_cast<std::size_t>(layer)];
  for (std::size_t head = 0; head < limits.size(); ++head) {
    most = std::max(most, limits[head] - cache.lanes.layer(layer).length(static_cast<int>(head)));
  }
  return std::min(most, count);
}

}  // namespace

void Stepper::run(std::span<const StepRow> rows, float* logits) {
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tokens.push_back(rows[i].token);
    positions.push_back(rows[i].position);
    // Rows of one sequence stand together: the first of them reserves for all.
    if (i > 0 && rows[i].cache == rows[i - 1].cache) continue;
    int count = 0;
    while (i + static_cast<std::size_t>(count) < rows.size() && rows[i + static_cast<std::size_t>(count)].cache == rows[i].cache) ++count;
    for (int layer = 0; layer < hparams_.n_layer; ++layer) rows[i].cache->lanes.layer(layer).reserve(growth(*rows[i].cache, layer, count));
  }
  LaneAttention attention(attention_, hparams_, rows);
  executor_.step(tokens, positions, attention, logits);
  attention.rethrow();
  for (const auto& row : rows) row.cache->seen = row.position + 1;
}

}  // namespace winnow::engine
