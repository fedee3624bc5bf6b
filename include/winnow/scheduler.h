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
#include <variant>
#include <vector>

#include "winnow/export.h"
#include "winnow/generate.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow {

namespace engine {
class CacheSource;
}  // namespace engine

/// Result of a request.
struct RequestEnd {
  std::vector<Generation> answers;  ///< complete or partial, [answers]
  /// [answers], or the request's own cache if no answer has begun, or empty. CacheStats::tokens_seen tells how far each
  /// has read: the last token of an answer may be missing. After an error other than MemoryError the caches cannot be
  /// continued.
  std::vector<Cache> caches;
  std::vector<GeneratedToken> prompt_logprobs;  ///< of the text's tokens but the first, if requested
  int cached_tokens = 0;                        ///< tokens of the text that were not read, because they are stored
  std::exception_ptr error;                     ///< why the request failed; null: it did not
  double queue_ms = 0;                          ///< from add() until it began
  double read_ms = 0;                           ///< from then to its first token
  double answer_ms = 0;                         ///< from then to its end
};

/// Callbacks of a request, called by Scheduler::advance(). Each may be empty, and may call add() and cancel(). An
/// exception ends the request with that error; on_end() must not throw.
struct RequestEvents {
  /// `text` has been read and compressed, or found. Gets the logits of its last token, [n_vocab].
  std::function<void(const Cache&, std::span<const float>)> on_text;
  /// The whole prompt has been read. Gets the logits with which the answer begins.
  std::function<void(const Cache&, std::span<const float>)> on_prompt;
  /// Gets the index of the answer, its next token (with alternatives if requested), and the next bytes of its text.
  /// Bytes held back at the end, because they might begin a stop text, are only in RequestEnd.
  std::function<void(int, const GeneratedToken&, std::string_view)> on_token;
  /// Called once for every request, however it ends, except for those that are pending when the scheduler is destroyed.
  std::function<void(RequestEnd)> on_end;
};

/// A text that is read layer by layer and compressed.
struct RequestText {
  std::vector<Token> tokens;
  /// Number of last tokens of the text or its last stage that are the question, for methods that need it; 0: unknown.
  std::size_t asked = 0;
  /// Ends of the text's stages, ascending; the last one is the end of the text. Each stage is compressed by itself: the
  /// first as a prompt, the others as by Session::extend() and Session::compress(), with at least the method's least
  /// budget. Thus a conversation that continues has the stages that it had before. Empty: the text is one prompt.
  std::vector<std::size_t> stages = {};
  /// If set, log probabilities of the tokens are computed, with this number of alternatives each. They come from full
  /// attention, as during any prefill. Such a text is never taken from stored ones.
  std::optional<int> prompt_logprobs = {};
  /// If set, the text is stored for later requests with the same salt and the same beginning: the full keys and values
  /// of the first stage in blocks, for requests with any options; if a question or several stages follow, for requests
  /// with the same options, also the caches after the last stage and after stages 1, 2, 4, 8 and so on. A request waits
  /// while another one reads the same stages. Answers do not depend on whether a text was found or read.
  std::optional<std::string> cache_salt = {};
};

/// A cache to continue.
struct RequestCache {
  Cache cache;
  std::vector<float> logits = {};  ///< [n_vocab] of its last token, if no question follows
};

/// A request for answers to a text, after a cache, or after a cache that a source makes.
struct Request {
  std::variant<RequestText, RequestCache, std::shared_ptr<engine::CacheSource>> source;
  CacheOptions keep;            ///< for a text or the cache of a source
  std::vector<Token> question;  ///< appended after compression; may be empty
  GenerateOptions generate;
  int answers = 1;   ///< they differ by their seeds: answer i has seed + i
  std::string key;   ///< owner of the request; keys share the scheduler evenly, by tokens read and generated
  int priority = 0;  ///< among requests of the same key: higher ones begin first
  RequestEvents events = {};

  /// REQUIRES: the source is a text.
  RequestText& text() { return std::get<RequestText>(source); }
  const RequestText& text() const { return std::get<RequestText>(source); }
};

/// A request whose prompt is compressed before or after its question has been read. A prompt without text is its
/// question.
WINNOW_EXPORT Request request_of(Prompt prompt, Protocol protocol);

