// SPDX-License-Identifier: Apache-2.0
#include "engine/lane_attention.h"

#include <algorithm>

#include "base/as_size.h"
#include "policy/calibrations/predicted_scores.h"
#include "policy/views.h"

namespace winnow::engine {

int end_of_sequence(std::span<const StepRow> rows, int row) {
  int end = row + 1;
  while (end < static_cast<int>(rows.size()) && rows[end].sequence == rows[row].sequence) ++end;
  return end;
}

namespace {

LayerPlaces places_of_layers(const model::Hparams& hparams, int layers) {
  return {layers, layers + (hparams.n_kv_layer < hparams.n_layer ? 1 : 0)};
}

bool waits_for_host(const model::Hparams& hparams, const StepRow& row) {
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto& of = row.sequence->layer(layer);
    const auto& parts = of.method().decoding;
    if (parts.attend || parts.predicted_column >= 0 || of.lanes().shape().unrotates != nullptr) return true;
  }
  return false;
}

}  // namespace

LayerPlaces places_of_probabilities(const model::Hparams& hparams, const attention::DecodeAttention& attention,
                                    std::span<const StepRow> rows) {
  const auto waits = [&](const StepRow& row) { return waits_for_host(hparams, row); };
  const bool is_planned = attention.on_device() != nullptr && std::ranges::none_of(rows, waits);
  LayerPlaces out = places_of_layers(hparams, is_planned ? hparams.n_layer : LayerPlaces().layers);
  out.is_planned = is_planned;
  return out;
}

LayerPlaces most_places(const model::Hparams& hparams, const attention::DecodeAttention& attention) {
  const int two = LayerPlaces().layers;
  return places_of_layers(hparams, attention.on_device() != nullptr ? std::max(two, hparams.n_layer) : two);
}

LaneAttention::LaneAttention(attention::DecodeAttention& attention, const model::Hparams& hparams,
                             std::span<const StepRow> rows, const LayerPlaces& places,
                             std::span<const RowProbabilities> placed, float* probabilities,
                             const Calibration* calibration)
    : attention_(attention),
      hparams_(hparams),
      most_heads_(most_heads(hparams)),
      places_(places),
      rows_(rows),
      placed_(placed),
      probabilities_(probabilities),
      calibration_(calibration),
      plans_(hparams.n_kv_layer < hparams.n_layer ? 3 : 1,
             std::vector<cache::AttendPlan>(rows.size() * as_size(most_heads_.kv))) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto& method = rows[row].sequence->method();
    const int together = method.one_set_per_layer ? most_heads_.kv : 1;
    for (int head = 0; method.decoding.step && head < most_heads_.kv; head += together)
      stepping_.push_back({row, head, head + together});
  }
}

/// Lanes are independent, so the threads take heads in turn.
void LaneAttention::store(const Tensors& tensors, Worker worker) {
  if (tensors.k == nullptr) return;  // the layer whose keys it shares has stored them
  const int heads = spec_of(tensors.layer).n_head_kv;
  if (planned_ != nullptr) {
    for (int head = worker.index; head < heads; head += worker.count) fill(tensors.layer, head, {tensors.k, tensors.v});
    for (int row = worker.index; row < tensors.rows; row += worker.count) plan_as_entered(tensors.layer, row);
    return;
  }
  int task = 0;
  for (int row = 0; row < tensors.rows;) {
    const int end = end_of_sequence(rows_, row);
    const int together = layer_of(row, tensors.layer).method().decoding.heads_read_alike ? heads : 1;
    for (int head = 0; head < heads; head += together) {
      if (task++ % worker.count == worker.index) store_heads(tensors, row, end, head, head + together);
    }
    row = end;
  }
}

void LaneAttention::begin(const Tensors& tensors) {
  read(tensors.layer);
  if (planned_ == nullptr) count(tensors.layer);
  const auto& spec = spec_of(tensors.layer);
  attention_.begin(shape_of(hparams_, tensors.layer), spec.rope, reads_, tensors.q, tensors.out, tensors.rows);
  to_step_.reset(static_cast<int>(stepping_.size()));
}

