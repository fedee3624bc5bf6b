// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
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

/// Adds requests that are not there yet; nulls are left out.
void add_requests(std::span<const ObserverRequestPtr> more, std::vector<ObserverRequestPtr>& to);

/// All that methods look at in one layer of a prompt: an observer for each different request.
class LayerObservers {
 public:
  /// `requests` [method][place]
  LayerObservers(const ObservedLayer& layer, std::span<const std::vector<ObserverRequestPtr>> requests);

  void begin_layer(const ObservedLayer& layer);
  void end_layer(const EndedLayer& layer);
  /// Adds the observers that look at the prompt itself.
  void add_to(std::vector<Observer*>& out) const;
  /// The one that looks at what is read again for an equal request. REQUIRES: a method has made it.
  Observer* of_replay(const ObserverRequest& request) const;
  Shown shown_to(std::size_t method) const;

 private:
  Observer* find(const ObserverRequest& request) const;

  std::vector<ObserverRequestPtr> requests_;  ///< different ones
  std::vector<std::unique_ptr<Observer>> observers_;
  std::vector<std::vector<const Observer*>> shown_;  ///< [method][place]
};

}  // namespace winnow::policy
