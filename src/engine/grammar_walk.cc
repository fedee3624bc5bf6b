// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_walk.h"

#include <algorithm>
#include <limits>

#include "winnow/error.h"

namespace winnow::engine {

GrammarWalk::GrammarWalk(std::shared_ptr<const GrammarRules> rules)
    : rules_(std::move(rules)), limit_(std::numeric_limits<std::int64_t>::max()), called_(rules_->count()) {
  begin_place();
  add(rules_->begin(rules_->root()), 0);
  close(tried_.front());
  find_first_bytes();
}

void GrammarWalk::begin_place() {
  ++places_;
  first_frame_ = frames_.size();
  seen_.clear();
  todo_.clear();
}

void GrammarWalk::add(std::int32_t state, std::int32_t frame) {
  if (++steps_ > limit_) throw UsageError("the grammar has too many ways to parse this answer: make it simpler");
  if (state == GrammarState::kNone) return;
  const auto key = static_cast<std::uint64_t>(state) << 32U | static_cast<std::uint32_t>(frame);
  if (seen_.insert(key)) todo_.push_back({state, frame});
}

void GrammarWalk::close(Place& place) {
  while (!todo_.empty()) {
    const Item item = todo_.back();
    todo_.pop_back();
    const GrammarState& state = rules_->state(item.state);
    switch (state.kind) {
      case GrammarState::Kind::byte:
        place.items.push_back(item);
        break;
      case GrammarState::Kind::fork:
        add(state.next, item.frame);
        add(state.other, item.frame);
        break;
      case GrammarState::Kind::call:
        call(state, item.frame);
        break;
      case GrammarState::Kind::end:
        end(item.frame, place);
        break;
    }
  }
}

void GrammarWalk::call(const GrammarState& state, std::int32_t frame) {
  Called& called = called_[state.other];
  if (called.place != places_) {
    called = {places_, static_cast<std::int32_t>(frames_.size())};
    frames_.emplace_back();
    add(rules_->begin(state.other), called.frame);
  }
  frames_[called.frame].returns.push_back({state.next, frame});
  if (frames_[called.frame].is_empty) add(state.next, frame);
}

void GrammarWalk::end(std::int32_t frame, Place& place) {
  if (frame == 0) place.may_end = true;
  frames_[frame].is_empty = static_cast<std::size_t>(frame) >= first_frame_;
  for (const auto& item : frames_[frame].returns) add(item.state, item.frame);
}

GrammarWalk::Place GrammarWalk::read(unsigned char byte, const std::vector<Item>& items) {
  Place out;
  begin_place();
  steps_ += static_cast<std::int64_t>(items.size());
  for (const auto& item : items) {
    const auto& state = rules_->state(item.state);
    if (state.first <= byte && byte <= state.last) add(state.next, item.frame);
  }
  close(out);
  return out;
}

std::size_t GrammarWalk::try_bytes(std::string_view bytes) {
  std::size_t at = 0;
  for (const char c : bytes) {
    if (is_dead(tried_[at])) return at;
    const auto byte = static_cast<unsigned char>(c);
    const auto& next = tried_[at].next;
    const auto found = std::find_if(next.begin(), next.end(), [&](const auto& n) { return n.first == byte; });
    if (found != next.end()) {
      at = found->second;
      continue;
    }
    Place place = read(byte, tried_[at].items);
    tried_[at].next.emplace_back(byte, tried_.size());
    at = tried_.size();
    tried_.push_back(std::move(place));
  }
  return at;
}

void GrammarWalk::accept(std::string_view bytes) {
  Place here = std::move(tried_[try_bytes(bytes)]);
  here.next.clear();
  tried_.clear();
  tried_.push_back(std::move(here));
  constexpr std::size_t kFew = 64;
  if (frames_.size() > 2 * frames_kept_ + kFew) collect();
  find_first_bytes();
}

void GrammarWalk::find_first_bytes() {
  first_.reset();
  for (const auto& item : tried_.front().items) {
    const auto& state = rules_->state(item.state);
    for (int byte = state.first; byte <= state.last; ++byte) first_.set(static_cast<std::size_t>(byte));
  }
}

void GrammarWalk::collect() {
  constexpr std::int32_t kUnknown = -1;
  std::vector<std::int32_t> new_number(frames_.size(), kUnknown);
  std::vector<std::int32_t> order;  // old numbers of the frames that are kept
  const auto keep = [&](std::int32_t frame) {
    if (new_number[frame] != kUnknown) return new_number[frame];
    order.push_back(frame);
    return new_number[frame] = static_cast<std::int32_t>(order.size()) - 1;
  };
  keep(0);
  for (auto& item : tried_.front().items) item.frame = keep(item.frame);
  for (std::size_t next = 0; next < order.size();) {  // keep() appends to `order`
    for (auto& item : frames_[order[next++]].returns) item.frame = keep(item.frame);
  }
  std::vector<Frame> kept;
  for (const auto frame : order) kept.push_back(std::move(frames_[frame]));
  frames_ = std::move(kept);
  frames_kept_ = frames_.size();
}

}  // namespace winnow::engine
