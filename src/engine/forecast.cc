// SPDX-License-Identifier: Apache-2.0
#include "winnow/forecast.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/as_size.h"
#include "base/clock.h"
#include "engine/decode.h"
#include "engine/extension.h"
#include "engine/layers.h"
#include "engine/promise.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"

namespace winnow {

namespace {

/// Tokens of questions after a text that pass through all layers together, at most.
int rows_at_once(const CacheOptions& keep, std::span<const std::vector<Token>> questions) {
  const auto& method = keep.spec.method();
  std::size_t most = 1;
  for (const auto& question : questions) {
    if (!engine::passes_by_layers(method, question.size())) most = std::max(most, question.size());
  }
  return method.changes_while_decoding() ? 1 : static_cast<int>(std::min(most, as_size(engine::kExtendRows)));
}

/// Chunks in which so many rows each pass through the layers, without repeats.
std::vector<int> chunks(std::span<const int> rows, int chunk) {
  std::set<int> out;
  for (const int some : rows) {
    for (const auto& range : engine::chunks_of(some, chunk)) out.insert(range.count);
  }
  return {out.begin(), out.end()};
}

/// Reads as many tokens as chunks of so many rows have, from the beginning, over and over where they are too few, and
/// then `appended` more. Afterwards the session has the work space of attention that does not depend on what comes
/// before.
void measure(Session& session, std::span<const Token> tokens, int rows, int appended, Forecast& out) {
  const int chunk = std::min(rows, session.impl().options.chunk);
  std::vector<Token> sample;
  while (sample.size() < as_size(chunk)) sample.push_back(tokens[sample.size() % tokens.size()]);
  const CacheOptions full;
  session.prefill(sample, std::span(&full, 1));  // the weights come into memory
  const auto begin = Clock::now();
  auto read = session.prefill(sample, std::span(&full, 1));
  out.measured_ms = ms_since(begin);
  out.measured_tokens = chunk;
  session.extend(read.caches.front(), std::vector<Token>(as_size(appended), sample.front()));
}

/// Gives the session the work space of products in a pass over such rows.
void reserve(Session::Impl& session, std::span<const int> rows, int of_pass, std::size_t need) {
  const auto pass = session.begin_pass(as_size(of_pass), need);
  session.executor.reserve(pass, chunks(rows, session.options.chunk), std::accumulate(rows.begin(), rows.end(), 0));
}

/// Bytes of weights that a pass of so many rows packs; those that are resident are there already.
std::size_t packed_bytes(const Session::Impl& session, int rows) {
  return session.options.pack == Pack::resident ? 0 : session.executor.packed_bytes(rows);
}

int longest(std::span<const std::vector<Token>> questions) {
  std::size_t most = 0;
  for (const auto& question : questions) most = std::max(most, question.size());
  return static_cast<int>(most);
}

/// A text, and the questions about it.
struct Asked {
  const CacheOptions& keep;
  int text;                                       ///< tokens before
  std::span<const std::vector<Token>> questions;  ///< that are appended
  int answer;
  engine::PastSize past;  ///< of the text
};

/// Bytes by which a text's cache grows while it is asked, with all that this takes.
std::size_t asking_bytes(const Session::Impl& session, const Asked& asked) {
  const int question = longest(asked.questions);
  const int more = question + asked.answer;
  const std::size_t grown = engine::growth_bytes(asked.keep, session.hparams, asked.text, more);
  const std::size_t reading = engine::extension_bytes(session, asked.keep, question, asked.past) +
                              (question > 0 ? packed_bytes(session, question) : 0);
  const int rows = rows_at_once(asked.keep, asked.questions);
  return grown + reading + engine::step_bytes(asked.keep, session.hparams, {asked.text, more, rows});
}

std::int64_t sum(std::span<const std::vector<Token>> questions) {
  std::int64_t out = 0;
  for (const auto& question : questions) out += static_cast<std::int64_t>(question.size());
  return out;
}

/// The same for each question that is read in a pass of its own.
void reserve_questions(Session::Impl& session, const CacheOptions& keep,
                       std::span<const std::vector<Token>> questions) {
  for (const auto& question : questions) {
    const int rows = static_cast<int>(question.size());
    if (engine::passes_by_layers(keep.spec.method(), question.size())) reserve(session, std::span(&rows, 1), rows, 0);
  }
}

/// The session's bytes: held in any case, with the work space that stays after reading, and those that come and go.
std::size_t peak(const Session::Impl& session, const engine::ReadingBytes& reading, std::size_t packed,
                 std::size_t asking) {
  return session.account.held() + reading.work + std::max(reading.rest + packed, asking);
}

/// All of a text is read before anything is asked; each question but the last one has a copy of its cache.
std::size_t text_peak(Session::Impl& session, int text, std::span<const int> rows,
                      std::span<const std::vector<Token>> questions, const CacheOptions& keep, int answer) {
  const engine::PromptSize size(text);
  const auto reading = engine::reading_bytes(session, text, text, std::span(&size, 1), std::span(&keep, 1));
  reserve(session, rows, text, reading.all());
  reserve_questions(session, keep, questions);
  const std::size_t kept = engine::cache_bytes(keep, session.hparams, size);
  const auto type = engine::scratch_type(session.options.precision, std::span(&keep, 1));
  const auto past = engine::past_size(type, session.hparams, text, engine::rows_kept(keep, session.hparams, size));
  const std::size_t copies = questions.size() > 1 ? 2 : 1;
  return peak(session, reading, packed_bytes(session, text),
              copies * kept + asking_bytes(session, {keep, text, questions, answer, past}));
}

/// Each question is read together with the text, and what is kept of all is there at once.
std::size_t prompts_peak(Session::Impl& session, int text, std::span<const int> rows,
                         std::span<const engine::PromptSize> prompts, const CacheOptions& keep, int answer) {
  std::size_t kept = 0;
  std::size_t asking = 0;
  int of_pass = text;
  for (const auto& prompt : prompts) {
    of_pass += prompt.tokens - text;
    kept += engine::cache_bytes(keep, session.hparams, prompt);
    asking = std::max(asking, asking_bytes(session, {keep, prompt.tokens, {}, answer, {}}));
  }
  const auto reading = engine::reading_bytes(session, text, of_pass, prompts, std::span(&keep, 1));
  reserve(session, rows, of_pass, reading.all());
  return peak(session, reading, packed_bytes(session, of_pass), kept + asking);
}

}  // namespace

Forecast forecast(Session& session, std::span<const Token> text, std::span<const std::vector<Token>> questions,
                  Protocol protocol, const CacheOptions& keep, int answer) {
  auto& s = session.impl();
  Forecast out;
  const int tokens = static_cast<int>(text.size());
  const bool is_apart = questions.empty() || (protocol == Protocol::agnostic && tokens > 0);
  std::vector<engine::PromptSize> prompts;
  if (is_apart) prompts.emplace_back(tokens);
  for (const auto& question : questions) {
    if (!is_apart) prompts.push_back(engine::size_of(text.size(), question.size()));
  }
  const auto rows = engine::reading_rows(s, tokens, prompts, std::span(&keep, 1));
  out.rows = std::accumulate(rows.begin(), rows.end(), is_apart ? sum(questions) : 0);
  const auto appended = is_apart ? questions : std::span<const std::vector<Token>>();
  measure(session, text.empty() ? std::span<const Token>(questions.front()) : text,
          std::max(*std::ranges::max_element(rows), longest(appended)), rows_at_once(keep, appended), out);
  out.peak_bytes = is_apart ? text_peak(s, tokens, rows, questions, keep, answer)
                            : prompts_peak(s, tokens, rows, prompts, keep, answer);
  return out;
}

}  // namespace winnow
