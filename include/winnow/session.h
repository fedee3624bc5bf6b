// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/kv_type.h"
#include "winnow/model.h"
#include "winnow/spec.h"

namespace winnow {

namespace engine {
class Sequence;
struct WindowLanes;
}  // namespace engine

/// Compression of one sequence's cache.
struct WINNOW_EXPORT CacheOptions {
  Spec spec;                     ///< default: full
  std::optional<Budget> budget;  ///< REQUIRES: set if the spec's method needs one
  KvType kv_type;

  /// Throws UsageError if a budget is missing.
  void check() const;
};

/// Statistics of a cache.
struct CacheStats {
  double entries_per_head_mean =
      0;                ///< this and the next three: over layers without a window, or over all layers if all have one
  int entries_min = 0;  ///< over layers and KV heads
  int entries_max = 0;
  double attended_per_head_mean = 0;  ///< entries that a query reads
  std::size_t bytes_held = 0;         ///< allocated
  std::size_t bytes_full =
      0;  ///< computed for an f16 full cache of all tokens seen, or of the window in layers with one
  int tokens_seen = 0;
};

struct CacheMark;

/// Compressed keys and values of one sequence: a lane for each layer and KV head. Move-only; clone() copies. Belongs to
/// the Session that made it, and must not outlive it.
class WINNOW_EXPORT Cache {
 public:
  Cache(Cache&&) noexcept;
  Cache& operator=(Cache&&) noexcept;
  ~Cache();

  /// Throws MemoryError.
  Cache clone() const;
  CacheStats stats() const;
  /// Records the cache's state, to undo later appends. Costs nothing if entries are only appended; copies the layers
  /// with windows, and everything if entries are evicted or summarised. Throws MemoryError.
  CacheMark mark() const;
  /// Restores the state at the mark. REQUIRES: a mark of this cache, and no later go_back() to an earlier mark.
  void go_back(CacheMark mark);
  const CacheOptions& options() const;
  /// Kept positions, ascending: [layer][KV head][entry]; in layers with windows, the last ones.
  std::vector<std::vector<std::vector<std::int32_t>>> kept() const;

  engine::Sequence& impl() { return *impl_; }
  const engine::Sequence& impl() const { return *impl_; }
  explicit Cache(std::unique_ptr<engine::Sequence> sequence);

 private:
  std::unique_ptr<engine::Sequence> impl_;
};

/// A state of a cache, for Cache::go_back() and Session::compress().
struct CacheMark {
  int tokens_seen = 0;
  std::optional<Cache> copy;
  std::shared_ptr<const engine::WindowLanes> windows;  ///< of the layers with windows, if any
};

/// Precision of reading a prompt. Sums, softmax, norms and decoding are always in f32.
enum class Precision : std::uint8_t {
  automatic,  ///< bf16 if the machine multiplies it in hardware, else f32 with keys and values in f16
  bf16,       ///< factors of long matrix products and of attention are rounded to bf16; REQUIRES: bf16 hardware
  f32,        ///< everything in f32, including keys and values: for references and parity
};

/// When weights are dequantized and packed to bf16 for long products (oneDNN), which makes these much faster.
enum class Pack : std::uint8_t {
  automatic,  ///< one layer at a time, for prompts long enough to pay for it
  layer,      ///< one layer at a time, for every prompt
  /// All layers, when the session begins (2 bytes a weight): for every prompt and for decoding any number of sequences.
  /// If memory is too short, nothing is packed.
  resident,
};

/// How a decode step's sequences pass through a model on a device. On the CPU, results do not depend on it.
enum class StepRows : std::uint8_t {
  together,  ///< in one pass: a sequence's logits may differ in their last bits from what they would be alone
  alike,     ///< each in a pass of its own, which takes more time
};

/// Encoding of stored keys and values of texts.
enum class TextType : std::uint8_t {
  exact,  ///< as computed: results over stored texts are those of reading them
  q8_0,   ///< about half the bytes of f16: results over stored texts differ a little from those of reading them
};

/// Store of the full keys and values of texts that were read.
struct TextOptions {
  std::size_t memory = 0;  ///< bytes; 0: nothing is stored
  /// A folder or the address of a Redis server that also stores them, so that they are found after a restart and by
  /// other processes. Empty: they are only in memory.
  std::string place = {};
  std::size_t place_size = std::size_t{20} << 30U;  ///< maximum bytes of such a folder
  TextType type = TextType::exact;
};

struct WINNOW_EXPORT SessionOptions {
  int threads = 0;  ///< 0: all cores available to the process
  Precision precision = Precision::automatic;
  int chunk = 512;  ///< tokens of a prompt that pass through a layer together
  Pack pack = Pack::automatic;
  /// File of calibrate() for the model, for methods that need one; empty: none, and those methods throw UsageError.
  std::string calibration = {};
  /// Store for prompts: if a prompt begins like an earlier one, only the rest is read, and the results are the same.
  /// All is read if the model has experts or is on a device, or if `chunk` is not a multiple of 64.
  TextOptions texts = {};
  StepRows rows = StepRows::together;

