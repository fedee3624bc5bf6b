// SPDX-License-Identifier: Apache-2.0
#include "winnow/scheduler.h"

#include <llama.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/format.h"
#include "engine/promise.h"
#include "engine/request.h"
#include "engine/shares.h"
#include "engine/task.h"
#include "winnow/error.h"

namespace winnow {

namespace {

using engine::Task;
using Tasks = std::vector<std::unique_ptr<Task>>;

/// Prompts that are read at a time. Each holds hidden states and one layer's keys and values.
constexpr int kReading = 2;
/// How long a thread without other work waits for stored texts before it looks for other requests.
constexpr std::chrono::milliseconds kFetchWait(5);

}  // namespace

void SchedulerOptions::check() const {
  if (parallel < 1) throw UsageError(fmt::format("cannot run {} requests at a time: give at least 1", parallel));
  if (max_itl.count() < 0)
    throw UsageError(fmt::format("the time between tokens cannot be {} ms: give 0 or more", max_itl.count()));
}

struct Scheduler::Impl {
  Impl(Session& s, const SchedulerOptions& o)
      : session(s.impl()),
        options(o),
        room{.session = session,
             .candidates = {},
             .texts = engine::KeptTexts(session, o.texts),
             .prefixes = engine::Prefixes(room.texts.memory())} {
    options.check();
  }

  static bool is_reading(const Task& task) { return !task.is_read() && !task.has_ended() && !task.is_waiting(); }
  bool is_answering() const {
    return std::any_of(running.begin(), running.end(), [](const auto& task) { return task->is_answering(); });
  }
  /// True if all running tasks wait for other threads, or for the memory of those that do, so that no other task can
  /// begin.
  bool only_waits() const {
    return !running.empty() && std::all_of(running.begin(), running.end(),
                                           [](const auto& task) { return task->is_waiting() || task->is_paused(); });
  }
  std::size_t promised() const {
    std::size_t bytes = 0;
    for (const auto& task : running) bytes += task->promise();
    return bytes;
  }

  /// Throws the errors of add() for an invalid request.
  engine::RequestPlan plan(const Request& request) const {
    engine::check(request, session);
    return {request, session};
  }
  std::set<std::string> keys() const;
  template <class Among>
  Tasks::iterator next_waiting(const Among& among);
  void sweep(Tasks& tasks);
  void sweep() {
    sweep(waiting);
    sweep(running);
  }
  void end_all();
  bool grant_portions();
  Tasks::iterator next_to_begin();
  void begin_waiting();
  /// Continues to bring waiting tasks' texts into memory. Returns true until they are there.
  bool is_fetching();
  void begin(Task& task);
  bool is_text_being_read(const Task& task) const;
  bool fits(const Task& task, std::size_t promise) const;
  bool fits(const Task& task) const { return fits(task, task.promise()); }
  /// Null if no text is being read.
  Task* next_to_read() const;
  bool may_read(const Task& text) const;
  /// Returns true if anything was read.
  bool read_for_a_while(Clock::time_point began);
  void step();
  bool run(std::span<const engine::StepRow> rows, std::span<Task* const> tasks);

