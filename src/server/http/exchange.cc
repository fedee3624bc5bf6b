// SPDX-License-Identifier: Apache-2.0
#include "server/http/exchange.h"

#include <utility>

namespace winnow::server {

Exchange::Exchange(Post to_http, std::function<void()> wake, std::size_t most)
    : to_http_(std::move(to_http)), wake_(std::move(wake)), most_(most) {}

void Exchange::post(std::function<void(Exchange&)> action) {
  to_http_([self = shared_from_this(), action = std::move(action)] {
    if (self->over_) return;
    action(*self);
    self->wake_();
  });
}

void Exchange::send(HttpReply reply) {
  post([reply = std::move(reply)](Exchange& e) mutable {
    e.reply_ = std::move(reply);
    e.ended_ = true;
  });
}

void Exchange::begin() {
  post([](Exchange& e) { e.begun_ = true; });
}

void Exchange::write(std::string bytes) {
  post([bytes = std::move(bytes)](Exchange& e) {
    if (e.overflowed_) return;
    e.pending_ += bytes;
    e.overflowed_ = e.pending_.size() > e.most_;
  });
}

void Exchange::end() {
  post([](Exchange& e) { e.ended_ = true; });
}

void Exchange::on_gone(std::function<void()> action) {
  to_http_([self = shared_from_this(), action = std::move(action)] {
    if (self->gone_) return action();
    if (!self->over_) self->on_gone_ = action;
  });
}

void Exchange::on_silence(std::function<void()> action) {
  to_http_([self = shared_from_this(), action = std::move(action)] {
    if (!self->over_) self->on_silence_ = action;
  });
}

std::optional<HttpReply> Exchange::take_reply() { return std::exchange(reply_, std::nullopt); }

bool Exchange::take_begin() { return begun_ && !std::exchange(begin_taken_, true); }

std::string Exchange::take_bytes() { return std::exchange(pending_, {}); }

void Exchange::gone() {
  if (over_) return;
  gone_ = true;
  const auto action = std::exchange(on_gone_, {});
  over();
  if (action) action();
}

void Exchange::done() { over(); }

void Exchange::over() {
  over_ = true;
  on_gone_ = {};
  on_silence_ = {};
  wake_ = [] {};
}

}  // namespace winnow::server
