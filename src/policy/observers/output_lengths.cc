// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/output_lengths.h"

#include "base/as_size.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

class Lengths : public ObserverOf<OutputLengths> {
 public:
  struct Wanted {
    bool operator==(const Wanted&) const = default;
  };

  Lengths(const Wanted& /*wanted*/, const ObservedLayer& layer)
      : heads_(layer.shape.query_heads), tokens_(layer.prompt.tokens) {}

  static ObserverBytes bytes(const Wanted& /*wanted*/, const ObservedLayer& layer) {
    return {0, layer.projection_bytes +
                   2 * as_size(layer.shape.query_heads) * as_size(layer.prompt.tokens) * sizeof(float)};
  }

  static int first_row(const Wanted& /*wanted*/, const LayerPrompt& prompt) { return prompt.tokens; }

  void end_layer(const EndedLayer& layer) override {
    lengths_ = {{heads_, tokens_}, {heads_, tokens_}};
    layer.projection.lengths(layer.number, layer.scratch, lengths_);
  }
  const OutputLengths& result() const override { return lengths_; }

 private:
  int heads_;
  int tokens_;
  OutputLengths lengths_{{0, 0}, {0, 0}};
};

}  // namespace

ObserverPart<OutputLengths> observe_output_lengths() {
  return {"output lengths", "length of each value's part of the layer's output",
          [](const Asking&) { return request<Lengths, OutputLengths>({}); }};
}

}  // namespace winnow::policy
