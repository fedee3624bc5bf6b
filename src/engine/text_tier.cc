// SPDX-License-Identifier: Apache-2.0
#include "engine/text_tier.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/start_thread.h"

namespace winnow::engine {

namespace {

constexpr int kReaders = 2;
/// How long a store that has failed is left alone.
constexpr double kPauseMs = 5000;

/// Threads that run functions in the order in which they came.
class TierThreads {
 public:
  /// Actions that have not begun when the threads end.
  enum class Rest : std::uint8_t { dropped, run };

  TierThreads(int count, Rest rest) : rest_(rest) {
    try {
      for (int i = 0; i < count; ++i)
        threads_.push_back(start_thread("stored texts", [this] { return std::thread([this] { run(); }); }));
    } catch (...) {
      stop();
      throw;
    }
  }
  TierThreads(const TierThreads&) = delete;
  TierThreads& operator=(const TierThreads&) = delete;
  ~TierThreads() { stop(); }

  void post(std::function<void()> action) {
    {
      const std::lock_guard lock(mutex_);
      actions_.push_back(std::move(action));
    }
    came_.notify_one();
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    came_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      came_.wait(lock, [this] { return is_stopping_ || !actions_.empty(); });
      if (actions_.empty() || (is_stopping_ && rest_ == Rest::dropped)) return;
      const auto action = std::move(actions_.front());
      actions_.pop_front();
      lock.unlock();
      action();
      lock.lock();
    }
  }

  Rest rest_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<std::function<void()>> actions_;
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

/// Whether a store works. Changes are logged once.
class TierHealth {
 public:
  enum Way : std::uint8_t { reading, writing };

  explicit TierHealth(std::string name) : name_(std::move(name)) {}

  /// Runs `work`, unless it failed a short while ago. Returns false if it has not worked.
  bool attempt(Way way, const std::function<void()>& work) {
    if (!may_try(way)) return false;
    try {
      work();
      worked(way);
      return true;
    } catch (const std::exception& error) {
      failed(way, error.what());
      return false;
    }
  }

  /// False for a while after a failure.
  bool may_try(Way way) {
    const std::lock_guard lock(mutex_);
    return !down_[way] || ms_since(*down_[way]) > kPauseMs;
  }
  void failed(Way way, const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (!is_down())
      log().warn("{}; answers go on without {}", why,
                 way == reading ? "what is stored there" : "storing new texts there");
    down_[way] = Clock::now();
  }

 private:
  bool is_down() const { return down_[reading] || down_[writing]; }
  void worked(Way way) {
    const std::lock_guard lock(mutex_);
    if (!down_[way]) return;
    down_[way].reset();
    if (!is_down()) log().info("the texts in {} can be used again", name_);
  }

  std::string name_;
  std::mutex mutex_;
  std::array<std::optional<Clock::time_point>, 2> down_;  ///< time of the last failure, by Way
};

std::vector<std::string> keys_of(const TierRequest& asked) {
  std::vector<std::string> out;
  for (const auto& name : asked.names) out.push_back(name.key.print());
  return out;
}

/// Lowers a number that other threads may lower, too.
void lower(std::atomic<std::size_t>& number, std::size_t to) {
  std::size_t now = number;
  while (to < now && !number.compare_exchange_weak(now, to)) continue;
}

}  // namespace

struct TextTier::Impl {
  Impl(std::unique_ptr<store::Values> v, std::size_t most_queued)
      : values(std::move(v)), health(values->name()), queue(most_queued) {}

  void write(std::span<const TierValue> all);
  void look_for_all(TierRequest& asked) const;
  void read_all(TierRequest& asked);
  /// Returns false if the value is missing or damaged.
  bool read_one(TierRequest& asked, std::size_t value);
  FiledRows::Found read_to(const TextName& name, LayerBytes& layers);
  void ended(TierRequest& asked);
  void post(int threads, const std::shared_ptr<TierRequest>& asked, const std::function<void(TierRequest&)>& work);

