// SPDX-License-Identifier: Apache-2.0
#include "server/engine_thread.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/as_size.h"
#include "base/format.h"
#include "base/start_thread.h"
#include "winnow/error.h"
#include "winnow/policy/method.h"

namespace winnow::server {

namespace {

/// The longest time between two snapshots. Without requests, threads that store texts still change them.
constexpr std::chrono::seconds kIdle(1);

/// The engine's requests that belong to one HTTP request.
struct Group {
  std::string id;
  std::shared_ptr<AnswerListener> listener;
  std::vector<Scheduler::Id> requests;
  std::size_t ended = 0;
  bool cancelled = false;
};

/// Throws UsageError if even the smallest request would never fit.
void check_memory(const Scheduler& scheduler, const SchedulerOptions& options) {
  Request smallest;
  smallest.text().tokens = {0};
  smallest.generate.max_tokens = 1;
  const auto least = scheduler.bytes_of(smallest);
  if (least <= options.memory) return;
  throw UsageError(fmt::format(
      "--memory {} is too small: a prompt and an answer of one token each need {}, and {} are reserved for "
      "stored texts (--prefix-memory)",
      format_bytes(options.memory + options.texts.memory), format_at_least(least), format_bytes(options.texts.memory)));
}

/// Average time of a request, from which Retry-After of refusals is estimated.
class ServiceTime {
 public:
  void add(double ms) { mean_ms_ = mean_ms_ == 0 ? ms : 0.8 * mean_ms_ + 0.2 * ms; }
  /// Estimated seconds until one of `waiting` more requests can begin.
  int wait(std::size_t waiting, int parallel) const {
    const double seconds = mean_ms_ / 1000 * static_cast<double>(waiting) / parallel;
    return static_cast<int>(std::clamp(seconds, 1.0, 120.0));
  }

 private:
  double mean_ms_ = 0;
};

std::shared_ptr<const KeptPositions> kept_of(const Cache& cache) {
  if (!cache.options().spec.method().needs_budget()) return nullptr;
  return std::make_shared<const KeptPositions>(cache.kept(), cache.stats().tokens_seen);
}

/// Number of tokens of a prompt, including those already in its cache.
std::size_t tokens_of(const Request& request) {
  const auto* const text = std::get_if<RequestText>(&request.source);
  return (text == nullptr ? 0 : text->tokens.size()) + request.question.size();
}

}  // namespace

struct EngineThread::Impl {
  Impl(const EngineLimits& l, Post post) : limits(l), to_http(std::move(post)) {}

  void run(const std::shared_ptr<const Model>& model, const SessionOptions& options, std::promise<int> ready);
  void work();
  /// Waits a while for mail unless the thread is busy; returns the mail.
  std::vector<std::function<void()>> take_mail(bool is_busy);
  void post(std::function<void()> mail);

  void add(Ticket ticket, std::vector<Request> requests, const std::string& id,
           const std::shared_ptr<AnswerListener>& listener);
  void add_all(Group& group, Ticket ticket, std::vector<Request> requests);
  void cancel(Ticket ticket);
  /// Removes the requests of a group that were added.
  void withdraw(Group& group);
  void check_room(const std::vector<Request>& more) const;
  void check_queue(const std::vector<Request>& more) const;
  RequestEvents events_of(Ticket ticket, std::size_t prompt, const std::shared_ptr<AnswerListener>& listener);
  void ended(Ticket ticket, std::size_t prompt, RequestEnd end);
  void publish();

  const EngineLimits limits;
  const Post to_http;
  std::thread thread;
  std::atomic<bool> stopping{false};
  std::atomic<bool> closed{false};
  std::atomic<Ticket> last_ticket{0};
  int threads = 0;

  std::mutex mail_mutex;
  std::condition_variable mail_came;
  std::vector<std::function<void()>> mail;

  mutable std::mutex load_mutex;
  EngineLoad load;

