// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/hidden_states.h"
#include "engine/past.h"
#include "engine/stored_part.h"
#include "policy/observers/layer_observers.h"
#include "winnow/session.h"

namespace winnow::engine {

/// A cache, and its role in a pass.
struct CachePass {
  CacheOptions options;
  policy::Reading reading = policy::Reading::whole;
  std::vector<Token> draft = {};  ///< tokens that its passages repeat
};

/// A prompt of a pass.
struct PromptPass {
  PromptSize size;
  std::vector<CachePass> caches;
};

/// Sizes of a pass over prompts with a common beginning.
struct PassSizes {
  int text = 0;   ///< tokens of the common beginning
  int known = 0;  ///< the first of these, whose keys and values are known
  std::vector<PromptPass> prompts;
  PastSize past = {};
};

/// Peak bytes, by kind of memory.
struct ReadingBytes {
  std::size_t work = 0;     ///< for observing attention and for drafts; the session keeps it
  std::size_t vectors = 0;  ///< hidden states, keys and values, read by attention and the network
  std::size_t facts = 0;    ///< results of observers, scores and plans, read by methods: always in host memory
  std::size_t rest = 0;     ///< vectors and facts together; less than the sum if they peak at different times
  std::size_t device = 0;   ///< of the model's device: hidden states, and copies of keys and values for kernels

  /// Bytes of the host's memory.
  std::size_t all() const { return work + rest; }
  /// Raises the maxima to the bytes in use at another time, which exclude the work space.
  void reach(std::size_t vectors_then, std::size_t facts_then);
};

/// Plan of a pass: the chunks of its rows, the observers, and an upper bound of the bytes. It is made before anything
/// is read, and Prefill follows it.
class PrefillPlan {
 public:
  /// Rows that pass through each layer together.
  struct Chunk {
    RowRange rows = {};                      ///< in the hidden states
    int position = 0;                        ///< of the first row in the prompt, and its row in the scratch
    int after = 0;                           ///< tokens of the prompt that are in the scratch before it
    std::optional<std::size_t> branch = {};  ///< prompt that the rows belong to; nullopt: the common text
    std::optional<std::size_t> replay = {};  ///< index in Branch::replays; nullopt: not a replay
    int distance = 0;                        ///< of the rows of a replay to the rows that they copy, in the scratch
    attention::KeyRange recorded = {};       ///< keys for which the replay's observer records attention
  };

  /// The passages that are replayed for an observer.
  struct Replay {
    policy::ObserverRequestPtr request;
    std::vector<policy::Passage> passages;
  };

  /// One of the prompts.
  struct Branch {
    PromptPass prompt;
    std::vector<policy::LayerRequests> requests;  ///< [kind of layer][cache]
    std::vector<Replay> replays;
    std::size_t end = 0;  ///< number of chunks after which the prompt is complete in a layer
    int last_row = 0;     ///< last row of the prompt in the hidden states
  };

  /// Throws UsageError if a budget is too small for its method, or a calibration that a method needs is missing.
  PrefillPlan(const Session::Impl& session, PassSizes sizes);

  int text() const { return text_; }
  /// First tokens of the text that do not pass: their keys and values are known.
  int known() const { return known_; }
  /// First row of the prompts that an observer without a state must see.
  int first_seen(const model::Hparams& hparams) const;
  /// Bytes of the observers' states after `rows` rows.
  StateSizes states(const model::Hparams& hparams, int rows) const;
  const PastSize& past() const { return past_; }
  std::span<const Branch> branches() const { return branches_; }
  std::span<const Chunk> chunks() const { return chunks_; }
  /// Number of rows: the text, then each question with its passages.
  int rows() const { return rows_; }
  /// True if passages overwrite rows of the text in the scratch: later layers that read them, too, need a copy.
  bool overwrites_text() const;
  /// Rows of the prompts alone, without passages.
  int prompt_rows() const;
  ElementType scratch_type() const { return scratch_type_; }
  /// True if the observers of this pass may take and keep states.
  bool has_states() const { return has_states_; }
  /// Tokens of the longest prompt with its longest passage.
  int capacity() const { return capacity_; }
  /// The most bytes in use at a time: hidden states, a layer's keys and values, entries of the past, observers, one
  /// cache's plan, the lanes.
  const ReadingBytes& bytes() const { return bytes_; }

 private:
  bool can_have_states(const Session::Impl& session) const;
  void drop_known_passages();
  void lay_out(const Session::Impl& session);
  /// Cuts rows that are described like a chunk into chunks of at most `most` rows.
  void add_chunks(const Chunk& rows, int most);
  /// The same for rows of a prompt. Each of the `passages`, which are in the order of their positions, passes as soon
  /// as the prompt has reached its position.
  void add_prompt(Chunk rows, std::span<const Chunk> passages, int most);
  /// A branch's passages, each as one chunk, in the order of their positions. Their rows begin at `row`.
  std::vector<Chunk> passages_of(std::size_t branch, int row, const Session::Impl& session) const;
  /// Bytes for observing a layer.
  struct LayerBytes {
    std::size_t reading = 0;  ///< observers of all prompts
    std::size_t ending = 0;   ///< additional bytes of one prompt's observers while it is compressed
    std::size_t work = 0;     ///< work space of attention
  };
  ReadingBytes bytes_of(const Session::Impl& session) const;
  LayerBytes layer_bytes(int layer, const Session::Impl& session) const;
  std::size_t work_bytes(int layer, const Session::Impl& session) const;

  int text_;
  int known_;
  bool has_states_ = false;
  PastSize past_;
  std::vector<Branch> branches_;
  std::vector<Chunk> chunks_;
  int rows_ = 0;
  int capacity_ = 0;
  ElementType scratch_type_;
  ReadingBytes bytes_;
};

}  // namespace winnow::engine