  Session::Impl& session;
  SchedulerOptions options;
  engine::TaskRoom room;
  Tasks waiting;
  Tasks running;              ///< in the order of their beginning
  std::vector<float> logits;  ///< logits of a step
  PrefixUse use;
  double longest_quantum_ms = 0;
  engine::Shares shares;
  Id last = 0;
};

/// Removes the tasks that have ended and calls their on_end(), which may add other tasks.
void Scheduler::Impl::sweep(Tasks& tasks) {
  const auto ended =
      std::stable_partition(tasks.begin(), tasks.end(), [](const auto& task) { return !task->has_ended(); });
  Tasks out(std::make_move_iterator(ended), std::make_move_iterator(tasks.end()));
  tasks.erase(ended, tasks.end());
  for (const auto& task : out) task->finish();
}

void Scheduler::Impl::end_all() {
  while (!waiting.empty() || !running.empty()) {
    for (auto* const tasks : {&waiting, &running}) {
      for (const auto& task : *tasks) task->cancel();
    }
    sweep();
  }
}

/// True if a text that this task needs is being read. The task then waits, because the text will be stored.
bool Scheduler::Impl::is_text_being_read(const Task& task) const {
  const auto* const text = task.text();
  return text != nullptr && std::any_of(running.begin(), running.end(), [text](const auto& other) {
           return other->is_reading_text() && other->text() != nullptr && other->text()->will_store_more_of(*text);
         });
}

/// The key that has used the fewest tokens comes first; within a key, priority and then due time decide.
template <class Among>
Tasks::iterator Scheduler::Impl::next_waiting(const Among& among) {
  const auto rank = [this](const Task& task) {
    return std::tuple(shares.used(task.key()), -task.priority(), task.due());
  };
  auto first = waiting.end();
  std::optional<std::invoke_result_t<decltype(rank), const Task&>> best;
  for (auto task = waiting.begin(); task != waiting.end(); ++task) {
    if ((*task)->has_ended() || (*task)->is_fetching() || is_text_being_read(**task) || !among(**task)) continue;
    const auto own = rank(**task);
    if (best && *best <= own) continue;
    first = task;
    best = own;
  }
  return first;
}

/// Keys with requests.
std::set<std::string> Scheduler::Impl::keys() const {
  std::set<std::string> out;
  for (const auto* const tasks : {&waiting, &running}) {
    for (const auto& task : *tasks) out.insert(task->key());
  }
  return out;
}

/// A text may be read if no other text is being read, or if it is due before them.
bool Scheduler::Impl::may_read(const Task& text) const {
  int reading = 0;
  bool is_first = true;
  for (const auto& other : running) {
    if (!other->is_reading_text()) continue;
    ++reading;
    is_first = is_first && text.due() < other->due();
  }
  return reading == 0 || (reading < kReading && is_first);
}

bool Scheduler::Impl::is_fetching() {
  return std::any_of(waiting.begin(), waiting.end(), [](const auto& task) { return task->is_fetching(); });
}

/// Requests without a text do not wait for texts that are being read, and only requests that must fetch a text wait for
/// others' fetching.
Tasks::iterator Scheduler::Impl::next_to_begin() {
  const bool fetching = is_fetching();
  const auto may_fetch = [&](const Task& task) { return !fetching || task.has_fetched(); };
  auto next = next_waiting([](const Task&) { return true; });
  if (next == waiting.end() || !fits(**next)) return waiting.end();
  if (!may_fetch(**next)) next = next_waiting(may_fetch);
  if (next != waiting.end() && (*next)->needs_text() && !may_read(**next))
    next = next_waiting([&](const Task& task) { return !task.needs_text() && may_fetch(task); });
  return next == waiting.end() || fits(**next) ? next : waiting.end();
}

void Scheduler::Impl::begin_waiting() {
  while (static_cast<int>(running.size()) < options.parallel) {
    const auto next = next_to_begin();
    if (next == waiting.end()) return;
    (*next)->fetch();
    if ((*next)->has_ended() || (*next)->is_fetching()) continue;
    const auto at = next - waiting.begin();
    running.push_back(std::move(waiting[at]));
    waiting.erase(waiting.begin() + at);
    begin(*running.back());
  }
}

void Scheduler::Impl::begin(Task& task) {
  shares.begin(task.key());
  task.begin();
  shares.charge(task.key(), task.tokens_to_read());
  const auto* const text = task.text();
  if (text == nullptr || !(text->is_shared() || text->is_known_text())) return;
  use.asked += task.text_tokens();
  use.found += text->found();
}

/// True if a task that begins or goes on may have this promise. For each running task, all that it may ever need and
/// the promises of the tasks that began after it must fit into the memory together. So the oldest one can always go on
/// to its end, and then the next one is the oldest: memory never runs out, and tasks never wait for each other in a
/// circle. A task that does not fit yet is not overtaken: small ones could otherwise keep it waiting for ever.
bool Scheduler::Impl::fits(const Task& task, std::size_t promise) const {
  std::size_t later = promise;  // of this task, and of those that began after the current one
  bool is_older = !task.has_begun();
  for (auto other = running.rbegin(); other != running.rend(); ++other) {
    if (other->get() == &task) {
      is_older = true;
      continue;
    }
    if (is_older && (later > options.memory || (*other)->most() > options.memory - later)) return false;
    later += (*other)->promise();
  }
  return true;
}

/// Promises portions to answers that need one, in the order in which their tasks began. Returns false if one has to
/// wait; then those after it get no memory, and no task may begin.
bool Scheduler::Impl::grant_portions() {
  bool has_room = true;
  for (const auto& task : running) {
    if (!task->needs_portion()) continue;
    const bool takes_nothing = task->next_promise() == task->promise();  // as methods that evict while decoding
    has_room = has_room && (takes_nothing || fits(*task, task->next_promise()));
    if (has_room || takes_nothing) task->grow_promise();
  }
  return has_room;
}

Task* Scheduler::Impl::next_to_read() const {
  Task* first = nullptr;
  for (const auto& task : running) {
    if (is_reading(*task) && (first == nullptr || task->due() < first->due())) first = task.get();
  }
  return first;
}

bool Scheduler::Impl::read_for_a_while(Clock::time_point began) {
  bool has_read = false;
  const auto most = static_cast<double>(options.max_itl.count());
  do {
    const auto quantum_began = Clock::now();
    const bool holds_up = is_answering();
    sweep();
    if (grant_portions()) begin_waiting();
    auto* const task = next_to_read();
    if (task == nullptr) {
      if (!has_read && !is_answering() && is_fetching()) room.texts.tier()->wait(kFetchWait);
      return has_read;
    }
    task->read();
    has_read = true;
    if (holds_up) longest_quantum_ms = std::max(longest_quantum_ms, ms_since(quantum_began));
  } while (is_answering() && ms_since(began) < most);
  return has_read;
}

void Scheduler::Impl::step() {
  std::vector<engine::StepRow> rows;
  std::vector<Task*> tasks;
  std::vector<std::size_t> ends;
  for (const auto& task : running) {
    if (!task->is_answering()) continue;
    task->add_rows(rows);
    tasks.push_back(task.get());
    ends.push_back(rows.size());
  }
  if (tasks.empty()) return;
  const auto vocabulary = as_size(session.hparams.n_vocab);
  logits.resize(rows.size() * vocabulary);
  if (!rows.empty() && !run(rows, tasks)) return;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    shares.charge(tasks[i]->key(), static_cast<double>(ends[i] - begin));
    tasks[i]->take(std::span(logits).subspan(begin * vocabulary, (ends[i] - begin) * vocabulary));
    begin = ends[i];
  }
}

