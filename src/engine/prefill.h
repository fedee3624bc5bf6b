// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "attention/attention.h"
#include "cache/scratch.h"
#include "engine/calibration.h"
#include "engine/hidden_states.h"
#include "engine/layers.h"
#include "engine/past.h"
#include "engine/prefill_branch.h"
#include "engine/prompt_attention.h"
#include "model/hparams.h"
#include "model/vocab.h"
#include "network/executor.h"
#include "winnow/session.h"

namespace winnow::engine {

/// What a prefill runs on; everything but its pass belongs to the session. Move-only.
struct PrefillContext {
  network::Executor& executor;
  attention::PrefillAttention& attention;
  const model::Hparams& hparams;
  const model::Vocab& vocab;
  MemoryAccount& account;
  const SessionOptions& options;
  std::function<void(double)> progress;
  network::Pass pass = {};
  const Past* past = nullptr;            ///< set: the prompt comes after that
  policy::Observer* observer = nullptr;  ///< looks at the prompt, too. REQUIRES: one prompt
  int asked = 0;                         ///< of a text without questions, the last tokens that are one; 0: not known
  const Calibration* calibration = nullptr;  ///< REQUIRES: set for methods that need it
};

/// [prompt][cache]; empty: nothing.
using AllShown = std::vector<std::vector<Shown>>;

/// Prompts that share their beginning, read layer by layer. In each layer the shared text passes in chunks, then every
/// question in turn over the text's keys and values (rows of the scratch are given back in between), then what its
/// methods read again, passage by passage in the same way, and each finished prompt is compressed at once. So a layer's
/// full cache is all that is ever held, for any number of questions and cache options.
/// Keys and values that later layers read, too, stay until the last of them has passed, each in a scratch of its own;
/// of questions and passages, whose rows take turns in it, they are put aside.
class Prefill {
 public:
  Prefill(PrefillContext context, std::span<const Token> text, std::span<const std::vector<Token>> questions,
          std::span<const CacheOptions> caches, const AllShown& shown = {});
  /// One prompt without questions, which is kept in one way.
  Prefill(PrefillContext context, std::span<const Token> prompt, const CacheOptions& keep);
  Prefill(const Prefill&) = delete;
  Prefill& operator=(const Prefill&) = delete;

  /// The next chunk passes through the layer that is being read, or some of its experts multiply. Returns false when
  /// nothing is left in any layer.
  bool advance();
  /// The share of all chunks in all layers that have passed.
  double done() const;
  /// A prompt's caches as they are now, with the layers that have been compressed.
  std::span<const Cache> caches(std::size_t prompt) const { return branches_[prompt].caches(); }
  /// What has been read of a prompt, once. REQUIRES: advance() has returned false.
  std::vector<Cache> take_caches(std::size_t prompt) { return branches_[prompt].take_caches(); }
  std::vector<float> logits(std::size_t prompt) { return hidden_.logits(last_rows_[prompt]); }
  /// Of some tokens of the shared text, [count][n_vocab].
  void text_logits(RowRange tokens, std::span<float> out) { hidden_.logits(tokens, out); }
  /// Last hidden states of some tokens of the shared text, after the final norm, [count][n_embd].
  void text_states(RowRange tokens, std::span<float> out) { hidden_.last_states(tokens, out); }
  /// All of it.
  std::vector<Prefilled> run();

 private:
  /// Rows that pass through every layer together.
  struct Chunk {
    RowRange rows = {};                      ///< of the hidden states
    int position = 0;                        ///< of the first of them in the prompt, and so their row in the scratch
    std::optional<std::size_t> branch = {};  ///< whose question or passage they are; none: the text's
    std::optional<std::size_t> replay = {};  ///< of the branch
    attention::KeyRange recorded = {};       ///< by the replay's observer
  };