/// Runs the step parts of the previous layer along with this layer's attention: nothing needs their results before the
/// next step. Attention consists of many small tasks, which balance the few heads: on two threads the step parts of
/// three heads would otherwise take as long as those of four.
void LaneAttention::attend(const Tensors& tensors, Worker worker) {
  if (tensors.layer > 0 && planned_ == nullptr) {
    for (int i = to_step_.take(); i >= 0; i = to_step_.take()) step(tensors.layer - 1, stepping_[i]);
  }
  attention_.run(worker);
}

/// Runs the step parts of the last layer, which no attention follows.
void LaneAttention::finish(const Tensors& tensors, Worker worker) {
  if (tensors.layer + 1 < hparams_.n_layer || planned_ != nullptr) return;
  for (std::size_t i = as_size(worker.index); i < stepping_.size(); i += as_size(worker.count))
    step(tensors.layer, stepping_[i]);
}

void LaneAttention::store_heads(const Tensors& tensors, int row, int end_row, int first_head, int end_head) {
  for (; row < end_row; ++row) {
    for (int head = first_head; head < end_head; ++head) enter(tensors, row, head);
    plan(tensors, row, first_head, end_head);
  }
}

void LaneAttention::enter(const Tensors& tensors, int row, int head) {
  const auto& spec = spec_of(tensors.layer);
  const auto dim = as_size(spec.head_dim);
  const std::size_t offset = (as_size(row) * as_size(spec.n_head_kv) + as_size(head)) * dim;
  enter(tensors.layer, row, head, {tensors.k + offset, dim}, {tensors.v + offset, dim});
  if (layer_of(row, tensors.layer).method().decoding.predicted_column >= 0) predict(tensors, row, head);
}

int LaneAttention::enter(int layer, int row, int head, std::span<const float> key, std::span<const float> value) {
  auto& lane = layer_of(row, layer);
  const std::int32_t position = rows_[as_size(row)].position;
  return is_first_of_sequence(row) ? lane.enter(head, position, key, value) : lane.follow(head, position, key, value);
}

void LaneAttention::predict(const Tensors& tensors, int row, int head) {
  auto& layer = layer_of(row, tensors.layer);
  const auto& calibration = calibration_->layers[as_size(hparams_.place_of[tensors.layer])];
  const float* const input = tensors.input + static_cast<std::ptrdiff_t>(row) * tensors.width;
  layer.lanes().state(head, layer.method().decoding.predicted_column, layer.lanes().length(head) - 1) =
      policy::ScorePredictor(calibration, spec_of(tensors.layer).n_head_kv, tensors.width).score(head, input);
}

/// Plans of the last two layers that share their keys are kept while other layers run, see Hparams::kv_layer().
std::span<cache::AttendPlan> LaneAttention::plans_of(int kv_layer, int row) {
  const auto heads = as_size(most_heads_.kv);
  auto& plans = plans_[is_shared(kv_layer) ? as_size(hparams_.n_kv_layer - kv_layer) : 0];
  return std::span(plans).subspan(as_size(row) * heads, heads);
}

void LaneAttention::plan(const Tensors& tensors, int row, int first_head, int end_head) {
  const auto& layer = layer_of(row, tensors.layer);
  const auto& lanes = layer.lanes();
  const auto& method = layer.method();
  const std::int32_t position = rows_[row].position;
  const auto plans = plans_of(tensors.layer, row);
  for (int head = first_head; head < end_head; ++head) plans[head].clear();
  if (method.decoding.attend) {
    const auto shape = shape_of(hparams_, tensors.layer);
    const auto width = static_cast<std::ptrdiff_t>(shape.query_heads) * shape.head_dim;
    method.decoding.attend.call({hparams_.place_of[tensors.layer], shape, lanes, position, layer.terms(),
                                 tensors.q + row * width, first_head, end_head},
                                plans);
  }
  for (int head = first_head; head < end_head; ++head) {
    auto& plan = plans[head];
    // With ranks as effective positions, the query has the last rank.
    const bool ranked = lanes.is_unrotated(head) && lanes.shape().has_ranks();
    const std::int64_t shift = ranked ? static_cast<std::int64_t>(lanes.entries(head)) - 1 - position : 0;
    if (plan.empty()) plan.push_back({0, lanes.length(head), shift});
  }
}