/// Returns true if the logits were computed. A step that fails for lack of memory has changed nothing: the latest task
/// ends, and the others try again. After any other error no lane of the batch can be trusted.
bool Scheduler::Impl::run(std::span<const engine::StepRow> rows, std::span<Task* const> tasks) {
  try {
    session.stepper.run(rows, logits);
    return true;
  } catch (const MemoryError&) {
    tasks.back()->fail(std::current_exception());
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    for (auto* const task : tasks) task->fail(std::current_exception());
  }
  return false;
}

Scheduler::Scheduler(Session& session, const SchedulerOptions& options)
    : impl_(std::make_unique<Impl>(session, options)) {}
Scheduler::~Scheduler() = default;

std::size_t Scheduler::bytes_of(const Request& request) const {
  return impl_->plan(request).bytes(impl_->session, request.generate.max_tokens);
}

/// Bytes grow with the tokens, so binary search finds the largest number that fits.
void Scheduler::fit_answers(Request& request) const {
  int& tokens = request.generate.max_tokens;
  if (tokens <= 1) return;
  const auto plan = impl_->plan(request);
  const auto fits = [&](int most) {
    tokens = most;
    return plan.bytes(impl_->session, most) <= impl_->options.memory;
  };
  if (fits(tokens)) return;
  int beyond = tokens;
  int fitting = 1;
  while (beyond - fitting > 1) {
    const int middle = fitting + (beyond - fitting) / 2;
    (fits(middle) ? fitting : beyond) = middle;
  }
  tokens = fitting;
  request.generate.min_tokens = std::min(request.generate.min_tokens, tokens);
}

Scheduler::Id Scheduler::add(Request&& request) {
  auto& s = *impl_;
  auto plan = s.plan(request);
  const auto most = plan.bytes(s.session, request.generate.max_tokens);
  if (most > s.options.memory) {
    throw MemoryError(fmt::format("the request needs {}, but all requests together may use at most {}",
                                  format_bytes(most), format_bytes(s.options.memory)),
                      most);
  }
  s.shares.join(request.key, s.keys());
  if (plan.text && s.room.packed.room() == nullptr)
    s.room.packed = s.session.begin_pass(request.text().tokens.size(), plan.reading);
  const Id id = ++s.last;
  s.waiting.push_back(std::make_unique<Task>(id, std::move(request), std::move(plan), s.room));
  return id;
}

void Scheduler::cancel(Id id) {
  for (auto* const tasks : {&impl_->waiting, &impl_->running}) {
    for (const auto& task : *tasks) {
      if (task->id() == id) task->cancel();
    }
  }
}

bool Scheduler::advance() {
  auto& s = *impl_;
  bool goes_on = true;
  try {
    s.session.check_stop();
    s.sweep();
    const auto began = Clock::now();
    s.step();
    goes_on = s.read_for_a_while(began) || s.is_fetching() || !s.only_waits();
    s.sweep();
  } catch (const Interrupted&) {
    s.end_all();
    throw;
  }
  return goes_on && (!s.waiting.empty() || !s.running.empty());
}

std::vector<RequestState> Scheduler::states() const {
  std::vector<RequestState> out;
  for (const auto* const tasks : {&impl_->running, &impl_->waiting}) {
    for (const auto& task : *tasks) out.push_back(task->state());
  }
  return out;
}

std::size_t Scheduler::promised() const { return impl_->promised(); }
double Scheduler::longest_quantum_ms() const { return impl_->longest_quantum_ms; }

PrefixUse Scheduler::prefix_use() const {
  PrefixUse out = impl_->use;
  out.dropped = impl_->room.texts.memory().dropped() * engine::TextBlock::kTokens;
  out.entries = impl_->room.prefixes.entries();
  out.bytes = impl_->room.prefixes.held() + impl_->room.texts.memory().held();
  return out;
}

TextUse Scheduler::text_use() const {
  const auto& texts = impl_->room.texts;
  TextUse out = texts.tier() == nullptr ? TextUse() : texts.tier()->use();
  out.memory_bytes = texts.memory().held();
  out.memory_blocks = texts.memory().blocks();
  return out;
}

}  // namespace winnow
