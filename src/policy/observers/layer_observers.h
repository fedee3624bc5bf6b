// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// Parts of a method that a reading calls.
enum class Reading {
  whole,    ///< all
  ranking,  ///< parts that rank entries, if any are evicted; entries are kept when all layers are ranked
  keeping,  ///< the other parts, after ranking
};

/// Requests of a method in a reading, by place; null if no part that is called needs it.
std::vector<ObserverRequestPtr> requests_of(const Method& method, const Asking& asking, Reading reading);

/// Requests of some methods in one layer of a prompt, without duplicates.
class LayerRequests {
 public:
  /// `requests`: [method][place], null if no part needs it.
  explicit LayerRequests(std::span<const std::vector<ObserverRequestPtr>> requests);

  std::span<const ObserverRequestPtr> different() const { return different_; }
  /// [place]: index of a method's request in different(); empty if no part needs it.
  std::span<const std::optional<std::size_t>> of_method(std::size_t method) const { return places_[method]; }

 private:
  std::size_t add(const ObserverRequestPtr& request);

  std::vector<ObserverRequestPtr> different_;
  std::vector<std::vector<std::optional<std::size_t>>> places_;
};

/// The observers of one layer of a prompt, one for each different request.
class LayerObservers {
 public:
  /// `requests` outlives it.
  LayerObservers(const ObservedLayer& layer, const LayerRequests& requests);

  void begin_layer(const ObservedLayer& layer);
  void end_layer(const EndedLayer& layer);
  void for_each(const std::function<void(const ObserverRequest&, Observer&)>& each) const;
  /// Adds the observers of the prompt itself that see the chunk before row `end`. Those with statistics see all chunks,
  /// so that attention is computed alike in all.
  void add_to(std::vector<Observer*>& out, int end) const;
  /// The observer of the replay that an equal request needs. REQUIRES: a method has made that request.
  Observer* of_replay(const ObserverRequest& request) const;
  ObserverResults results_for(std::size_t method) const;

 private:
  const LayerRequests& requests_;
  LayerPrompt prompt_;
  std::vector<std::unique_ptr<Observer>> observers_;  ///< [request of different()]
};

}  // namespace winnow::policy
