// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "base/worker.h"
#include "engine/calibration.h"
#include "engine/layers.h"
#include "engine/sequence.h"
#include "engine/team_attention.h"

namespace winnow::engine {

/// One row of a step: a token and the sequence that it goes to. Rows of one sequence stand together, in their order.
struct StepRow {
  Sequence* sequence = nullptr;
  Token token = 0;
  std::int32_t position = 0;
};

/// The row after the last one of `row`'s sequence.
int end_of_sequence(std::span<const StepRow> rows, int row);

/// Where the probabilities of one row lie, [2][H_q][stride], and then the sums [H_q][stride] of all layers that read
/// the same keys, where a model has such layers; stride 0: its method does not look at them.
struct Watched {
  std::ptrdiff_t first = 0;
  int stride = 0;
};

/// Of how many layers' probabilities there are places for.
int places_of_probabilities(const model::Hparams& hparams);

/// Attention of a step, in every layer in turn: rows of any sequences, each over the lanes of its own.
class LaneAttention : public TeamAttention {
 public:
  /// `watched` [rows] are places in `probabilities`. `calibration` may be null where no method needs it.
  LaneAttention(attention::DecodeAttention& attention, const model::Hparams& hparams, std::span<const StepRow> rows,
                std::span<const Watched> watched, float* probabilities, const Calibration* calibration);

 private:
  /// Some heads of a row whose method has a step part.
  struct Stepping {
    std::size_t row;
    int first_head;
    int end_head;
  };

  void store(const Tensors& tensors, Worker worker) override;
  void begin(const Tensors& tensors) override;
  void attend(const Tensors& tensors, Worker worker) override;
  void reduce(Worker worker) override { attention_.merge(worker); }
  void observe(const Tensors& tensors, Worker worker) override;

  const model::LayerSpec& spec_of(int layer) const { return hparams_.layer(layer); }
  /// REQUIRES: one with keys and values.
  policy::SequenceLayer& layer_of(int row, int layer) const { return rows_[row].sequence->layer(layer); }
  bool is_shared(int kv_layer) const { return hparams_.last_reader(kv_layer) != kv_layer; }

  /// The rows of one sequence enter the lanes of some heads, and each plans what it reads before the next one enters.
  void store_heads(const Tensors& tensors, int row, int end_row, int first_head, int end_head);
  void enter(const Tensors& tensors, int row, int head);
  /// What the calibration predicts of a token that has just entered a lane.
  void predict(const Tensors& tensors, int row, int head);
  bool is_first_of_sequence(int row) const { return row == 0 || rows_[row - 1].sequence != rows_[row].sequence; }
  void plan(const Tensors& tensors, int row, int first_head, int end_head);
  /// Those that all layers which read a layer's keys go by.
  std::span<cache::AttendPlan> plans_of(int kv_layer, int row);

  void read(int layer, int row);
  void read_range(int layer, int row, int head, const cache::AttendRange& range);
  /// Two layers in turn have places of their own: the probabilities of one are still in use while the next one attends.
  float* probabilities_of(const Watched& watched, int place, int kv_head, int group) const;
  /// Adds a layer's probabilities to those of the layers before it that read the same keys.
  void add_probabilities(int reader, const Stepping& stepping) const;

  /// After a layer has read: the step part of the method, of what all layers that read the same keys have attended to.
  void step(int reader, const Stepping& stepping) const;

  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  MostHeads most_heads_;
  std::span<const StepRow> rows_;
  std::span<const Watched> watched_;
  float* probabilities_;
  const Calibration* calibration_;
  std::vector<attention::DecodeRead> reads_;
  std::vector<cache::LanePiece> pieces_;
  std::vector<std::vector<cache::AttendPlan>> plans_;  ///< [layer that shares keys, or any other][rows][most KV heads]
  std::vector<Stepping> stepping_;                     ///< in the layer with the most KV heads; other layers skip some
  WorkQueue to_step_;
};

}  // namespace winnow::engine