  /// Throws UsageError if the options contradict each other, or this build or machine does not support them.
  void check() const;
  /// Throws UsageError if the cache's method needs a calibration and there is none.
  void check(const CacheOptions& cache) const;
};

/// Bytes of keys, values, hidden states and work space, without the weights, as allocated.
struct MemoryUse {
  std::size_t held = 0;
  std::size_t peak = 0;  ///< since the session began or the last reset
};

/// A prompt after prefill: a cache for each CacheOptions, and the logits of the last token, which do not depend on
/// compression.
struct Prefilled {
  std::vector<Cache> caches;
  std::vector<float> logits;  ///< [n_vocab]
  int cached_tokens = 0;      ///< tokens of the prompt that were found in the session's store
};

/// A sequence loaded from a file.
struct Restored {
  Cache cache;
  std::vector<float> logits;  ///< [n_vocab] of the last token; empty if they were not saved
  Transcript transcript;
};

/// Runs a model. Owns a thread pool and work space. Not thread-safe, but several sessions may share a Model. The
/// constructor throws InputError if the calibration is missing, damaged or of another model. All calls throw
/// Interrupted if the stop function returns true, and MemoryError if memory cannot be allocated; existing objects stay
/// intact.
class WINNOW_EXPORT Session {
 public:
  Session(std::shared_ptr<const Model> model, const SessionOptions& options);
  ~Session();

  /// Reads a prompt layer by layer, and compresses each layer when it is done: one pass for any number of cache
  /// options.
  Prefilled prefill(std::span<const Token> tokens, std::span<const CacheOptions> caches);

  /// Reads `text` once and each question after it independently: element i is the prompt text + questions[i],
  /// compressed after the question. No part of the text's full cache outlives its layer, except in
  /// SessionOptions::texts.
  std::vector<Prefilled> prefill(std::span<const Token> text, std::span<const std::vector<Token>> questions,
                                 std::span<const CacheOptions> caches);

  /// Appends tokens to a sequence (a question to a compressed text). Returns the logits of the last one, [n_vocab].
  std::vector<float> extend(Cache& cache, std::span<const Token> tokens);

  /// Compresses the last tokens of a sequence (a question and its answer) as a separate prompt with the sequence's
  /// budget, or with the method's minimum if that is larger: they are read again layer by layer after the earlier
  /// entries, which do not change. Does nothing if the tokens fit into the budget, or if the method evicts never or at
  /// every step. If it throws, the sequence is unchanged. Throws UsageError if the sequence has seen fewer tokens, or
  /// if a window of the model no longer has the entries before these tokens.
  void compress(Cache& cache, std::span<const Token> tokens);
  /// The same, also for models with windows: `begin` is a mark from before these tokens.
  void compress(Cache& cache, std::span<const Token> tokens, const CacheMark& begin);

  /// One decode step of a batch: appends tokens[i] to caches[i]; logits are [batch][n_vocab]. REQUIRES: distinct
  /// caches. On the CPU, each row is bit for bit what it would be alone.
  void step(std::span<Cache* const> caches, std::span<const Token> tokens, std::span<float> logits);

  /// Writes a sequence to a file; the sequence that load() returns continues bit for bit like `cache`. An existing file
  /// at `path` is replaced only when the new one is on disk. `logits` are those of the last token, [n_vocab], or empty;
  /// `transcript` has the tokens that the cache has seen, and maybe more. Throws UsageError if it has fewer, or if the
  /// cache is a sparse one of documents (ask.h); InputError for a full disk, missing permission, or a folder or device
  /// at `path`.
  void save(const std::string& path, const Cache& cache, std::span<const float> logits,
            const Transcript& transcript) const;

  /// Reads a file of save(). Throws InputError for a missing file, one that is not a saved cache, has another version,
  /// is truncated or damaged, or was made with another model or other RoPE options; MemoryError.
  Restored load(const std::string& path);

  /// Lower bound of the peak bytes of prefill() for `tokens` tokens; prefill() checks the same sum before it begins.
  std::size_t prefill_bytes(int tokens, std::span<const CacheOptions> caches) const;

  /// Tokens that have passed through all layers, counted once per pass: in prompts, replays and decode steps.
  std::int64_t tokens_passed() const;

  MemoryUse memory() const;
  void reset_peak();

  /// Sets a callback for the share of a prefill that is done, 0 … 1.
  void on_progress(std::function<void(double)> progress);
  /// Sets a callback that is polled; when it returns true, the call stops.
  void on_stop(std::function<bool()> stop);

  const Model& model() const;
  const SessionOptions& options() const;
  int threads() const;

  struct WINNOW_NO_EXPORT Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
