// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/layer_observers.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::policy {

std::vector<ObserverRequestPtr> requests_of(const Method& method, const Asking& asking, Reading reading) {
  const bool evicts = method.evicts() && asking.prompt.tokens > asking.budget;
  const bool ranks = evicts && reading != Reading::keeping;
  const bool keeps = evicts && reading != Reading::ranking;
  const bool fills = !evicts || reading != Reading::ranking;
  std::vector<ObserverRequestPtr> out;
  for (const auto& part : method.observers.parts()) {
    const auto& to = part.shown_to;
    const bool is_shown = (to.ranking && ranks) || (to.keeping && keeps) || (to.state && fills);
    out.push_back(is_shown ? part.ask(asking) : nullptr);
  }
  return out;
}

void add_requests(std::span<const ObserverRequestPtr> more, std::vector<ObserverRequestPtr>& to) {
  for (const auto& request : more) {
    const auto is_same = [&](const ObserverRequestPtr& other) { return other->equals(*request); };
    if (request && std::ranges::none_of(to, is_same)) to.push_back(request);
  }
}

LayerObservers::LayerObservers(const ObservedLayer& layer, std::span<const std::vector<ObserverRequestPtr>> requests) {
  for (const auto& of_method : requests) add_requests(of_method, requests_);
  for (const auto& request : requests_) observers_.push_back(request->observer(layer));
  for (const auto& of_method : requests) {
    auto& places = shown_.emplace_back();
    for (const auto& request : of_method) places.push_back(request ? find(*request) : nullptr);
  }
}

Observer* LayerObservers::find(const ObserverRequest& request) const {
  const auto found =
      std::ranges::find_if(requests_, [&](const ObserverRequestPtr& other) { return other->equals(request); });
  return observers_[as_size(found - requests_.begin())].get();
}

void LayerObservers::begin_layer(const ObservedLayer& layer) {
  for (const auto& observer : observers_) observer->begin_layer(layer);
}

void LayerObservers::end_layer(const EndedLayer& layer) {
  for (const auto& observer : observers_) observer->end_layer(layer);
}

void LayerObservers::add_to(std::vector<Observer*>& out) const {
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    if (requests_[i]->replay() == nullptr) out.push_back(observers_[i].get());
  }
}

Observer* LayerObservers::of_replay(const ObserverRequest& request) const { return find(request); }

Shown LayerObservers::shown_to(std::size_t method) const { return Shown(shown_[method]); }

}  // namespace winnow::policy
