// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "base/worker.h"
#include "engine/calibration.h"
#include "engine/layers.h"
#include "engine/sequence.h"
#include "engine/team_attention.h"

namespace winnow::engine {

/// One row of a step: a token and its sequence. Rows of one sequence are consecutive and in order.
struct StepRow {
  Sequence* sequence = nullptr;
  Token token = 0;
  std::int32_t position = 0;
};

/// Index after the last row of `row`'s sequence.
int end_of_sequence(std::span<const StepRow> rows, int row);

/// Place of one row's probabilities: [LayerPlaces::layers][H_q][stride], followed, in models whose layers share keys,
/// by sums [H_q][stride] over the layers that read the same keys. stride 0: the row's method does not look at them.
struct RowProbabilities {
  std::ptrdiff_t first = 0;
  int stride = 0;
};

/// Places of layers' probabilities, and how the step runs.
struct LayerPlaces {
  /// Number of layers whose probabilities are used at once: all layers in a step that is planned on a device, else two,
  /// since those of one layer are still in use while the next one attends.
  int layers = 2;
  int all = 2;  ///< with the sums
  /// The step is planned on a device, since no layer has to wait for the host. Layers wait if their method chooses what
  /// a query reads, needs a layer's input, or rotates keys.
  bool is_planned = false;
};
LayerPlaces places_of_probabilities(const model::Hparams& hparams, const attention::DecodeAttention& attention,
                                    std::span<const StepRow> rows);
/// The most places that a step can need; `is_planned` is not set.
LayerPlaces most_places(const model::Hparams& hparams, const attention::DecodeAttention& attention);

/// Attention of a step, layer by layer: rows of any sequences, each over the lanes of its own sequence.
class LaneAttention : public TeamAttention {
 public:
  /// `placed`: [rows] places in `probabilities`, which has `places` for each. `calibration` may be null if no method
  /// needs it.
  LaneAttention(attention::DecodeAttention& attention, const model::Hparams& hparams, std::span<const StepRow> rows,
                const LayerPlaces& places, std::span<const RowProbabilities> placed, float* probabilities,
                const Calibration* calibration);
  /// True if rows have entered the lanes of all layers before the graph runs.
  bool is_planned() const { return planned_ != nullptr; }

 private:
  /// Some heads of a row whose method has a step part.
  struct Stepping {
    std::size_t row;
    int first_head;
    int end_head;
  };

  /// Plans the whole step if it can be: rows enter the lanes, and their keys and values follow from the device.
  void begin_on_device(std::span<const Tensors> layers) override;
  device::OnDevice attend_on_device(const Tensors& tensors) override;
  std::optional<int> end_on_device() override;
  void store(const Tensors& tensors, Worker worker) override;
  void begin(const Tensors& tensors) override;
  void attend(const Tensors& tensors, Worker worker) override;
  void reduce(Worker worker) override { attention_.merge(worker); }
  void finish(const Tensors& tensors, Worker worker) override;

  const model::LayerSpec& spec_of(int layer) const { return hparams_.layer(layer); }
  /// REQUIRES: a layer with keys and values of its own.
  policy::SequenceLayer& layer_of(int row, int layer) const { return rows_[row].sequence->layer(layer); }
  bool is_shared(int kv_layer) const { return hparams_.last_reader(kv_layer) != kv_layer; }

  /// Place at which a row of a planned step has entered a lane.
  struct Entered {
    int slot = 0;
    int length = 0;  ///< of the lane then
  };
  std::span<Entered> entered(int kv_layer, int row);

  /// Stores the rows of one sequence in the lanes of some heads. Each row plans its reads before the next one enters.
  void store_heads(const Tensors& tensors, int row, int end_row, int first_head, int end_head);
  void enter(const Tensors& tensors, int row, int head);
  /// Stores a key and value, [d] each. Returns the slot.
  int enter(int layer, int row, int head, std::span<const float> key, std::span<const float> value);
  void enter_on_device(int layer);
  void plan_as_entered(int layer, int row);
  /// Takes what the device has computed so far to the host.
  void take();
  void plan_on_device(attention::DeviceStep& step, const Tensors& tensors);
  /// Stores the keys and values, [rows][H_kv][d], of rows that have entered the lanes of a head.
  void fill(int layer, int head, const attention::NewRows& rows);
  /// Stores the calibration's prediction for a token that has just entered a lane.
  void predict(const Tensors& tensors, int row, int head);
  bool is_first_of_sequence(int row) const { return row == 0 || rows_[row - 1].sequence != rows_[row].sequence; }
  void plan(const Tensors& tensors, int row, int first_head, int end_head);
  /// Plans shared by all layers that read this layer's keys.
  std::span<cache::AttendPlan> plans_of(int kv_layer, int row);

  /// Lists the reads of a layer's queries.
  void read(int layer);
  /// Adds the entries that each sequence's last row reads to its count.
  void count(int layer) const;
  void read_range(int layer, int row, int head, const cache::AttendRange& range);
  float* probabilities_of(const RowProbabilities& placed, int place, int kv_head, int group) const;
  /// Adds a layer's probabilities to those of earlier layers that read the same keys.
  void add_probabilities(int reader, const Stepping& stepping) const;

  /// Runs the method's step part on the attention of all layers that read the same keys, after the last of them.
  void step(int reader, const Stepping& stepping) const;

  attention::DecodeAttention& attention_;
  const model::Hparams& hparams_;
  MostHeads most_heads_;
  LayerPlaces places_;
  std::span<const StepRow> rows_;
  std::span<const RowProbabilities> placed_;
  float* probabilities_;
  const Calibration* calibration_;
  std::vector<attention::DecodeRead> reads_;
  std::vector<cache::LaneRun> runs_;
  std::vector<std::vector<cache::AttendPlan>> plans_;  ///< [layer that shares its keys, or 0][rows][most KV heads]
  attention::DeviceStep* planned_ = nullptr;           ///< null: the step was not planned
  std::optional<int> first_bad_;                       ///< layer with a number that is not finite
  std::vector<Entered> entered_;                       ///< [kv layers][rows][most KV heads], if it was
  std::vector<Stepping> stepping_;                     ///< by the layer with the most KV heads; other layers skip some
  WorkQueue to_step_;
};

}  // namespace winnow::engine
