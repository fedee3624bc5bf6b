// SPDX-License-Identifier: Apache-2.0
#include "documents/resident.h"

#include <utility>

#include "base/as_size.h"
#include "engine/sequence.h"

namespace winnow::documents {

namespace {

class Resident : public Document {
 public:
  explicit Resident(Ingested document) : cache_(std::move(document.cache)), head_(std::move(document.head)) {
    const auto& sequence = engine::sequence_of(cache_);
    for (int layer = 0; layer < sequence.layers(); ++layer) {
      const auto& lanes = sequence.lanes(layer);
      auto& heads = positions_.emplace_back();
      for (int head = 0; head < lanes.shape().kv_heads; ++head) {
        auto& positions = heads.emplace_back();
        for (int slot = 0; slot < lanes.length(head); ++slot) positions.push_back(lanes.position(head, slot));
      }
    }
  }

  const DocumentHead& head() const override { return head_; }

  LayerPart read(int layer, std::span<const TokenRange> stretches) const override {
    LayerPart out;
    for (const auto& s : stretches) {
      auto& heads = out.stretches.emplace_back();
      for (int head = 0; head < static_cast<int>(positions_[layer].size()); ++head)
        heads.push_back(part(layer, head, s.begin, s.end));
    }
    return out;
  }

  LayerPart read_all(int layer) const override {
    LayerPart out;
    auto& heads = out.stretches.emplace_back();
    const auto& lanes = positions_[layer];
    for (std::size_t head = 0; head < lanes.size(); ++head)
      heads.push_back(part(layer, static_cast<int>(head), 0, static_cast<int>(lanes[head].size())));
    return out;
  }

 private:
  /// Slots [begin, end). They are contiguous, because nothing has been appended to the prompt.
  LanePart part(int layer, int head, int begin, int end) const {
    std::vector<cache::LaneRun> runs;
    engine::sequence_of(cache_).lanes(layer).runs(head, {begin, end}, runs);
    const auto& positions = positions_[layer][head];
    if (runs.empty()) return {};
    return {std::span(positions).subspan(begin, as_size(end - begin)), runs.front().keys, runs.front().values};
  }

  Cache cache_;
  DocumentHead head_;
  std::vector<std::vector<std::vector<std::int32_t>>> positions_;  ///< [layer][KV head][slot]
};

}  // namespace

std::shared_ptr<const Document> resident(Ingested document) { return std::make_shared<Resident>(std::move(document)); }

}  // namespace winnow::documents