  std::shared_ptr<store::Values> values;
  TierHealth health;
  std::size_t queue;
  std::atomic<std::size_t> queued{0};
  std::atomic<std::uint64_t> read{0};  ///< values, like the next two
  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> damaged{0};
  std::mutex mutex;
  std::condition_variable has_ended;
  int ends = 0;  ///< of work since the last wait
  TierThreads writer{1, TierThreads::Rest::run};
  TierThreads readers{kReaders, TierThreads::Rest::dropped};
};

TextTier::TextTier(std::unique_ptr<store::Values> values, const SessionKey& session, std::size_t queue)
    : session_(session), impl_(std::make_unique<Impl>(std::move(values), queue)) {}

TextTier::~TextTier() = default;

TextUse TextTier::use() const {
  TextUse out{.read = impl_->read, .written = impl_->written, .damaged = impl_->damaged};
  if (const auto held = impl_->values->held()) {
    out.stored_bytes = held->bytes;
    out.stored_blocks = held->count;
  }
  return out;
}

std::size_t TextTier::room_for_parts() const { return impl_->values->room_for_parts(); }

std::shared_ptr<FiledRows> TextTier::filed(TextName name, std::vector<std::size_t> sizes) const {
  return std::make_shared<FiledRows>(impl_->values, std::move(name), std::move(sizes));
}

bool TextTier::write(const std::function<void()>& work) { return impl_->health.attempt(TierHealth::writing, work); }

void TextTier::keep(std::vector<TierValue> values) {
  std::size_t bytes = 0;
  for (const auto& value : values) {
    const auto* const layers = std::get_if<LayerBytesPtr>(&value.rows);
    if (layers != nullptr) bytes += (*layers)->bytes();
  }
  if (values.empty() || (impl_->queued > 0 && impl_->queued + bytes > impl_->queue)) return;
  impl_->queued += bytes;
  impl_->writer.post([impl = impl_.get(), bytes, shared = std::make_shared<std::vector<TierValue>>(std::move(values))] {
    impl->health.attempt(TierHealth::writing, [&] { impl->write(*shared); });
    shared->clear();
    impl->queued -= bytes;
  });
}

void TextTier::Impl::write(std::span<const TierValue> all) {
  std::vector<store::NewValue> out;
  for (const auto& value : all) {
    if (const auto* const filed = std::get_if<std::shared_ptr<FiledRows>>(&value.rows)) {
      out.push_back((*filed)->finished());
      written += out.back().part != nullptr ? 1 : 0;
      continue;
    }
    const auto& layers = *std::get<LayerBytesPtr>(value.rows);
    out.push_back(
        {value.name.key.print(), value_bytes(value.name, layers.sizes()), [this, &value, &layers](ByteSink& to) {
           write_value(value.name, layers, to);
           ++written;
         }});
  }
  values->keep(out);
}

void TextTier::Impl::post(int threads, const std::shared_ptr<TierRequest>& asked,
                          const std::function<void(TierRequest&)>& work) {
  asked->working = threads;
  for (int i = 0; i < threads; ++i) {
    readers.post([this, asked, work] {
      if (!asked->is_unwanted) work(*asked);
      ended(*asked);
    });
  }
}

void TextTier::Impl::ended(TierRequest& asked) {
  {
    const std::lock_guard lock(mutex);
    --asked.working;
    ++ends;
  }
  has_ended.notify_one();
}

bool TextTier::may_read() { return impl_->health.may_try(TierHealth::reading); }

void TextTier::give_up(std::chrono::milliseconds waited) {
  impl_->health.failed(TierHealth::reading,
                       fmt::format("the texts in {} have not come for {} ms", impl_->values->name(), waited.count()));
}

void TextTier::look(const std::shared_ptr<TierRequest>& asked) {
  asked->exist.assign(asked->names.size(), false);
  impl_->post(1, asked, [impl = impl_.get()](TierRequest& request) {
    impl->health.attempt(TierHealth::reading, [&] { impl->look_for_all(request); });
  });
}

/// Looks for some values at a time, so that progress is seen.
void TextTier::Impl::look_for_all(TierRequest& asked) const {
  constexpr std::size_t kTogether = 128;
  const auto keys = keys_of(asked);
  for (std::size_t first = 0; first < keys.size() && !asked.is_unwanted; first += kTogether) {
    const auto found = values->exist(std::span(keys).subspan(first, std::min(kTogether, keys.size() - first)));
    std::copy(found.begin(), found.end(), asked.exist.begin() + static_cast<std::ptrdiff_t>(first));
    asked.next += found.size();
  }
}

void TextTier::read(const std::shared_ptr<TierRequest>& asked) {
  asked->good = asked->names.size();
  impl_->post(kReaders, asked, [impl = impl_.get()](TierRequest& request) { impl->read_all(request); });
}

void TextTier::Impl::read_all(TierRequest& asked) {
  while (!asked.is_unwanted) {
    const std::size_t i = asked.next++;
    if (i >= (asked.is_damaged ? asked.names.size() : asked.good.load())) return;
    bool is_read = false;
    health.attempt(TierHealth::reading, [&] { is_read = read_one(asked, i); });
    if (!is_read) lower(asked.good, i);
  }
}

FiledRows::Found TextTier::Impl::read_to(const TextName& name, LayerBytes& layers) {
  using Found = FiledRows::Found;
  const auto found = values->get(name.key.print(), value_bytes(name, layers.sizes()));
  if (!found) return Found::missing;
  return !found->parts.empty() && read_value(found->parts.front(), name, layers) ? Found::good : Found::damaged;
}

bool TextTier::Impl::read_one(TierRequest& asked, std::size_t value) {
  using Found = FiledRows::Found;
  const auto& name = asked.names[value];
  const auto& target = asked.targets[value];
  const auto* const filed = std::get_if<std::shared_ptr<FiledRows>>(&target);
  const Found found =
      filed != nullptr ? (*filed)->open() : read_to(name, *std::get<std::shared_ptr<LayerBytes>>(target));
  if (found == Found::missing) return false;
  if (found == Found::good) {
    ++read;
    return true;
  }
  ++damaged;
  if (!asked.is_damaged.exchange(true))
    log().warn("{} of a text in {} is damaged; the text is read anew from there",
               name.state.empty() ? "a block" : "a state", values->name());
  values->erase(name.key.print());
  return false;
}

void TextTier::wait(std::chrono::milliseconds most) {
  std::unique_lock lock(impl_->mutex);
  impl_->has_ended.wait_for(lock, most, [this] { return impl_->ends > 0; });
  impl_->ends = 0;
}

}  // namespace winnow::engine
