// SPDX-License-Identifier: Apache-2.0
#include "winnow/session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/memory.h"
#include "bind.h"
#include "options.h"
#include "session_cache.h"
#include "winnow/error.h"
#include "winnow/questions.h"

namespace winnow::python {

namespace {

using SessionPointer = std::shared_ptr<SessionState>;
using Caches = std::vector<CachePointer>;

template <class T>
T chosen(const std::string& name, const char* what, std::initializer_list<std::pair<const char*, T>> all) {
  std::string known;
  for (const auto& [each, value] : all) {
    if (name == each) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each);
  }
  throw UsageError(fmt::format("'{}' is not a {}: give one of {}", name, what, known));
}

SessionPointer make_session(std::shared_ptr<Model> model, int threads, const std::string& precision,
                            const std::string& pack, int chunk, const std::string& calibration,
                            std::optional<std::size_t> prefix_memory, const std::string& texts, std::size_t texts_size,
                            const std::string& text_type) {
  SessionOptions options;
  options.threads = threads;
  options.precision = chosen<Precision>(
      precision, "precision", {{"auto", Precision::automatic}, {"bf16", Precision::bf16}, {"f32", Precision::f32}});
  options.pack =
      chosen<Pack>(pack, "packing", {{"auto", Pack::automatic}, {"layer", Pack::layer}, {"resident", Pack::resident}});
  options.chunk = chunk;
  options.calibration = calibration;
  options.texts = {prefix_memory.value_or(available_memory() / 4), texts, texts_size,
                   chosen<TextType>(text_type, "text type", {{"exact", TextType::exact}, {"q8_0", TextType::q8_0}})};
  const nb::gil_scoped_release nogil;
  return std::make_shared<SessionState>(std::move(model), options);
}

/// Warns if the prompt is longer than the model's context. Raises the warning if Python is configured to.
void warn_of_context(const SessionPointer& session, const Transcript& transcript) {
  const auto tokens = transcript.tokens.size();
  const int context = session->model()->info().context;
  if (tokens <= static_cast<std::size_t>(context)) return;
  const auto text = fmt::format("the prompt has {} tokens, more than the model's context of {}: answers may be worse",
                                tokens, context);
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) nb::raise_python_error();
}

Caches wrap(const SessionPointer& session, Prefilled prefilled, const Transcript& transcript) {
  warn_of_context(session, transcript);
  const auto logits = share(std::move(prefilled.logits));
  const int cached = prefilled.cached_tokens;
  Caches out;
  for (auto& cache : prefilled.caches)
    out.push_back(std::make_shared<SessionCache>(session, std::move(cache), logits, transcript, cached));
  return out;
}

Caches read_tokens(const SessionPointer& self, const nb::object& tokens, const nb::object& caches) {
  const auto options = all_cache_options_of(caches, Protocol::agnostic);
  const Transcript transcript{{"", {}, PromptFormat::raw}, tokens_of(tokens)};
  auto read = self->call([&](Session& session) { return session.prefill(transcript.tokens, options); });
  return wrap(self, std::move(read), transcript);
}

Caches read(const SessionPointer& self, const std::string& text, const nb::object& caches, const std::string& system,
            const std::string& format) {
  const auto options = all_cache_options_of(caches, Protocol::agnostic);
  Transcript transcript{before_question({text, "", system, format_of(format)}), {}};
  auto prefilled = self->call([&](Session& session) {
    transcript.tokens = session.model().tokenize(transcript.conversation);
    return session.prefill(transcript.tokens, options);
  });
  return wrap(self, std::move(prefilled), transcript);
}

/// [question][cache]
std::vector<Caches> prefill(const SessionPointer& self, const std::string& text,
                            const std::vector<std::string>& questions, const nb::object& caches,
                            const std::string& protocol, const std::string& system, const std::string& format) {
  const auto when = protocol_of(protocol);
  const auto options = all_cache_options_of(caches, when);
  const auto conversation = before_question({text, "", system, format_of(format)});
  if (questions.empty()) throw UsageError("there is no question: give one, or use read()");
  auto rows = self->call([&](Session& session) {
    auto prompts = session.model().tokenize(conversation, questions);
    Questions asking(session, prompts.text, prompts.questions, when, options);
    std::vector<Caches> out;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      Transcript transcript{conversation.with_question(questions[i]), prompts.text};
      transcript.tokens.insert(transcript.tokens.end(), prompts.questions[i].begin(), prompts.questions[i].end());
      AnswerStart start = asking.ask(i);
      auto& row = out.emplace_back();
      for (std::size_t c = 0; c < start.caches.size(); ++c)
        row.push_back(std::make_shared<SessionCache>(
            self, std::move(start.caches[c]), share(std::move(start.logits[c])), transcript, start.cached_tokens));
    }
    return out;
  });
  const auto tokens = [](const Caches& row) { return row.front()->transcript().tokens.size(); };
  warn_of_context(self, std::ranges::max_element(rows, {}, tokens)->front()->transcript());
  return rows;
}

