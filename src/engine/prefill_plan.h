// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/hidden_states.h"
#include "engine/past.h"
#include "policy/observers/layer_observers.h"
#include "winnow/session.h"

namespace winnow::engine {

/// A cache, and what a pass over a prompt does for it.
struct CachePass {
  CacheOptions options;
  policy::Reading reading = policy::Reading::whole;
  std::vector<Token> draft = {};  ///< what its passages repeat
};

/// A prompt of a pass.
struct PromptPass {
  PromptSize size;
  std::vector<CachePass> caches;
};

/// A pass over prompts that begin alike, by its sizes.
struct PassSizes {
  int text = 0;  ///< tokens that all prompts begin with
  std::vector<PromptPass> prompts;
  PastSize past = {};
};

/// The largest numbers of bytes in use at a time, by the memory that they are in.
struct ReadingBytes {
  std::size_t work = 0;     ///< work space for observing attention and for drafts, which the session keeps
  std::size_t vectors = 0;  ///< hidden states, keys and values, which attention and the network read
  std::size_t facts = 0;    ///< results of observers, scores and plans, which methods read: always the host's memory
  std::size_t rest = 0;     ///< vectors and facts together; at most the sum, since their peaks may differ in time

  std::size_t all() const { return work + rest; }
  /// Another moment: it has this many bytes besides the work space.
  void reach(std::size_t vectors_then, std::size_t facts_then);
};

/// A pass of prompts through all layers: the chunks in which their rows pass, what methods look at, and how many bytes
/// that takes at most. It is made before anything is read, and Prefill does what it says.
class PrefillPlan {
 public:
  /// Rows that pass through every layer together.
  struct Chunk {
    RowRange rows = {};                      ///< of the hidden states
    int position = 0;                        ///< of the first of them in the prompt, and so their row in the scratch
    std::optional<std::size_t> branch = {};  ///< whose question or passage they are; none: the text's
    std::optional<std::size_t> replay = {};  ///< of the branch
    attention::KeyRange recorded = {};       ///< by the replay's observer
  };

  /// One of the prompts.
  struct Branch {
    PromptPass prompt;
    std::vector<policy::LayerRequests> requests;      ///< [kind of layer][cache]
    std::vector<policy::ObserverRequestPtr> replays;  ///< for which passages are read again after the prompt
    std::size_t end = 0;  ///< chunks that have passed through a layer when the prompt is complete there
    int last_row = 0;     ///< of the prompt in the hidden states
  };

  /// Throws UsageError when a budget is too small for its method, and for a method without the calibration it needs.
  PrefillPlan(const Session::Impl& session, PassSizes sizes);

  int text() const { return text_; }
  const PastSize& past() const { return past_; }
  std::span<const Branch> branches() const { return branches_; }
  std::span<const Chunk> chunks() const { return chunks_; }
  /// Rows of all chunks: those of the text, then of each question with its passages.
  int rows() const { return rows_; }
  /// Rows of the prompts alone, without passages.
  int prompt_rows() const;
  ElementType scratch_type() const { return scratch_type_; }
  /// Tokens of the longest prompt with its longest passage.
  int capacity() const { return capacity_; }
  /// The most that is in use at a time: `row_bytes` for each row, a layer's keys and values, what a layer reads of the
  /// past, observers, one cache's plan, the lanes.
  const ReadingBytes& bytes() const { return bytes_; }

 private:
  void lay_out(const Session::Impl& session);
  /// Adds rows in chunks that are like `kind`; the first has its position.
  void add_chunks(int rows, int most, const Chunk& kind);
  void add_passages(std::size_t branch, const Session::Impl& session);
  /// Bytes of looking at a layer.
  struct LayerBytes {
    std::size_t reading = 0;  ///< observers of all prompts
    std::size_t ending = 0;   ///< besides, of those of one prompt, when the layer is compressed
    std::size_t work = 0;     ///< work space of attention
  };
  ReadingBytes bytes_of(const Session::Impl& session) const;
  LayerBytes layer_bytes(int layer, const Session::Impl& session) const;
  std::size_t work_bytes(int layer, const Session::Impl& session) const;

  int text_;
  PastSize past_;
  std::vector<Branch> branches_;
  std::vector<Chunk> chunks_;
  int rows_ = 0;
  int capacity_ = 0;
  ElementType scratch_type_;
  ReadingBytes bytes_;
};

}  // namespace winnow::engine
