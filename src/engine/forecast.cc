// SPDX-License-Identifier: Apache-2.0
#include "winnow/forecast.h"

#include <algorithm>

#include "base/as_size.h"
#include "base/clock.h"
#include "engine/decode.h"
#include "engine/extension.h"
#include "engine/layers.h"
#include "engine/promise.h"
#include "engine/prompt_reading.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"

namespace winnow {

namespace {

/// Tokens of a question that pass through all layers together.
int rows_at_once(const CacheOptions& keep, int question) {
  return keep.spec.method().changes_while_decoding() ? 1 : std::clamp(question, 1, engine::kExtendRows);
}

/// Reads the beginning of a prompt, and `rows` tokens after it. Then the session has the work space that a chunk of
/// each of `lengths` and any step of so many rows needs: products of a last, shorter chunk may need more than others.
void measure(Session& session, std::span<const Token> tokens, std::span<const int> lengths, int rows, Forecast& out) {
  const int chunk = session.impl().options.chunk;
  const auto sample = tokens.first(std::min(tokens.size(), as_size(chunk)));
  const CacheOptions full;
  for (const int length : lengths) {
    const std::vector<Token> last(as_size(length % chunk), sample.front());
    if (!last.empty()) session.prefill(last, std::span(&full, 1));
  }
  const auto begin = Clock::now();
  auto read = session.prefill(sample, std::span(&full, 1));
  out.measured_ms = ms_since(begin);
  out.measured_tokens = static_cast<int>(sample.size());
  session.extend(read.caches.front(), std::vector<Token>(as_size(rows), sample.front()));
}

/// Bytes of weights that a pass of so many rows packs; those that are resident are there already.
std::size_t packed_bytes(const Session::Impl& session, int rows) {
  return session.options.pack == Pack::resident ? 0 : session.executor.packed_bytes(rows);
}

/// What asks about one text.
struct Asked {
  const CacheOptions& keep;
  int text;      ///< tokens before
  int question;  ///< that are appended
  int answer;
  engine::PastSize past;  ///< of the text
};

/// Bytes by which a text's cache grows while it is asked, with all that this takes.
std::size_t asking_bytes(const Session::Impl& session, const Asked& asked) {
  const int more = asked.question + asked.answer;
  const std::size_t grown = engine::growth_bytes(asked.keep, session.hparams, asked.text, more);
  const std::size_t reading = engine::extension_bytes(session, asked.keep, asked.question, asked.past) +
                              (asked.question > 0 ? packed_bytes(session, asked.question) : 0);
  const int rows = rows_at_once(asked.keep, asked.question);
  return grown + reading + engine::step_bytes(asked.keep, session.hparams, {asked.text, more, rows});
}

/// Rows of a text and of each question, which are read in chunks of their own.
std::vector<int> lengths_of(int text, std::span<const std::vector<Token>> questions) {
  std::vector<int> out{text};
  for (const auto& question : questions) out.push_back(static_cast<int>(question.size()));
  return out;
}

int longest(std::span<const std::vector<Token>> questions) {
  std::size_t most = 0;
  for (const auto& question : questions) most = std::max(most, question.size());
  return static_cast<int>(most);
}

std::int64_t sum(std::span<const std::vector<Token>> questions) {
  std::int64_t out = 0;
  for (const auto& question : questions) out += static_cast<std::int64_t>(question.size());
  return out;
}

/// All of a text is read before anything is asked; each question but the last one has a copy of its cache.
std::size_t peak_of_text(const Session::Impl& session, int text, std::span<const std::vector<Token>> questions,
                         const CacheOptions& keep, int answer) {
  const engine::PromptSize size(text);
  const std::size_t read = engine::reading_bytes(session, text, text, std::span(&size, 1), std::span(&keep, 1)) +
                           packed_bytes(session, text);
  const std::size_t kept = engine::cache_bytes(keep, session.hparams, size);
  const auto type = engine::scratch_type(session.options.precision, std::span(&keep, 1));
  const auto past = engine::past_size(type, session.hparams, text, engine::rows_kept(keep, session.hparams, size));
  const std::size_t copies = questions.size() > 1 ? 2 : 1;
  return std::max(read, copies * kept + asking_bytes(session, {keep, text, longest(questions), answer, past}));
}

/// Each question is read together with the text, and what is kept of all is there at once.
std::size_t peak_of_prompts(const Session::Impl& session, int text, std::span<const std::vector<Token>> questions,
                            const CacheOptions& keep, int answer) {
  std::vector<engine::PromptSize> prompts;
  int rows = text;
  std::size_t kept = 0;
  std::size_t asking = 0;
  for (const auto& question : questions) {
    prompts.push_back(engine::size_of(as_size(text), question.size()));
    rows += static_cast<int>(question.size());
    kept += engine::cache_bytes(keep, session.hparams, prompts.back());
    asking = std::max(asking, asking_bytes(session, {keep, prompts.back().tokens, 0, answer, {}}));
  }
  const std::size_t read = engine::reading_bytes(session, text, rows, prompts, std::span(&keep, 1));
  return std::max(read + packed_bytes(session, rows), kept + asking);
}

}  // namespace

Forecast forecast(Session& session, std::span<const Token> text, std::span<const std::vector<Token>> questions,
                  Protocol protocol, const CacheOptions& keep, int answer) {
  auto& s = session.impl();
  Forecast out;
  const int tokens = static_cast<int>(text.size());
  const bool is_apart = questions.empty() || (protocol == Protocol::agnostic && tokens > 0);
  measure(session, text.empty() ? std::span<const Token>(questions.front()) : text, lengths_of(tokens, questions),
          rows_at_once(keep, is_apart ? longest(questions) : 0), out);
  const auto held = session.memory().held;
  if (is_apart) {
    const engine::PromptSize size(tokens);
    out.rows = engine::reading_rows(s, tokens, std::span(&size, 1), std::span(&keep, 1)) + sum(questions);
    out.peak_bytes = held + peak_of_text(s, tokens, questions, keep, answer);
    return out;
  }
  std::vector<engine::PromptSize> prompts;
  for (const auto& question : questions) prompts.push_back(engine::size_of(text.size(), question.size()));
  const int rows = tokens + static_cast<int>(sum(questions));
  out.rows = engine::reading_rows(s, rows, prompts, std::span(&keep, 1));
  out.peak_bytes = held + peak_of_prompts(s, tokens, questions, keep, answer);
  return out;
}

Forecast forecast(Session& session, const Cache& text, std::span<const std::vector<Token>> questions, int answer) {
  auto& s = session.impl();
  const auto& sequence = text.impl();
  const auto& keep = sequence.options();
  Forecast out;
  const auto& first = *std::ranges::max_element(questions, {}, [](const auto& question) { return question.size(); });
  if (first.empty()) {
    out.measured_tokens = 1;  // nothing is read
  } else {
    measure(session, first, lengths_of(0, questions), rows_at_once(keep, longest(questions)), out);
  }
  out.rows = sum(questions);
  const auto past =
      engine::Past(sequence, sequence.seen).size(engine::scratch_type(s.options.precision, std::span(&keep, 1)));
  const std::size_t copy = questions.size() > 1 ? sequence.bytes_held() : 0;
  out.peak_bytes =
      session.memory().held + copy + asking_bytes(s, {keep, sequence.seen, longest(questions), answer, past});
  return out;
}

}  // namespace winnow
