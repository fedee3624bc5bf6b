// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "server/http/listener.h"
#include "server/signals.h"
#include "server/site.h"

namespace winnow::server {

namespace {

namespace net = boost::asio;
using boost::system::error_code;

/// Owns the HTTP thread and everything that it uses.
class Server {
 public:
  Server(std::shared_ptr<const Model> model, const SessionOptions& session, const ServerOptions& options)
      : options_(options),
        engine_(model, session, options.engine, [this](std::function<void()> action) { post(std::move(action)); }),
        site_(std::move(model), options, engine_, [this](std::function<void()> action) { post(std::move(action)); }),
        listener_(context_, options.host, options.port, options.tls),
        tick_(context_) {}

  ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Ending run(const std::function<void(const std::string&)>& on_listening, std::function<void()> give_up) {
    const Signals signals({.drain = [this] { post([this] { drain(); }); },
                           .stop = [this] { stop_at_once(); },
                           .give_up = std::move(give_up)});
    listener_.start(room_);
    if (listener_.reach() == Reach::others && options_.keys.empty())
      log().warn("anyone who can reach {} can use this server, because it has no key: give --api-key or --api-key-file",
                 options_.host);
    on_listening(listener_.address());
    context_.run();
    engine_.stop();  // before the context, to which they post
    site_.stop();
    return ending_;
  }

 private:
  void post(std::function<void()> action) { net::post(context_, std::move(action)); }

  void stop_at_once() {
    ending_ = Ending::stopped;
    site_.request_stop();
    engine_.request_stop();
    context_.stop();
  }

  void drain() {
    draining_since_ = Clock::now();
    site_.drain();
    engine_.close();
    if (const int active = site_.active(); active > 0)
      log().info("{} {} finished first, for up to {} s; another Ctrl-C or SIGTERM stops at once", active,
                 active == 1 ? "request is" : "requests are", options_.drain_time.count());
    wait_until_drained();
  }

  /// Polls until all requests have been answered.
  void wait_until_drained() {
    if (site_.active() == 0) return context_.stop();
    const auto time = Clock::now() - *draining_since_;
    if (time > options_.drain_time + kLastWords) return context_.stop();
    if (time > options_.drain_time && !std::exchange(ended_all_, true)) engine_.end_all();
    tick_.expires_after(kTick);
    tick_.async_wait([this](const error_code& error) {
      if (!error) wait_until_drained();
    });
  }

  static constexpr std::chrono::milliseconds kTick{20};
  static constexpr std::chrono::seconds kLastWords{5};  ///< time for errors to reach the clients

  const ServerOptions& options_;
  EngineThread engine_;
  Site site_;
  HttpRoom room_{site_, options_.http};
  net::io_context context_{1};
  Listener listener_;
  net::steady_timer tick_;
  std::optional<Clock::time_point> draining_since_;
  bool ended_all_ = false;
  std::atomic<Ending> ending_ = Ending::drained;
};

}  // namespace

Ending serve(std::shared_ptr<const Model> model, const SessionOptions& session, const ServerOptions& options,
             const std::function<void(const std::string&)>& on_listening, std::function<void()> give_up) {
  return Server(std::move(model), session, options).run(on_listening, std::move(give_up));
}

}  // namespace winnow::server
