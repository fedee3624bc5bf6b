// SPDX-License-Identifier: Apache-2.0
#include "server/workers.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "base/start_thread.h"
#include "base/stop_scope.h"

namespace winnow::server {

namespace net = boost::asio;

/// Replaces asio's pool, whose constructor never returns if one of its threads cannot be started.
struct Workers::Pool {
  ~Pool() { stop(); }
  void stop() {
    context.stop();
    for (auto& thread : std::exchange(threads, {})) thread.join();
  }

  net::io_context context;
  net::executor_work_guard<net::io_context::executor_type> waits{context.get_executor()};
  std::vector<std::thread> threads;
};

Workers::Workers(int threads) : pool_(std::make_unique<Pool>()) {
  for (int i = 0; i < threads; ++i)
    pool_->threads.push_back(start_thread(
        "the server's workers", [pool = pool_.get()] { return std::thread([pool] { pool->context.run(); }); }));
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  request_stop();
  pool_->stop();
}

void Workers::post(std::function<void()> action) {
  net::post(pool_->context, [token = stop_.get_token(), action = std::move(action)] {
    const StopScope scope(token);
    action();
  });
}

}  // namespace winnow::server
