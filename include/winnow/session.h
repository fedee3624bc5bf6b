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

/// How the cache of one sequence is kept.
struct WINNOW_EXPORT CacheOptions {
  Spec spec;                     ///< default: full
  std::optional<Budget> budget;  ///< REQUIRES: set when the spec's method needs one
  KvType kv_type;

  /// Throws UsageError when these do not go together (a budget is missing).
  void check() const;
};

/// Contents of a cache now.
struct CacheStats {
  double entries_per_head_mean = 0;  ///< as the next three, of the layers without a window, unless all have one
  int entries_min = 0;               ///< over layers and KV heads
  int entries_max = 0;
  double attended_per_head_mean = 0;  ///< entries that a query reads
  std::size_t bytes_held = 0;         ///< allocated
  std::size_t bytes_full = 0;         ///< computed: the f16 cache of all tokens seen, or of a layer's window of them
  int tokens_seen = 0;
};

struct CacheMark;

/// The compressed keys and values of one sequence: a lane for each layer and KV head. Move-only; clone() copies.
/// Belongs to the Session that made it, which it must not outlive.
class WINNOW_EXPORT Cache {
 public:
  Cache(Cache&&) noexcept;
  Cache& operator=(Cache&&) noexcept;
  ~Cache();

  /// Throws MemoryError.
  Cache clone() const;
  CacheStats stats() const;
  /// Remembers the cache as it is, so that what is appended next can be taken back. Costs nothing where entries are
  /// only appended, a copy of the layers with windows, and a copy of all where entries are evicted or summarised.
  /// Throws MemoryError.
  CacheMark mark() const;
  /// Puts the cache back to how it was at the mark. REQUIRES: a mark of this cache, no later go_back() than it.
  void go_back(CacheMark mark);
  const CacheOptions& options() const;
  /// Positions kept, ascending: [layer][KV head][entry]; of a layer with a window, the last ones.
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
  std::shared_ptr<const engine::WindowLanes> windows;  ///< of layers with windows, where there are some
};

/// How a prompt is read. Sums, softmax, norms and decoding are in f32 everywhere.
enum class Precision : std::uint8_t {
  automatic,  ///< what is fast and good: bf16 where the machine multiplies it in hardware, else f32 over keys and
              ///< values of f16
  bf16,  ///< factors of long matrix products and of attention are rounded to bf16; REQUIRES: a machine that multiplies
         ///< it
  f32,   ///< everything in f32, keys and values too: references and parity
};

/// Where weights are dequantized and packed to bf16 for long products (oneDNN), which then are much faster.
enum class Pack : std::uint8_t {
  automatic,  ///< a layer at a time, while a prompt is read that is long enough to pay for it
  layer,      ///< a layer at a time, for every prompt
  /// All layers, when the session begins (2 bytes a weight): for every prompt and for decoding, whatever the number of
  /// sequences. Where there is no room, the session goes on without them from the beginning on.
  resident,
};

struct WINNOW_EXPORT SessionOptions {
  int threads = 0;  ///< 0: all cores that the process may use
  Precision precision = Precision::automatic;
  int chunk = 512;  ///< tokens of a prompt that pass through a layer together
  Pack pack = Pack::automatic;
  /// A file that calibrate() has written for the model, for the methods that go by it; empty: there is none, and those
  /// methods throw UsageError.
  std::string calibration = {};

  /// Throws UsageError when these do not go together, or not with this build and machine.
  void check() const;
  /// Throws UsageError when the method of a cache needs a calibration, and there is none.
  void check(const CacheOptions& cache) const;
};

/// Bytes of keys, values, hidden states and work space, without the weights, as the allocator counts them.
struct MemoryUse {
  std::size_t held = 0;
  std::size_t peak = 0;  ///< since the session began or the last reset
};

/// One prompt after prefill: a cache for each CacheOptions, and the logits of the last token, which do not depend on
/// what is kept.
struct Prefilled {
  std::vector<Cache> caches;
  std::vector<float> logits;  ///< [n_vocab]
};

