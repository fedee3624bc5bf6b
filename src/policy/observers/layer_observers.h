// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "winnow/policy/method.h"

namespace winnow::policy {

/// The parts of a method that a reading calls.
enum class Reading {
  whole,    ///< all
  ranking,  ///< those that rank entries, where something is evicted: what is kept is known when all layers are ranked
  keeping,  ///< the others: the entries have been ranked before
};

/// Requests of a method in a reading, by place; null where no part that is called looks.
std::vector<ObserverRequestPtr> requests_of(const Method& method, const Asking& asking, Reading reading);

/// Requests of some methods in one layer of a prompt: equal ones once.
class LayerRequests {
 public:
  /// `requests` [method][place], null where no part looks.
  explicit LayerRequests(std::span<const std::vector<ObserverRequestPtr>> requests);

  std::span<const ObserverRequestPtr> different() const { return different_; }
  /// The place of a method's request among the different ones, [place]; empty where no part looks.
  std::span<const std::optional<std::size_t>> of_method(std::size_t method) const { return places_[method]; }

 private:
  std::size_t add(const ObserverRequestPtr& request);

  std::vector<ObserverRequestPtr> different_;
  std::vector<std::vector<std::optional<std::size_t>>> places_;
};

/// All that methods look at in one layer of a prompt: an observer for each different request.
class LayerObservers {
 public:
  /// `requests` outlives it.
  LayerObservers(const ObservedLayer& layer, const LayerRequests& requests);

  void begin_layer(const ObservedLayer& layer);
  void end_layer(const EndedLayer& layer);
  /// Adds the observers that look at the prompt itself.
  void add_to(std::vector<Observer*>& out) const;
  /// The one that looks at what is read again for an equal request. REQUIRES: a method has made it.
  Observer* of_replay(const ObserverRequest& request) const;
  Shown shown_to(std::size_t method) const;

 private:
  const LayerRequests& requests_;
  std::vector<std::unique_ptr<Observer>> observers_;  ///< of different requests
};

}  // namespace winnow::policy
