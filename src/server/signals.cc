// SPDX-License-Identifier: Apache-2.0
#include "server/signals.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <thread>
#include <utility>

#include "base/start_thread.h"

namespace winnow::server {

using boost::system::error_code;

struct Signals::Impl {
  explicit Impl(SignalActions a) : actions(std::move(a)) {
    wait_for([this] {
      actions.drain();
      wait_for([this] {
        patience.expires_after(kPatience);
        patience.async_wait([this](const error_code& error) {
          if (!error) actions.give_up();
        });
        wait_for([this] { actions.give_up(); });
        actions.stop();
      });
    });
    thread = start_thread("signals", [this] { return std::thread([this] { context.run(); }); });
  }

  void wait_for(std::function<void()> action) {
    signals.async_wait([action = std::move(action)](const error_code& error, int /*signal*/) {
      if (!error) action();
    });
  }

  const SignalActions actions;
  boost::asio::io_context context{1};
  boost::asio::signal_set signals{context, SIGINT, SIGTERM};
  boost::asio::steady_timer patience{context};
  std::thread thread;
};

Signals::Signals(SignalActions actions) : impl_(std::make_unique<Impl>(std::move(actions))) {}

Signals::~Signals() {
  impl_->context.stop();
  impl_->thread.join();
}

}  // namespace winnow::server
