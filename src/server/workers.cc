// SPDX-License-Identifier: Apache-2.0
#include "server/workers.h"

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <utility>

#include "base/as_size.h"
#include "base/stop_scope.h"

namespace winnow::server {

struct Workers::Pool {
  explicit Pool(int count) : threads(as_size(count)) {}
  boost::asio::thread_pool threads;
};

Workers::Workers(int threads) : pool_(std::make_unique<Pool>(threads)) {}

Workers::~Workers() { stop(); }

void Workers::stop() {
  request_stop();
  pool_->threads.stop();
  pool_->threads.join();
}

void Workers::post(std::function<void()> action) {
  boost::asio::post(pool_->threads, [token = stop_.get_token(), action = std::move(action)] {
    const StopScope scope(token);
    action();
  });
}

}  // namespace winnow::server