/// A sequence that was saved and is there again.
struct Restored {
  Cache cache;
  std::vector<float> logits;  ///< [n_vocab] of the last token, or empty when they were not saved
  Transcript transcript;
};

/// Runs a model. Owns a thread pool and work space; one session is used by one thread at a time, several sessions may
/// share a Model. The constructor throws InputError when the calibration is not there, damaged or another model's. All
/// calls throw Interrupted when the stop function says so, MemoryError when memory cannot be had; what existed before
/// is intact.
class WINNOW_EXPORT Session {
 public:
  Session(std::shared_ptr<const Model> model, const SessionOptions& options);
  ~Session();

  /// Reads a prompt layer by layer and compresses each layer as it is done: one pass for any number of cache options.
  Prefilled prefill(std::span<const Token> tokens, std::span<const CacheOptions> caches);

  /// Reads `text` once and each question after it as if it were alone: element i is the prompt text + questions[i],
  /// compressed after the question is seen. Nothing of the text's full cache outlives its layer.
  std::vector<Prefilled> prefill(std::span<const Token> text, std::span<const std::vector<Token>> questions,
                                 std::span<const CacheOptions> caches);

  /// Appends tokens to a sequence (a question to a compressed text): returns the logits of the last one, [n_vocab].
  std::vector<float> extend(Cache& cache, std::span<const Token> tokens);

  /// Compresses the last tokens that a sequence has seen (a question and its answer) as a prompt of their own, with the
  /// budget of the sequence, or the least that the method works with: they are read once more, layer by layer, after
  /// what is left of what came before them, which stays as it is. Nothing happens where they fit into the budget, and
  /// where the method evicts nothing, or at every step. When it throws the sequence goes on as it was. Throws
  /// UsageError when it has not seen so many tokens, and for a model with windows when these do not reach back any more
  /// to what came before the tokens.
  void compress(Cache& cache, std::span<const Token> tokens);
  /// The same for models with windows, too: `begin` was made before these tokens came.
  void compress(Cache& cache, std::span<const Token> tokens, const CacheMark& begin);

  /// One decode step of a batch: tokens[i] is appended to caches[i]; logits [batch][n_vocab]. The caches are all
  /// different. Each row is bit for bit what it would be alone.
  void step(std::span<Cache* const> caches, std::span<const Token> tokens, std::span<float> logits);

  /// Writes a sequence to a file, so that its text need not be read again: what load() gives goes on bit for bit like
  /// `cache`. What was at `path` stays until all is on the disk. `logits` are those of the last token, [n_vocab], or
  /// empty; `transcript` has the tokens that the cache has seen, and maybe more. Throws UsageError when it has fewer,
  /// or the cache is a sparse one of documents (ask.h); InputError (a full disk, no permission, a folder or a device at
  /// that path).
  void save(const std::string& path, const Cache& cache, std::span<const float> logits,
            const Transcript& transcript) const;

  /// Reads what save() has written. Throws InputError: no such file, not a saved cache, another version, truncated,
  /// damaged, made with another model or other RoPE options; MemoryError.
  Restored load(const std::string& path);

  /// Least bytes that prefill() of so many tokens will have in use at its peak; the same sum that prefill() checks
  /// before it begins.
  std::size_t prefill_bytes(int tokens, std::span<const CacheOptions> caches) const;

  /// Tokens that have passed through all layers so far, each time that they did: in prompts, in what methods read
  /// again, and in steps.
  std::int64_t tokens_passed() const;

  MemoryUse memory() const;
  void reset_peak();

  /// Called now and then during prefill with the share that is done, 0 … 1.
  void on_progress(std::function<void(double)> progress);
  /// Asked now and then; true stops the call.
  void on_stop(std::function<bool()> stop);

  const Model& model() const;
  int threads() const;

  struct WINNOW_NO_EXPORT Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
