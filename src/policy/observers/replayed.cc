// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/replayed.h"

#include <utility>

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
      : columns_(observed(wanted), query_heads(wanted, layer), layer.prompt.tokens) {}

  static ObserverBytes bytes(const Wanted& wanted, const ObservedLayer& layer) {
    return {as_size(query_heads(wanted, layer)) * as_size(layer.prompt.tokens) * sizeof(float), 0};
  }
  static std::vector<attention::ColumnRequest> columns(const Wanted& wanted) {
    return wanted.replay.passages.empty() ? std::vector<attention::ColumnRequest>() : std::vector{observed(wanted)};
  }

  static int first_row(const Wanted& /*wanted*/, const LayerPrompt& prompt) { return prompt.tokens; }

  std::vector<attention::ColumnStatistics*> columns() override { return {&columns_}; }
  const attention::ColumnStatistics& result() const override { return columns_; }

 private:
  static attention::ColumnRequest observed(const Wanted& wanted) {
    attention::ColumnRequest all{{attention::QueryRowSet::Kind::all, 0, {}}, wanted.replay.reduction};
    all.scale = wanted.replay.scale;
    return all;
  }
  static int query_heads(const Wanted& wanted, const ObservedLayer& layer) {
    return wanted.replay.passages.empty() ? 0 : layer.shape.query_heads;
  }

  attention::ColumnStatistics columns_;
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