void check_own(const SessionPointer& self, const SessionCache& cache) {
  if (&cache.session() != self.get()) throw UsageError("the cache belongs to another session");
}

/// Restores the transcript if reading fails.
template <class More>
void extend(const SessionPointer& self, SessionCache& cache, const More& more) {
  check_own(self, cache);
  self->call([&](Session& session) {
    auto& inner = cache.cache();
    const Transcript before = cache.transcript();
    try {
      cache.set_logits(share(session.extend(inner, cache.tokens_for(more))));
    } catch (...) {
      cache.transcript() = before;
      throw;
    }
    return true;
  });
}

Rows step(const SessionPointer& self, const Caches& caches, const nb::object& tokens) {
  const auto next = tokens_of(tokens);
  if (next.size() != caches.size() || caches.empty())
    throw UsageError(fmt::format("{} tokens for {} caches: give one for each", next.size(), caches.size()));
  for (const auto& cache : caches) check_own(self, *cache);
  const auto vocabulary = static_cast<std::size_t>(self->model()->info().n_vocab);
  std::vector<float> logits(next.size() * vocabulary);
  self->call([&](Session& session) {
    std::vector<Cache*> inner;
    for (const auto& cache : caches) {
      inner.push_back(&cache->cache());
      if (!cache->unseen().empty())
        throw UsageError("the cache has not read the last tokens of its answer: extend() reads them");
      if (std::count(inner.begin(), inner.end(), inner.back()) > 1)
        throw UsageError("a cache is given twice: give different ones");
    }
    session.step(inner, next, logits);
    return true;
  });
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * vocabulary);
    caches[i]->transcript().tokens.push_back(next[i]);
    caches[i]->set_logits(share({row, row + static_cast<std::ptrdiff_t>(vocabulary)}));
  }
  return array_of<Rows>(std::move(logits), {next.size(), vocabulary});
}

void save(const SessionPointer& self, const std::string& path, SessionCache& cache) {
  check_own(self, cache);
  const auto& tokens = cache.transcript().tokens;
  if (std::ranges::find(tokens, kUnknown) != tokens.end())
    throw UsageError("a cache of documents cannot be saved: the documents are in their store");
  self->call([&](Session& session) {
    const auto& logits = cache.logits();
    session.save(path, cache.cache(), logits ? std::span<const float>(*logits) : std::span<const float>(),
                 cache.transcript());
    return true;
  });
}

CachePointer load(const SessionPointer& self, const std::string& path) {
  return self->call([&](Session& session) {
    auto restored = session.load(path);
    return std::make_shared<SessionCache>(self, std::move(restored.cache), share(std::move(restored.logits)),
                                          std::move(restored.transcript));
  });
}

MemoryUse memory(const SessionPointer& self) {
  return self->look([](Session& session) { return session.memory(); });
}

