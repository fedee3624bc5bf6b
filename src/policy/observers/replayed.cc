// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/replayed.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/as_size.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

class Replayed : public ObserverOf<attention::ColumnStatistics> {
 public:
  struct Wanted {
    Replay replay;
    std::vector<Token> draft;
    bool operator==(const Wanted&) const = default;
  };

  Replayed(const Wanted& wanted, const ObservedLayer& layer)
      : replay_(wanted.replay), columns_(observed(wanted), query_heads(wanted, layer), layer.prompt.tokens) {}

  static ObserverBytes bytes(const Wanted& wanted, const ObservedLayer& layer) {
    return {as_size(query_heads(wanted, layer)) * as_size(layer.prompt.tokens) * sizeof(float), 0};
  }
  static std::vector<attention::ColumnRequest> columns(const Wanted& wanted) {
    return wanted.replay.passages.empty() ? std::vector<attention::ColumnRequest>() : std::vector{observed(wanted)};
  }

  static int first_row(const Wanted& /*wanted*/, const LayerPrompt& prompt) { return prompt.tokens; }

  static std::string state_name(const Wanted& wanted) {
    const auto& replay = wanted.replay;
    if (replay.passages.empty() || replay.name.empty()) return {};
    return fmt::format("{} {} {}{}", replay.name, replay.reduction == attention::Reduction::max ? "max" : "sum",
                       replay.scale == attention::RowScale::one ? "one" : "inverse-input",
                       replay.rows == ReplayedRows::all ? "" : " copies");
  }
  /// [columns][H_q]: later passages do not change columns that earlier ones have recorded.
  static constexpr bool kStateGrows = true;
  static std::size_t state_bytes(const Wanted& wanted, const ObservedLayer& layer, int rows) {
    return as_size(query_heads(wanted, layer)) * known_columns(wanted.replay, rows) * sizeof(float);
  }

  void take_state(int rows, std::span<const std::byte> state) override {
    const std::size_t known = known_columns(replay_, rows);
    const auto* from = reinterpret_cast<const float*>(state.data());
    for (std::size_t column = 0; column < known; ++column) {
      for (int h = 0; h < columns_.query_heads(); ++h) columns_.head(h)[column] = *from++;
    }
  }
  void keep_state(int rows, std::span<std::byte> state) override {
    kept_.emplace(rows, reinterpret_cast<float*>(state.data()));
  }
  void end_layer(const EndedLayer& /*layer*/) override {
    for (auto [rows, to] : kept_) {
      const std::size_t known = known_columns(replay_, rows);
      for (std::size_t column = 0; column < known; ++column) {
        for (int h = 0; h < columns_.query_heads(); ++h) *to++ = columns_.head(h)[column];
      }
    }
  }

  std::vector<attention::ColumnStatistics*> columns() override { return {&columns_}; }
  const attention::ColumnStatistics& result() const override { return columns_; }

 private:
  static attention::ColumnRequest observed(const Wanted& wanted) {
    using Kind = attention::QueryRowSet::Kind;
    const auto rows = wanted.replay.rows == ReplayedRows::all ? Kind::all : Kind::copies;
    attention::ColumnRequest out{{rows, 0, {}}, wanted.replay.reduction};
    out.scale = wanted.replay.scale;
    return out;
  }
  static int query_heads(const Wanted& wanted, const ObservedLayer& layer) {
    return wanted.replay.passages.empty() ? 0 : layer.shape.query_heads;
  }

  /// Number of leading columns that passages after the first `rows` rows, or earlier ones, have recorded.
  static std::size_t known_columns(const Replay& replay, int rows) {
    int out = 0;
    for (const auto& passage : replay.passages) {
      if (passage.after && *passage.after <= rows) out = std::max(out, passage.recorded.end);
    }
    return as_size(out);
  }

  const Replay& replay_;
  attention::ColumnStatistics columns_;
  std::map<int, float*> kept_;  ///< destinations of states, by rows
};

class ReplayRequest : public Request<Replayed> {
 public:
  using Request::Request;
  const Replay* replay() const override { return &wanted().replay; }
  std::span<const Token> draft() const override { return wanted().draft; }
};

}  // namespace

ObserverPart<attention::ColumnStatistics> observe_replay(std::string text,
                                                         std::function<Replay(const LayerPrompt&, int budget)> which) {
  return {kReplay, std::move(text), [which = std::move(which)](const Asking& asking) {
            Replayed::Wanted wanted{which(asking.first_layer, asking.budget), {}};
            if (wanted.replay.has_draft()) wanted.draft.assign(asking.draft.begin(), asking.draft.end());
            return RequestOf<attention::ColumnStatistics>(std::make_shared<const ReplayRequest>(std::move(wanted)));
          }};
}

}  // namespace winnow::policy
