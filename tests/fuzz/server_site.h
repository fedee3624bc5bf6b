// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <functional>
#include <utility>

#include "base/log.h"
#include "fuzz/seed_model.h"
#include "server/site.h"

namespace winnow::test {

/// A server over the fuzzer's model without a listener: its site, its engine, and the loop of its HTTP thread.
class FuzzedServer {
 public:
  FuzzedServer() { set_verbosity(Verbosity::quiet); }

  boost::asio::io_context& loop() { return loop_; }
  server::Site& site() { return site_; }
  const server::HttpLimits& limits() const { return options_.http; }

 private:
  /// Small limits, so that no input takes long.
  static server::ServerOptions small_options() {
    server::ServerOptions out;
    out.log = server::RequestLogging::none;
    out.defaults.context = 48;
    out.defaults.generate.max_tokens = 2;
    out.engine.scheduler.parallel = 2;
    out.engine.scheduler.memory = std::size_t{64} << 20;
    out.engine.scheduler.texts.memory = std::size_t{1} << 20;
    out.engine.waiting = 2;
    return out;
  }

  std::shared_ptr<const Model> model_ = seed_model();
  server::ServerOptions options_ = small_options();
  boost::asio::io_context loop_;
  server::Post post_ = [this](std::function<void()> action) { boost::asio::post(loop_, std::move(action)); };
  server::EngineThread engine_{model_, {1, Precision::automatic, 512}, options_.engine, post_};
  server::Site site_{model_, options_, engine_, post_};
};

}  // namespace winnow::test
