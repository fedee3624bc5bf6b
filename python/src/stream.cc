// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bind.h"
#include "winnow/error.h"

namespace winnow::python {

Stream::Stream(std::vector<CachePointer> caches, const std::optional<std::string>& question,
               const GenerateOptions& options)
    : caches_(std::move(caches)), answers_(caches_.size()), sent_(caches_.size()) {
  if (caches_.empty()) throw UsageError("there is no cache to answer from: give at least one");
  session_ = caches_.front()->shared_session();
  for (const auto& cache : caches_) {
    if (cache->shared_session() != session_)
      throw UsageError("the caches belong to several sessions: give those of one");
  }
  session_->call([&](Session& session) {
    SchedulerOptions all;
    all.parallel = static_cast<int>(caches_.size());
    scheduler_.emplace(session, all);
    try {
      for (std::size_t i = 0; i < caches_.size(); ++i) add(i, question, options);
    } catch (...) {
      cancel_all();
      throw;
    }
    session_->set_streaming(true);
    return true;
  });
}

Stream::~Stream() {
  try {
    close();
  } catch (const std::exception&) {  // a closed session or a signal: the caches are lost
  }
}

void Stream::add(std::size_t index, const std::optional<std::string>& question, const GenerateOptions& options) {
  auto& cache = *caches_[index];
  const Transcript before = cache.transcript();
  Request request;
  request.question = question ? cache.tokens_for(*question) : cache.unseen();
  request.generate = options;
  if (request.question.empty()) {
    if (!cache.logits()) throw UsageError("the cache has no logits to answer from: give a question");
  }
  request.events.on_token = [this, index](int, const GeneratedToken& token, std::string_view bytes) {
    sent_[index] += bytes.size();
    deltas_.push_back({static_cast<int>(index), token, std::string(bytes)});
  };
  request.events.on_end = [this, index](RequestEnd ended) { end(index, std::move(ended)); };
  auto logits = request.question.empty() ? *cache.logits() : std::vector<float>();
  request.source = RequestCache{cache.lend(), std::move(logits)};
  try {
    ids_.push_back(scheduler_->add(std::move(request)));
  } catch (...) {
    cache.give_back(std::move(std::get<RequestCache>(request.source).cache));
    cache.transcript() = before;
    throw;
  }
}

/// Adds the answer to the conversation.
void Stream::end(std::size_t index, RequestEnd end) {
  auto& cache = *caches_[index];
  if (end.error && !error_) error_ = end.error;
  if (end.caches.empty()) return;
  cache.give_back(std::move(end.caches.front()));
  if (end.answers.empty()) return;
  auto& answer = answers_[index] = std::move(end.answers.front());
  if (answer.tokens.empty()) return;
  if (answer.text.size() > sent_[index])
    deltas_.push_back({static_cast<int>(index), std::nullopt, answer.text.substr(sent_[index])});
  cache.set_logits(nullptr);
  auto& [conversation, tokens] = cache.transcript();
  tokens.insert(tokens.end(), answer.tokens.begin(), answer.tokens.end());
  if (conversation.awaits_answer()) conversation.messages.push_back({Role::assistant, answer.text});
}

void Stream::advance() {
  if (scheduler_->advance()) return;
  scheduler_.reset();
  session_->set_streaming(false);
}

/// REQUIRES: within a call of the session.
void Stream::cancel_all() {
  for (const auto id : ids_) scheduler_->cancel(id);
  while (scheduler_->advance()) {
  }
  scheduler_.reset();
  session_->set_streaming(false);
}

std::optional<Delta> Stream::next() {
  if (deltas_.empty() && scheduler_) {
    session_->call_of_stream([&](Session&) {
      try {
        while (deltas_.empty() && scheduler_) advance();
      } catch (const Interrupted&) {  // after which all answers have ended
        scheduler_.reset();
        session_->set_streaming(false);
        throw;
      }
      return true;
    });
  }
  if (deltas_.empty()) {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return std::nullopt;
  }
  Delta delta = std::move(deltas_.front());
  deltas_.pop_front();
  return delta;
}

void Stream::close() {
  if (!scheduler_) return;
  session_->call_of_stream([&](Session&) {
    cancel_all();
    return true;
  });
}

namespace {

GenerateOptions options_of(int max_tokens, int min_tokens, float temperature, int top_k, float top_p, float min_p,
                           float repeat_penalty, std::uint32_t seed, std::vector<std::string> stop, int logprobs,
                           std::string grammar) {
  GenerateOptions out;
  out.max_tokens = max_tokens;
  out.min_tokens = min_tokens;
  out.sampling.temperature = temperature;
  out.sampling.top_k = top_k;
  out.sampling.top_p = top_p;
  out.sampling.min_p = min_p;
  out.sampling.repeat_penalty = repeat_penalty;
  out.sampling.seed = seed;
  out.stop = std::move(stop);
  out.logprobs = logprobs;
  out.grammar = std::move(grammar);
  out.check();
  return out;
}

nb::bytes as_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

/// (answer, token, log probability, [(token, log probability)], bytes)
nb::tuple as_tuple(const Delta& delta) {
  if (!delta.token) return nb::make_tuple(delta.answer, nb::none(), nb::none(), nb::list(), as_bytes(delta.bytes));
  nb::list top;
  for (const auto& one : delta.token->top) top.append(nb::make_tuple(one.id, one.logprob));
  return nb::make_tuple(delta.answer, delta.token->chosen.id, delta.token->chosen.logprob, top, as_bytes(delta.bytes));
}

}  // namespace

/// winnow/_stream.py decodes the bytes.
void bind_stream(nb::module_& m) {
  nb::class_<Stream>(m, "Stream", "Answers as they are generated: the deltas of winnow.Stream.")
      .def(nb::new_([](std::vector<CachePointer> caches, const std::optional<std::string>& question, int max_tokens,
                       int min_tokens, float temperature, int top_k, float top_p, float min_p, float repeat_penalty,
                       std::uint32_t seed, std::vector<std::string> stop, int logprobs, std::string grammar) {
             return std::make_shared<Stream>(
                 std::move(caches), question,
                 options_of(max_tokens, min_tokens, temperature, top_k, top_p, min_p, repeat_penalty, seed,
                            std::move(stop), logprobs, std::move(grammar)));
           }),
           nb::arg("caches"), nb::arg("question").none(), nb::arg("max_tokens"), nb::arg("min_tokens"),
           nb::arg("temperature"), nb::arg("top_k"), nb::arg("top_p"), nb::arg("min_p"), nb::arg("repeat_penalty"),
           nb::arg("seed"), nb::arg("stop"), nb::arg("logprobs"), nb::arg("grammar"))
      .def("next",
           [](Stream& self) -> nb::object {
             const auto delta = self.next();
             return delta ? nb::object(as_tuple(*delta)) : nb::none();
           })
      .def("close", &Stream::close)
      .def("answers", [](const Stream& self) {
        nb::list out;
        for (const auto& answer : self.answers())
          out.append(nb::make_tuple(as_bytes(answer.text), answer.tokens, name_of(answer.finish)));
        return out;
      });
}

}  // namespace winnow::python