struct WINNOW_EXPORT SchedulerOptions {
  /// Maximum number of requests that are read or answered at a time; others wait.
  int parallel = 16;
  /// The longest time between two tokens of an answer while prompts are read. One quantum (one chunk through one layer)
  /// is always read.
  std::chrono::milliseconds max_itl = std::chrono::milliseconds(50);
  /// Limit of the bytes of keys, values, hidden states and work space of all requests. A request is promised the bytes
  /// of its reading, its question and the first 256 tokens of its answers; the others follow as the answers get longer.
  /// REQUIRES: the machine has this much memory free. Not counted: packed weights of one layer, the work space of a
  /// decode step, and caches of waiting requests.
  std::size_t memory = std::numeric_limits<std::size_t>::max();
  /// Store for later requests. Its memory is additional; at most half of it holds compressed texts.
  TextOptions texts = {};

  /// Throws UsageError for a value out of range.
  void check() const;
};

/// Use of stored texts by requests with a cache_salt.
struct PrefixUse {
  std::uint64_t asked = 0;    ///< text tokens of all such requests that have begun
  std::uint64_t found = 0;    ///< those that were found
  std::uint64_t dropped = 0;  ///< tokens whose full keys and values were dropped for those of other texts
  int entries = 0;            ///< compressed texts stored now
  std::size_t bytes = 0;      ///< held by all stored texts
};

/// Stored blocks of texts, of 64 tokens each, and observers' states after some of them.
struct TextUse {
  std::size_t memory_bytes = 0;  ///< with states
  std::size_t memory_blocks = 0;
  std::size_t stored_bytes = 0;   ///< in a folder; 0 for a Redis server
  std::size_t stored_blocks = 0;  ///< in the same, with states
  std::uint64_t read = 0;         ///< blocks and states read from there
  std::uint64_t written = 0;      ///< written there
  std::uint64_t damaged = 0;      ///< found damaged there
};

/// Current state of a request.
struct RequestState {
  enum class Phase : std::uint8_t {
    waiting,  ///< for its turn and for memory, before it begins
    reading,
    answering,
    paused,  ///< its answers wait for memory, with their caches
  };

  std::uint64_t id = 0;
  Phase phase = Phase::waiting;
  int prompt_tokens = 0;           ///< tokens that its cache will have seen before the answer
  double read = 0;                 ///< share of the prompt, 0 … 1
  int generated = 0;               ///< tokens of all answers
  std::size_t bytes_promised = 0;  ///< now; before it begins, those that it needs to begin
  std::size_t bytes_held = 0;      ///< of its caches, including those being read
  std::size_t entries_held = 0;    ///< of the same caches, over KV heads of layers without a window
};

/// Reads and answers any number of requests at once. On the CPU, an answer is bit for bit the same as if its request
/// ran alone, unless TextOptions::type is q8_0. Memory is promised before it is needed, and the request that began
/// first can always have all that it may need, so none fails halfway for lack of memory. Answers of later requests may
/// have to wait for memory, with their caches. Belongs to one thread, like its session, which must not be used
/// otherwise meanwhile.
class WINNOW_EXPORT Scheduler {
 public:
  using Id = std::uint64_t;

  /// Keeps a reference to the session. Throws UsageError.
  Scheduler(Session& session, const SchedulerOptions& options);
  ~Scheduler();

  /// The most bytes that a request can use, with answers of `max_tokens`. Throws InputError and UsageError like add().
  std::size_t bytes_of(const Request& request) const;
  /// Lowers `max_tokens` and `min_tokens` of a request until it fits into SchedulerOptions::memory alone; to 1 if
  /// nothing fits. Other requests do not count, so answers do not depend on them. Throws InputError and UsageError like
  /// add().
  void fit_answers(Request& request) const;
  /// Throws InputError for a request with nothing to read or an unknown token, UsageError for contradictory options,
  /// MemoryError for one that never fits. The request is then unchanged, and no callback is called.
  Id add(Request&& request);
  /// Ends a request before the next step with its partial answers; advance() calls on_end(). Does nothing if it has
  /// ended.
  void cancel(Id id);

  /// Makes one decode step for all answers that have memory, then reads prompts for the remaining time. Returns false
  /// if no request is left, or if all that have begun wait for a cache source, or for the memory of those that do.
  /// Errors end the requests that they concern. Throws only Interrupted (Session::on_stop()), after all requests have
  /// ended with their partial answers.
  bool advance();

  std::vector<RequestState> states() const;
  /// Bytes promised now.
  std::size_t promised() const;
  PrefixUse prefix_use() const;
  TextUse text_use() const;
  /// The longest time, so far, that answers have waited for one quantum of reading, including the work before it
  /// (ending and beginning requests). Reading exceeds SchedulerOptions::max_itl by no more than that.
  double longest_quantum_ms() const;

 private:
  struct WINNOW_NO_EXPORT Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