  static std::vector<PrefillBranch> branches_of(const PrefillContext& context, int text,
                                                std::span<const std::vector<Token>> questions,
                                                std::span<const CacheOptions> caches, const AllShown& shown);
  static int longest(const std::vector<PrefillBranch>& branches);
  /// Divides all rows into chunks and returns their tokens.
  std::vector<Token> lay_out(std::span<const Token> text, std::span<const std::vector<Token>> questions);
  /// Adds tokens to `rows`, in chunks that are like `kind`; the first has its position.
  void add_chunks(std::span<const Token> tokens, const Chunk& kind, std::vector<Token>& rows);
  /// Adds the passages that are read again after `prompt`.
  void add_passages(std::size_t branch, std::span<const Token> prompt, std::vector<Token>& rows);
  void begin_layer();
  bool end_layer();
  void run(const Chunk& chunk);
  Watching watching(const Chunk& chunk) const;
  PromptAttention attention_of(const Chunk& chunk);
  /// Keys and values of a layer that the layer being read reads.
  cache::LayerScratch& scratch_of(int kv_layer);
  int kv_layer() const { return context_.hparams.kv_layer(layer_); }
  bool is_shared(int kv_layer) const { return context_.hparams.last_reader(kv_layer) != kv_layer; }
  /// Rows that a later chunk overwrites come and go where later layers read them.
  void put_rows(const Chunk& chunk, std::size_t number);
  void copy_rows(const Chunk& chunk, std::size_t number);
  void compress(PrefillBranch& branch);

  PrefillContext context_;
  std::vector<PrefillBranch> branches_;
  std::vector<int> last_rows_;  ///< [branch] of the prompt in the hidden states
  std::vector<std::size_t>
      ends_;  ///< [branch] chunks that have passed through a layer when the prompt is complete there
  cache::LayerScratch scratch_;
  std::map<int, cache::LayerScratch> shared_;            ///< of layers whose keys others read
  std::map<std::pair<int, std::size_t>, Buffer> aside_;  ///< of such a layer and a chunk
  std::optional<cache::PastRows> past_;                  ///< of the layer that is being read
  std::vector<Chunk> chunks_;
  HiddenStates hidden_;   ///< of the text, then of each question with its passages
  int layer_ = 0;         ///< that is being read
  std::size_t next_ = 0;  ///< chunk
  int rows_done_ = 0;
};

/// Of a text and the question behind it. Where nothing comes before the question, it is not told from a text. `asked`
/// as PrefillContext::asked.
PromptSize size_of(std::size_t text, std::size_t question, int asked = 0);

/// The type of the scratch: one that loses nothing which a lane would keep.
ElementType scratch_type(Precision precision, std::span<const CacheOptions> caches);

/// Bytes of one token's keys and values in a scratch, in the layer where they take the most.
std::size_t scratch_bytes(const model::Hparams& hparams, ElementType type);

/// What factors of attention are rounded to.
attention::ComputeType compute_type_of(Precision precision);

/// Bytes of what is kept of such a prompt, with its summaries.
std::size_t cache_bytes(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Entries that a later prompt reads of one layer of what is kept of such a prompt, all heads together, at most.
std::size_t rows_kept(const CacheOptions& options, const model::Hparams& hparams, const PromptSize& size);

/// Size of a text of so many tokens, of which a layer has so many rows in all its heads.
PastSize past_size(ElementType type, const model::Hparams& hparams, int tokens, std::size_t rows);

/// Rows that some caches read again after a prompt, at most, passage by passage.
struct PassageSizes {
  struct Passage {
    int rows = 0;
    attention::KeyRange recorded = {};
  };
  std::vector<Passage> passages;

  int all() const;
  int longest() const;
};
PassageSizes passages_of(std::span<const CachePass> caches, const model::Hparams& hparams, const model::Vocab& vocab,
                         const PromptSize& size, int past);

/// Bytes that a reading has in use at its peak.
struct ReadingBytes {
  std::size_t work = 0;  ///< work space for observing attention and for drafts, which the session keeps
  std::size_t rest = 0;

  std::size_t all() const { return work + rest; }
};

/// Bytes of such a prefill: `row_bytes` for each row on its way through the layers, one layer's keys and values, what
/// it reads of the text before, what is observed of its attention, what one cache's plan takes, the lanes.
ReadingBytes prefill_bytes(const model::Hparams& hparams, const model::Vocab& vocab, const SessionOptions& options,
                           int shared, int rows, std::size_t row_bytes, std::span<const PromptSize> prompts,
                           std::span<const CachePass> caches, const PastSize& past = {});

}  // namespace winnow::engine
