// SPDX-License-Identifier: Apache-2.0
#include "winnow/policy/observer.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <stdexcept>

#include "base/worker.h"

namespace winnow::policy {

void Observer::begin_layer(const ObservedLayer& /*layer*/) {}
void Observer::see_inputs(const LayerInputs& /*inputs*/, Worker /*worker*/) {}
void Observer::see_rows(const LayerRows& /*rows*/, Worker /*worker*/) {}
void Observer::take_state(int /*rows*/, std::span<const std::byte> /*state*/) {}
void Observer::keep_state(int /*rows*/, std::span<std::byte> /*state*/) {}
void Observer::end_layer(const EndedLayer& /*layer*/) {}

bool Observers::has(std::string_view kind) const {
  return std::ranges::any_of(parts_, [&](const Part& part) { return part.kind == kind; });
}

const Observer& ObserverResults::at(std::size_t index) const {
  if (index < observers_.size() && observers_[index] != nullptr) return *observers_[index];
  throw std::logic_error(fmt::format(
      "a part of the method looks at observer {} of {}, which the method shows to others", index, observers_.size()));
}

}  // namespace winnow::policy
