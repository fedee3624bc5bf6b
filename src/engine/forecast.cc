// SPDX-License-Identifier: Apache-2.0
#include "winnow/forecast.h"

#include <algorithm>

#include "base/as_size.h"
#include "base/clock.h"
#include "engine/cache_bytes.h"
#include "engine/decode.h"
#include "engine/extension.h"
#include "engine/layers.h"
#include "engine/past.h"
#include "engine/precision.h"
#include "engine/reading_plan.h"
#include "engine/session_impl.h"

namespace winnow {

namespace {

/// The most tokens of a question that pass through all layers together.
int rows_at_once(const CacheOptions& keep, std::span<const std::vector<Token>> questions) {
  const auto& method = keep.spec.method();
  std::size_t most = 1;
  for (const auto& question : questions) {
    if (!engine::passes_by_layers(method, question.size())) most = std::max(most, question.size());
  }
  return method.changes_while_decoding() ? 1 : static_cast<int>(std::min(most, as_size(engine::kExtendRows)));
}

/// Reads a chunk of `chunk` tokens, repeating `tokens` if they are too few, and then appends `appended` more.
/// Afterwards the session holds the part of attention's work space that does not depend on earlier tokens.
void measure(Session& session, std::span<const Token> tokens, int chunk, int appended, Forecast& out) {
  std::vector<Token> sample;
  while (sample.size() < as_size(chunk)) sample.push_back(tokens[sample.size() % tokens.size()]);
  const CacheOptions full;
  session.prefill(sample, std::span(&full, 1));  // loads the weights into memory
  const auto begin = Clock::now();
  auto read = session.prefill(sample, std::span(&full, 1));
  out.measured_ms = ms_since(begin);
  out.measured_tokens = chunk;
  session.extend(read.caches.front(), std::vector<Token>(as_size(appended), sample.front()));
}

/// Allocates the session's work space for matrix products in such a reading.
void reserve(Session::Impl& session, const engine::ReadingPlan& plan) {
  const auto pass = session.begin_pass(as_size(plan.first().prompt_rows()), plan.bytes().all());
  session.executor.reserve(pass, plan.chunk_sizes(), static_cast<int>(plan.rows()));
}

/// Bytes of weights that a pass of `rows` rows packs; 0 if packed weights are resident already.
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
  int text;                                       ///< tokens before the questions
  std::span<const std::vector<Token>> questions;  ///< appended to the text, each to a copy of its cache
  int answer;
  engine::PastSize past;  ///< size of the text's cache
};

/// Bytes by which a text's cache grows while a question is read and answered, work space included.
std::size_t asking_bytes(const Session::Impl& session, const Asked& asked) {
  const int question = longest(asked.questions);
  const int more = question + asked.answer;
  const std::size_t grown = engine::growth_bytes(asked.keep, session.hparams, asked.text, more);
  const std::size_t reading = engine::extension_bytes(session, asked.keep, question, asked.past) +
                              (question > 0 ? packed_bytes(session, question) : 0);
  const int rows = rows_at_once(asked.keep, asked.questions);
  return grown + reading + session.stepper.bytes(asked.keep, {asked.text, more, rows});
}

std::int64_t sum(std::span<const std::vector<Token>> questions) {
  std::int64_t out = 0;
  for (const auto& question : questions) out += static_cast<std::int64_t>(question.size());
  return out;
}

/// The same for each question that is read layer by layer.
void reserve_questions(Session::Impl& session, const CacheOptions& keep,
                       std::span<const std::vector<Token>> questions) {
  for (const auto& question : questions) {
    const int rows = static_cast<int>(question.size());
    if (!engine::passes_by_layers(keep.spec.method(), question.size())) continue;
    std::vector<int> chunks;
    for (const auto& chunk : engine::chunks_of(rows, session.options.chunk)) chunks.push_back(chunk.count);
    session.executor.reserve(session.begin_pass(question.size(), 0), chunks, rows);
  }
}

/// Peak bytes of the session: those held throughout, the work space that stays after reading, and the larger of two
/// temporary parts.
std::size_t peak(const Session::Impl& session, const engine::ReadingBytes& reading, std::size_t packed,
                 std::size_t asking) {
  return session.account.held() + reading.work + std::max(reading.rest + packed, asking);
}

/// The text is read before the questions. Each question but the last one has a copy of its cache.
std::size_t text_peak(Session::Impl& session, const engine::ReadingPlan& plan,
                      std::span<const std::vector<Token>> questions, const CacheOptions& keep, int answer) {
  reserve_questions(session, keep, questions);
  const int text = plan.first().text();
  const std::size_t kept = engine::cache_bytes(keep, session.hparams, text);
  const auto type = engine::scratch_type(session.options.precision, std::span(&keep, 1));
  const auto past = engine::past_size(type, session.hparams, text, engine::rows_kept(keep, session.hparams, text));
  const std::size_t copies = questions.size() > 1 ? 2 : 1;
  return peak(session, plan.bytes(), packed_bytes(session, text),
              copies * kept + asking_bytes(session, {keep, text, questions, answer, past}));
}

/// Each question is read together with the text, and the caches of all of them exist at once.
std::size_t prompts_peak(Session::Impl& session, const engine::ReadingPlan& plan, const CacheOptions& keep,
                         int answer) {
  std::size_t kept = 0;
  std::size_t asking = 0;
  for (const auto& branch : plan.first().branches()) {
    const auto& prompt = branch.prompt.size;
    kept += engine::cache_bytes(keep, session.hparams, prompt);
    asking = std::max(asking, asking_bytes(session, {keep, prompt.tokens, {}, answer, {}}));
  }
  return peak(session, plan.bytes(), packed_bytes(session, plan.first().prompt_rows()), kept + asking);
}

}  // namespace

Forecast forecast(Session& session, std::span<const Token> text, std::span<const std::vector<Token>> questions,
                  Protocol protocol, const CacheOptions& keep, int answer) {
  auto& s = session.impl();
  Forecast out;
  const bool is_apart = questions.empty() || (protocol == Protocol::agnostic && !text.empty());
  const std::vector<std::vector<Token>> nothing(1);
  const auto together = is_apart ? std::span<const std::vector<Token>>(nothing) : questions;
  const engine::ReadingPlan plan(s, engine::sizes_of(text.size(), together), std::span(&keep, 1));
  out.rows = plan.rows() + (is_apart ? sum(questions) : 0);
  const auto appended = is_apart ? questions : std::span<const std::vector<Token>>();
  const int chunk = std::max(plan.chunk_sizes().back(), std::min(longest(appended), s.options.chunk));
  measure(session, text.empty() ? std::span<const Token>(questions.front()) : text, chunk, rows_at_once(keep, appended),
          out);
  reserve(s, plan);
  out.peak_bytes = is_apart ? text_peak(s, plan, questions, keep, answer) : prompts_peak(s, plan, keep, answer);
  return out;
}

}  // namespace winnow