  // Only the thread itself uses the members below.
  Scheduler* scheduler = nullptr;
  std::map<Ticket, Group> groups;
  std::map<Scheduler::Id, EngineState> known;  ///< the server's facts about requests
  ServiceTime service;
  bool ending = false;  ///< the server is shutting down and ends its requests
};

void EngineThread::Impl::run(const std::shared_ptr<const Model>& model, const SessionOptions& options,
                             std::promise<int> ready) {
  std::optional<Session> session;
  std::optional<Scheduler> own;
  try {
    session.emplace(model, options);
    own.emplace(*session, limits.scheduler);
    check_memory(*own, limits.scheduler);
  } catch (...) {
    return ready.set_exception(std::current_exception());
  }
  session->on_stop([this] { return stopping.load(); });
  scheduler = &*own;
  ready.set_value(session->threads());
  work();
}

void EngineThread::Impl::work() {
  bool goes_on = false;
  while (!stopping) {
    for (const auto& letter : take_mail(goes_on)) letter();
    try {
      goes_on = scheduler->advance();
    } catch (const Interrupted&) {
      break;
    }
    publish();
  }
}

std::vector<std::function<void()>> EngineThread::Impl::take_mail(bool is_busy) {
  std::unique_lock lock(mail_mutex);
  if (!is_busy) mail_came.wait_for(lock, kIdle, [this] { return !mail.empty() || stopping; });
  return std::exchange(mail, {});
}

void EngineThread::Impl::post(std::function<void()> letter) {
  {
    const std::lock_guard lock(mail_mutex);
    mail.push_back(std::move(letter));
  }
  mail_came.notify_one();
}

void EngineThread::Impl::check_room(const std::vector<Request>& more) const {
  if (closed) throw ShuttingDown();
  const std::size_t most = as_size(limits.scheduler.parallel) + as_size(limits.waiting);
  if (known.size() + more.size() > most) {
    throw QueueFull(
        fmt::format("{} requests are running or waiting, and at most {} are allowed: try again later", known.size(),
                    most),
        service.wait(known.size() + more.size() - as_size(limits.scheduler.parallel), limits.scheduler.parallel));
  }
  if (limits.waiting_tokens) check_queue(more);
}

/// Admits a request of any length if none waits; otherwise a long one could never run.
void EngineThread::Impl::check_queue(const std::vector<Request>& more) const {
  std::size_t waiting = 0;
  std::size_t tokens = 0;
  for (const auto& state : scheduler->states()) {
    if (state.phase != RequestState::Phase::waiting || !known.contains(state.id)) continue;
    ++waiting;
    tokens += as_size(state.prompt_tokens);
  }
  std::size_t added = 0;
  for (const auto& request : more) added += tokens_of(request);
  if (waiting == 0 || tokens + added <= *limits.waiting_tokens) return;
  throw QueueFull(
      fmt::format(
          "waiting prompts have {} tokens and this request has {}, but at most {} may wait together: try again later",
          tokens, added, *limits.waiting_tokens),
      service.wait(waiting + more.size(), limits.scheduler.parallel));
}

void EngineThread::Impl::add(Ticket ticket, std::vector<Request> requests, const std::string& id,
                             const std::shared_ptr<AnswerListener>& listener) {
  auto& group = groups[ticket];
  group = {id, listener, {}};
  try {
    check_room(requests);
    add_all(group, ticket, std::move(requests));
    to_http([listener] { listener->accepted(); });
  } catch (const Error&) {
    withdraw(group);
    groups.erase(ticket);
    to_http([listener, why = std::current_exception()] { listener->refused(why); });
  }
}

void EngineThread::Impl::add_all(Group& group, Ticket ticket, std::vector<Request> requests) {
  for (auto& request : requests) {
    scheduler->fit_answers(request);
    const auto& keep = request.keep;
    EngineState state{
        {}, group.id, keep.spec.print(), keep.budget ? keep.budget->print() : "", request.generate.max_tokens};
    request.events = events_of(ticket, group.requests.size(), group.listener);
    const auto id = scheduler->add(std::move(request));
    group.requests.push_back(id);
    known.emplace(id, std::move(state));
  }
}

RequestEvents EngineThread::Impl::events_of(Ticket ticket, std::size_t prompt,
                                            const std::shared_ptr<AnswerListener>& listener) {
  RequestEvents out;
  out.on_text = [this, prompt, listener](const Cache& cache, std::span<const float> /*logits*/) {
    const auto kept = prompt == 0 ? kept_of(cache) : nullptr;
    to_http([prompt, listener, stats = cache.stats(), kept] { listener->read(prompt, stats, kept); });
  };
  out.on_token = [this, prompt, listener](int answer, const GeneratedToken& token, std::string_view text) {
    to_http(
        [prompt, listener, answer, token, text = std::string(text)] { listener->token(prompt, answer, token, text); });
  };
  out.on_end = [this, ticket, prompt](RequestEnd end) { ended(ticket, prompt, std::move(end)); };
  return out;
}

void EngineThread::Impl::ended(Ticket ticket, std::size_t prompt, RequestEnd end) {
  const auto found = groups.find(ticket);
  if (found == groups.end()) return;
  Group& group = found->second;
  if (!end.error && !ending && !group.cancelled) service.add(end.read_ms + end.answer_ms);
  if (ending) end.error = std::make_exception_ptr(ShuttingDown());
  const auto request = known.extract(group.requests[prompt]);
  const int max_tokens = request ? request.mapped().max_tokens : 0;
  const auto told =
      std::make_shared<PromptEnd>(PromptEnd{std::move(end.answers), std::move(end.prompt_logprobs), end.cached_tokens,
                                            max_tokens, end.error, end.queue_ms, end.read_ms, end.answer_ms});
  const auto tell = group.cancelled ? &AnswerListener::cancelled : &AnswerListener::ended;
  publish();  // first, so that a client that got the end of its answer no longer finds its request
  to_http([listener = group.listener, tell, prompt, told] { ((*listener).*tell)(prompt, std::move(*told)); });
  if (++group.ended == group.requests.size()) groups.erase(found);
}

void EngineThread::Impl::cancel(Ticket ticket) {
  const auto found = groups.find(ticket);
  if (found == groups.end()) return;
  found->second.cancelled = true;
  withdraw(found->second);
}

void EngineThread::Impl::withdraw(Group& group) {
  for (const auto id : group.requests) {
    scheduler->cancel(id);
    known.erase(id);
  }
}

void EngineThread::Impl::publish() {
  EngineLoad now{
      {}, scheduler->promised(), scheduler->prefix_use(), scheduler->text_use(), scheduler->longest_quantum_ms()};
  for (const auto& state : scheduler->states()) {
    const auto found = known.find(state.id);
    if (found == known.end()) continue;
    now.states.push_back(found->second);
    now.states.back().state = state;
  }
  const std::lock_guard lock(load_mutex);
  load = std::move(now);
}

EngineThread::EngineThread(std::shared_ptr<const Model> model, const SessionOptions& session,
                           const EngineLimits& limits, Post to_http)
    : impl_(std::make_unique<Impl>(limits, std::move(to_http))) {
  std::promise<int> ready;
  auto threads = ready.get_future();
  impl_->thread = start_thread("the model", [&] {
    return std::thread([impl = impl_.get(), model, session, ready = std::move(ready)]() mutable {
      impl->run(model, session, std::move(ready));
    });
  });
  try {
    impl_->threads = threads.get();
  } catch (...) {
    impl_->thread.join();
    throw;
  }
}

EngineThread::~EngineThread() { stop(); }

EngineThread::Ticket EngineThread::new_ticket() { return ++impl_->last_ticket; }

void EngineThread::add(Ticket ticket, std::vector<Request> requests, std::string id,
                       std::shared_ptr<AnswerListener> listener) {
  const auto shared = std::make_shared<std::vector<Request>>(std::move(requests));
  impl_->post([impl = impl_.get(), ticket, shared, id = std::move(id), listener = std::move(listener)] {
    impl->add(ticket, std::move(*shared), id, listener);
  });
}

void EngineThread::cancel(Ticket ticket) {
  impl_->post([impl = impl_.get(), ticket] { impl->cancel(ticket); });
}

void EngineThread::wake() {
  impl_->post([] {});
}

void EngineThread::close() { impl_->closed = true; }

void EngineThread::end_all() {
  impl_->post([impl = impl_.get()] {
    impl->ending = true;
    for (const auto& [id, state] : impl->known) impl->scheduler->cancel(id);
  });
}

void EngineThread::request_stop() {
  {
    const std::lock_guard lock(impl_->mail_mutex);
    impl_->stopping = true;
  }
  impl_->mail_came.notify_one();
}

void EngineThread::stop() {
  if (!impl_->thread.joinable()) return;
  request_stop();
  impl_->thread.join();
}

EngineLoad EngineThread::load() const {
  const std::lock_guard lock(impl_->load_mutex);
  return impl_->load;
}

int EngineThread::threads() const { return impl_->threads; }

}  // namespace winnow::server
