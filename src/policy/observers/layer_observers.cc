// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/layer_observers.h"

#include <algorithm>
#include <utility>

#include "base/as_size.h"

namespace winnow::policy {

std::vector<ObserverRequestPtr> requests_of(const Method& method, const Asking& asking, Reading reading) {
  const bool evicts = method.evicts() && asking.prompt.tokens > asking.budget;
  const bool ranks = evicts && reading != Reading::keeping;
  const bool keeps = evicts && reading != Reading::ranking;
  const bool fills = !evicts || reading != Reading::ranking;
  std::vector<ObserverRequestPtr> out;
  for (const auto& part : method.observers.parts()) {
    const auto& by = part.used_by;
    const bool is_used = (by.ranking && ranks) || (by.keeping && keeps) || (by.state && fills);
    out.push_back(is_used ? part.ask(asking) : nullptr);
  }
  return out;
}

LayerRequests::LayerRequests(std::span<const std::vector<ObserverRequestPtr>> requests) {
  for (const auto& of_method : requests) {
    auto& places = places_.emplace_back();
    for (const auto& request : of_method) places.push_back(request ? std::optional(add(request)) : std::nullopt);
  }
}

std::size_t LayerRequests::add(const ObserverRequestPtr& request) {
  const auto found =
      std::ranges::find_if(different_, [&](const ObserverRequestPtr& other) { return other->equals(*request); });
  const auto place = as_size(found - different_.begin());
  if (found == different_.end()) different_.push_back(request);
  return place;
}

LayerObservers::LayerObservers(const ObservedLayer& layer, const LayerRequests& requests)
    : requests_(requests), prompt_(layer.prompt) {
  for (const auto& request : requests.different()) observers_.push_back(request->observer(layer));
}

void LayerObservers::begin_layer(const ObservedLayer& layer) {
  for (const auto& observer : observers_) observer->begin_layer(layer);
}

void LayerObservers::end_layer(const EndedLayer& layer) {
  for (const auto& observer : observers_) observer->end_layer(layer);
}

void LayerObservers::for_each(const std::function<void(const ObserverRequest&, Observer&)>& each) const {
  for (std::size_t i = 0; i < observers_.size(); ++i) each(*requests_.different()[i], *observers_[i]);
}

void LayerObservers::add_to(std::vector<Observer*>& out, int end) const {
  for (std::size_t i = 0; i < observers_.size(); ++i) {
    const auto& request = *requests_.different()[i];
    const bool sees = request.first_row(prompt_) < end || !observers_[i]->columns().empty();
    if (request.replay() == nullptr && sees) out.push_back(observers_[i].get());
  }
}

Observer* LayerObservers::of_replay(const ObserverRequest& request) const {
  const auto all = requests_.different();
  const auto found = std::ranges::find_if(all, [&](const ObserverRequestPtr& other) { return other->equals(request); });
  return observers_[as_size(found - all.begin())].get();
}

ObserverResults LayerObservers::results_for(std::size_t method) const {
  std::vector<const Observer*> out;
  for (const auto place : requests_.of_method(method)) out.push_back(place ? observers_[*place].get() : nullptr);
  return ObserverResults(std::move(out));
}

}  // namespace winnow::policy