void bind_reading(nb::class_<SessionState>& session) {
  session
      .def("prefill", prefill, nb::arg("text"), nb::arg("questions"), nb::arg("caches") = "full", nb::kw_only(),
           nb::arg("protocol") = "question-aware", nb::arg("system") = "", nb::arg("format") = "chat",
           nb::sig(
               "def prefill(self, text: str, questions: typing.Sequence[str], caches: CacheOptions | str | tuple | "
               "typing.Sequence = 'full', *, protocol: str = 'question-aware', system: str = '', format: str = 'chat') "
               "-> list[list[Cache]]"),
           "Reads the text once, and each question after it: [question][cache], ready to answer.\n"
           "caches: specs, (spec, budget) or (spec, budget, kv_type). protocol: 'question-aware' compresses after the\n"
           "question is seen, 'question-agnostic' before. Raises Error.")
      .def("read", read, nb::arg("text"), nb::arg("caches") = "full", nb::kw_only(), nb::arg("system") = "",
           nb::arg("format") = "chat",
           nb::sig("def read(self, text: str, caches: CacheOptions | str | tuple | typing.Sequence = 'full', *, "
                   "system: str = '', format: str = 'chat') -> list[Cache]"),
           "Reads a text for later questions. Returns a cache for each of `caches`.")
      .def("read_tokens", read_tokens, nb::arg("tokens"), nb::arg("caches") = "full",
           nb::sig(
               "def read_tokens(self, tokens: typing.Sequence[int] | numpy.ndarray, caches: CacheOptions | str | tuple "
               "| typing.Sequence = 'full') -> list[Cache]"),
           "The same for tokens, BOS included. Raises InputError for an unknown token.")
      .def("extend", extend<std::string>, nb::arg("cache"), nb::arg("question"),
           "Reads the next question of the cache's conversation, with the chat template, or as plain text after\n"
           "read_tokens() and format='raw'. The cache's logits are then those of the last token.")
      .def(
          "extend_tokens",
          [](const SessionPointer& self, SessionCache& cache, const nb::object& tokens) {
            extend(self, cache, tokens_of(tokens));
          },
          nb::arg("cache"), nb::arg("tokens"),
          nb::sig("def extend_tokens(self, cache: Cache, tokens: typing.Sequence[int] | numpy.ndarray) -> None"),
          "The same for tokens.")
      .def("step", step, nb::arg("caches"), nb::arg("tokens"),
           nb::sig("def step(self, caches: typing.Sequence[Cache], tokens: typing.Sequence[int] | numpy.ndarray) -> "
                   "numpy.ndarray"),
           "Appends tokens[i] to caches[i], all in one batch. Returns logits [caches, n_vocab] of float32.");
}

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<MemoryUse>(m, "MemoryUse", "Bytes of keys, values, hidden states and work space, without the weights.")
      .def_ro("held", &MemoryUse::held)
      .def_ro("peak", &MemoryUse::peak, "Peak since the session began.");
  nb::class_<SessionState> session(
      m, "Session",
      "Runs a model. Several threads may use one session: their calls run one after the other. Several sessions may\n"
      "share a model, and run at the same time. No call holds the GIL; Ctrl-C stops one.");
  session
      .def(nb::new_(&make_session), nb::arg("model"), nb::kw_only(), nb::arg("threads") = 0,
           nb::arg("precision") = "auto", nb::arg("pack") = "auto", nb::arg("chunk") = 512, nb::arg("calibration") = "",
           nb::arg("prefix_memory") = nb::none(), nb::arg("texts") = "",
           nb::arg("texts_size") = TextOptions().place_size, nb::arg("text_type") = "exact",
           "threads: 0 is all cores. precision: 'auto', 'bf16', 'f32'. pack: 'auto', 'layer', 'resident'.\n"
           "chunk: tokens of a prompt that pass through a layer together. calibration: a file of `winnow calibrate`.\n"
           "prefix_memory: bytes for keys and values of prompts, so that a prompt that begins like an earlier one\n"
           "reads only the rest; None is a quarter of the free memory, 0 none. texts: a folder or the address of a\n"
           "Redis server that also stores them; texts_size: most bytes of the folder. text_type: 'exact', or 'q8_0'\n"
           "for about half the bytes, with slightly different results over kept prompts.\n"
           "Raises UsageError, InputError, OutOfMemoryError.")
      .def("save", save, nb::arg("path"), nb::arg("cache"), "Writes a cache to a file. Raises InputError, UsageError.")
      .def("load", load, nb::arg("path"), "Reads a file of save() or `winnow run --save-kv`. Raises InputError.")
      .def("memory", memory)
      .def("stop", &SessionState::stop, "Makes another thread's call raise Interrupted.")
      .def("close", &SessionState::close, "Closes the session. It and its caches cannot be used afterwards.")
      .def_prop_ro("model", [](const SessionPointer& self) { return std::const_pointer_cast<Model>(self->model()); })
      .def("__enter__", [](const SessionPointer& self) { return self; })
      .def(
          "__exit__", [](const SessionPointer& self, const nb::args&) { self->close(); }, nb::arg("args"));
  bind_reading(session);
}

}  // namespace winnow::python
