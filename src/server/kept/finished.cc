// SPDX-License-Identifier: Apache-2.0
#include "server/kept/finished.h"

#include <algorithm>
#include <utility>

namespace winnow::server {

std::size_t FinishedRequest::bytes() const {
  return sizeof(FinishedRequest) + id.size() + key.size() + spec.size() + budget.size() +
         tokens.capacity() * sizeof(Token) + kept->bytes();
}

void FinishedRequests::put(FinishedRequest request) {
  if (request.bytes() > limits_.bytes) return;
  bytes_ += request.bytes();
  requests_.push_back(std::make_shared<const FinishedRequest>(std::move(request)));
  while (requests_.size() > limits_.requests || bytes_ > limits_.bytes) {
    bytes_ -= requests_.front()->bytes();
    requests_.pop_front();
  }
}

std::shared_ptr<const FinishedRequest> FinishedRequests::find(std::string_view id, std::string_view key) const {
  const auto found =
      std::ranges::find_if(requests_, [&](const auto& request) { return request->id == id && request->key == key; });
  return found == requests_.end() ? nullptr : *found;
}

}  // namespace winnow::server