void LaneAttention::read(int layer) {
  reads_.clear();
  for (int row = 0; row < static_cast<int>(rows_.size()); ++row) {
    const auto plans = plans_of(hparams_.kv_layer(layer), row);
    for (int head = 0; head < spec_of(layer).n_head_kv; ++head) {
      for (const auto& range : plans[head]) read_range(layer, row, head, range);
    }
  }
}

void LaneAttention::count(int layer) const {
  if (hparams_.kv_layer(layer) != layer) return;
  for (const auto& read : reads_) {
    auto& sequence = *rows_[as_size(read.row)].sequence;
    const bool is_last = read.row + 1 == end_of_sequence(rows_, read.row);
    if (is_last && sequence.counts(layer)) sequence.attended += read.run.entries();
  }
}

void LaneAttention::read_range(int layer, int row, int head, const cache::AttendRange& range) {
  const RowProbabilities& placed = placed_[row];
  auto& sequence = *rows_[row].sequence;
  const int kv_layer = hparams_.kv_layer(layer);
  const bool is_needed = placed.stride > 0 && spec_of(layer).window == 0;
  runs_.clear();
  sequence.lanes(kv_layer).runs(head, range, runs_);
  for (const auto& run : runs_) {
    attention::DecodeRead read{row, head, run};
    if (is_needed) {
      read.probabilities = probabilities_of(placed, layer % places_.layers, head, spec_of(layer).group()) + run.first;
      read.probabilities_stride = placed.stride;
    }
    reads_.push_back(read);
  }
}

float* LaneAttention::probabilities_of(const RowProbabilities& placed, int place, int kv_head, int group) const {
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(place) * most_heads_.query * placed.stride;
  return probabilities_ + placed.first + at + static_cast<std::ptrdiff_t>(kv_head) * group * placed.stride;
}

/// Sums of entries that were not read are meaningless and unused.
void LaneAttention::add_probabilities(int reader, const Stepping& stepping) const {
  const RowProbabilities& placed = placed_[stepping.row];
  const auto& spec = spec_of(reader);
  const bool is_first = hparams_.kv_layer(reader) == reader;
  const int end = std::min(stepping.end_head, spec.n_head_kv) * spec.group();
  for (int head = stepping.first_head * spec.group(); head < end; ++head) {
    const float* const from = probabilities_of(placed, reader % places_.layers, head, 1);
    float* const to = probabilities_of(placed, places_.layers, head, 1);
    for (int i = 0; i < placed.stride; ++i) to[i] = is_first ? from[i] : to[i] + from[i];
  }
}

void LaneAttention::step(int reader, const Stepping& stepping) const {
  const int layer = hparams_.kv_layer(reader);
  const auto shape = shape_of(hparams_, layer);
  if (shape.window > 0 || stepping.first_head >= shape.kv_heads) return;
  if (is_shared(layer)) add_probabilities(reader, stepping);
  if (hparams_.last_reader(layer) != reader) return;
  const auto& row = rows_[stepping.row];
  auto& kept = row.sequence->layer(layer);
  const RowProbabilities& placed = placed_[stepping.row];
  const float* const probabilities =
      placed.stride == 0 ? nullptr
                         : probabilities_of(placed, is_shared(layer) ? places_.layers : layer % places_.layers, 0, 1);
  const policy::StepView view{hparams_.place_of[layer],
                              shape,
                              kept.lanes(),
                              row.position,
                              kept.terms(),
                              kept.limit(),
                              stepping.first_head,
                              std::min(stepping.end_head, shape.kv_heads),
                              probabilities,
                              placed.stride,
                              layer,
                              spec_of(layer).rope,
                              calibration_of(calibration_, hparams_, layer)};
  kept.method().decoding.step.call(view);
}

}  // namespace winnow::engine
