// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"
#include "winnow/generate.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow {

namespace engine {
class CacheSource;
}  // namespace engine

/// How a request has ended.
struct RequestEnd {
  std::vector<Generation> answers;  ///< as far as they have come, [answers]
  /// [answers], or the request's own cache where no answer has begun, or none. CacheStats::tokens_seen says how far
  /// each has read: an answer's last token may be missing. After an error other than MemoryError they cannot be gone on
  /// with.
  std::vector<Cache> caches;
  std::vector<GeneratedToken> prompt_logprobs;  ///< of the text's tokens from the second on, where they were asked for
  int cached_tokens = 0;                        ///< of the text, that were not read because they were stored
  std::exception_ptr error;                     ///< what has ended it; null: nothing has
  double queue_ms = 0;                          ///< before it began
  double read_ms = 0;                           ///< from then on until its first token
  double answer_ms = 0;                         ///< from then on
};

/// Who hears of a request, from within Scheduler::advance(). All may be empty. They may call add() and cancel(). What
/// they throw ends the request with that error; on_end() must not throw.
struct RequestEvents {
  /// `text` has been read and compressed, or found; with the logits of its last token, [n_vocab].
  std::function<void(const Cache&, std::span<const float>)> on_text;
  /// The whole prompt has been read: an answer begins with these logits.
  std::function<void(const Cache&, std::span<const float>)> on_prompt;
  /// Which answer, its next token (with alternatives if they are asked for), and the bytes that have become sure. Bytes
  /// that are still held back in the end, as a stop text might have begun, are in RequestEnd only.
  std::function<void(int, const GeneratedToken&, std::string_view)> on_token;
  /// Once for every request, whatever has ended it; not for those that a scheduler takes along when it is destroyed.
  std::function<void(RequestEnd)> on_end;
};

/// A text to be read, how it is kept, and what is generated after it.
struct Request {
  std::vector<Token> text;  ///< read layer by layer, and compressed by `keep`
  /// Last tokens of the text, or of its last stage, that are the question, for methods that go by it; 0: not known.
  std::size_t asked = 0;
  /// Where the stages of the text end, ascending; the last one is its end. Each stage is compressed by itself: the
  /// first as a prompt, the others as Session::extend() and Session::compress() would one after another, and all by no
  /// less than the method works with. So a conversation that goes on has the stages that it had before. Empty: the text
  /// is one prompt.
  std::vector<std::size_t> stages = {};
  CacheOptions keep;                            ///< of the text
  std::optional<Cache> cache;                   ///< in the place of a text: what is gone on with
  std::shared_ptr<engine::CacheSource> source;  ///< in the place of both: what makes the cache, as `keep` says
  std::vector<float> logits;    ///< [n_vocab] of the last token of `cache`, where no question follows it
  std::vector<Token> question;  ///< appended to what has been compressed; may be empty
  GenerateOptions generate;
  int answers = 1;  ///< which differ by their seeds: the i-th has seed + i
  /// Set: the log probabilities of the text's tokens are computed, with so many alternatives each. They come from full
  /// attention, which is how a text is read whatever is kept of it. Such a text is always read.
  std::optional<int> prompt_logprobs;
  /// Set: what is kept of the text is stored for later requests with the same options and salt whose texts begin with
  /// the same stages, and they wait for it: what is kept after the last stage, and after the first, second, fourth,
  /// eighth and so on. An answer is the same whether its text was found or read.
  std::optional<std::string> cache_salt;
  std::string key;   ///< whose request it is; keys share the scheduler evenly, by tokens read and generated
  int priority = 0;  ///< among those of its key: higher ones begin first
  RequestEvents events = {};
};

/// A prompt that is compressed when its question has been seen, or before it. A prompt without text is its question.
WINNOW_EXPORT Request request_of(Prompt prompt, Protocol protocol);

struct WINNOW_EXPORT SchedulerOptions {
  /// Requests that are being read or answered at a time; others wait.
  int parallel = 16;
  /// Time from one token of an answer to the next while prompts are read; one quantum (one chunk through one layer) is
  /// always read.
  std::chrono::milliseconds max_itl = std::chrono::milliseconds(50);
  /// Bytes of keys, values, hidden states and work space that requests may be promised together.
  /// The machine must have them. Packed weights of one layer, the work space of a decode step, and caches of requests
  /// that wait, are not counted.
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  /// Bytes of the texts that are stored for later requests, besides.
  std::size_t prefix_memory = 0;

  /// Throws UsageError for a value out of its range.
  void check() const;
};

/// Use of stored texts by requests with a cache_salt.
struct PrefixUse {
  std::uint64_t asked = 0;  ///< tokens of the texts of all of them that have begun
  std::uint64_t found = 0;  ///< those that were stored
  int entries = 0;          ///< texts that are stored now
  std::size_t bytes = 0;    ///< that they hold
};

/// A request as it is now.
struct RequestState {
  enum class Phase : std::uint8_t { waiting, reading, answering };

  std::uint64_t id = 0;
  Phase phase = Phase::waiting;
  int prompt_tokens = 0;  ///< of all that its cache will have seen before the answer
  double read = 0;        ///< share of the prompt that has been read, 0 … 1
  int generated = 0;      ///< tokens of all its answers
  std::size_t bytes_promised = 0;
  std::size_t bytes_held = 0;    ///< of its caches, those that are being read included
  std::size_t entries_held = 0;  ///< of the same, over KV heads of layers without a window
};

/// Reads and answers any number of requests at once. An answer is bit for bit what the request would get alone, however
/// many others there are, whenever they came and left. Memory is promised before a request begins, so none fails in the
/// middle for want of it. Belongs to one thread, like its session, which does nothing else meanwhile.
class WINNOW_EXPORT Scheduler {
 public:
  using Id = std::uint64_t;

  /// Keeps a reference to the session. Throws UsageError.
  Scheduler(Session& session, const SchedulerOptions& options);
  ~Scheduler();

  /// Bytes that a request will be promised: the most that it can have in use. Throws InputError and UsageError as
  /// add().
  std::size_t bytes_of(const Request& request) const;
  /// Lowers `max_tokens` of a request, and `min_tokens` with it, so far that all that it can need fits into the memory
  /// (SchedulerOptions::memory) when it has that to itself; to 1 where nothing fits. What else runs does not count, so
  /// that answers do not depend on it. Throws InputError and UsageError as add().
  void fit_answers(Request& request) const;
  /// Throws InputError for a request with nothing to read or an unknown token, UsageError for options that do not go
  /// together, MemoryError for one that never fits; then no event is called, and the request is as it was.
  Id add(Request&& request);
  /// Ends a request before the next step, with what there is: on_end() is called by advance(). Nothing happens when it
  /// has ended before.
  void cancel(Id id);

  /// One decode step for all that are being answered, then prompts are read for the time that there is. Returns false
  /// when there is nothing left to do, or nothing before something outside has happened. An error belongs to the
  /// requests that it met, which end; only Interrupted (Session::on_stop()) is thrown, when all requests have ended
  /// with what there is.
  bool advance();

  std::vector<RequestState> states() const;
  /// Bytes that are promised now.
  std::size_t promised() const;
  PrefixUse prefix_use() const;
  /// The longest time, since the scheduler began, that answers have waited for one quantum of reading, with what is
  /// done before it (telling of requests that have ended, beginning others). Reading goes on beyond
  /// SchedulerOptions::max_itl for no longer.
  double longest_quantum_ms() const;

 private:
  struct WINNOW_NO_EXPORT Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
