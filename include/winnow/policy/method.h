// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "winnow/counted_vector.h"
#include "winnow/export.h"
#include "winnow/policy/attention.h"
#include "winnow/policy/calibrator.h"
#include "winnow/policy/layer.h"
#include "winnow/policy/observer.h"
#include "winnow/token_class.h"

namespace winnow {

struct Rope;

namespace cache {
class LayerLanes;
class LayerScratch;
struct AttendRange;
struct KeepPlan;
}  // namespace cache

}  // namespace winnow

/// A method is a composition of parts, grouped by when they act: while the prompt is read, when one of its layers is
/// done, while tokens are decoded. Every part is a value that can be replaced on its own; wrappers such as ada(X) do
/// just that. Parts whose signature names a class that is only declared here act on the cache itself: they can be
/// written inside of winnow.
namespace winnow::policy {

struct AttendView;
struct Method;
struct StepView;

/// Everything that a part may look at when one layer of a prompt is done.
struct WINNOW_EXPORT LayerView {
  int layer = 0;   ///< among the layers that methods compress: those without a sliding window
  int layers = 0;  ///< of these
  int number = 0;  ///< among all layers of the model: what is drawn at random depends on it
  attention::Shape shape;
  const cache::LayerScratch& scratch;  ///< keys and values of all tokens; positions go on after what came before
  const Rope& rope;
  const LayerCalibration& calibration;
  std::span<const TokenClass> classes = {};  ///< of the prompt's tokens, [n]
  int question = 0;                          ///< as LayerPrompt::question
  int budget = 0;  ///< entries per KV head that are kept of a prompt, the mean over all layers; as Terms::budget
  Shown shown = {};

  int tokens() const;
  /// Facts about the layer that were known before.
  LayerPrompt prompt() const { return {tokens(), shape.group(), shape.head_dim, shape.kv_heads, question}; }
  /// Key of one token, decoded to f32 and rotated to the token's position, [head_dim].
  void key(int kv_head, int token, std::span<float> out) const;
  /// The same for the value.
  void value(int kv_head, int token, std::span<float> out) const;
  /// The result of one of the method's observers.
  template <class Result>
  const Result& operator[](Seen<Result> seen) const {
    return shown[seen];
  }
};

/// Entries that are kept whatever their score: the first `sinks` and the last `recent`.
struct AlwaysKept {
  int sinks = 0;
  int recent = 0;
  int total() const { return sinks + recent; }
};

/// Terms of a layer of a sequence that are fixed when its prompt is compressed.
struct Terms {
  LayerPrompt prompt;
  int budget = 0;          ///< entries per KV head, the mean
  AlwaysKept always_kept;  ///< at this budget
};

/// A named part: `text` is what `winnow methods` shows.
template <class Signature>
struct Part {
  std::string text;
  std::function<Signature> call;
  explicit operator bool() const { return static_cast<bool>(call); }
};

using ScorePart = Part<Scores(const LayerView&, const AlwaysKept&)>;
/// Entries per KV head and layer, [L], from the mean B over layers; the sum is L * B exactly. `AlwaysKept` is that of
/// the layer with the most of them.
using LayerBudgetPart = Part<std::vector<int>(int budget, int layers, int tokens, const AlwaysKept&)>;
/// Selected (not always kept) entries for each head, [H_kv], from the mean and the scores; the sum is H_kv * mean
/// exactly.
using HeadBudgetPart = Part<std::vector<int>(const LayerView&, int mean, const Scores&, const AlwaysKept&)>;
/// Which entries each head keeps beside the always kept ones, ascending: `counts` of them, from one part for all heads,
/// so that sets may be shared or joined.
using SelectPart = Part<std::vector<std::vector<std::int32_t>>(const LayerView&, const Scores&,
                                                               std::span<const int> counts, const AlwaysKept&)>;
/// Fills places that `select` has left: adds to `selected` until head h has counts[h] entries.
using DrawPart = Part<void(const LayerView&, const Scores&, std::vector<std::vector<std::int32_t>>& selected,
                           std::span<const int> counts, const AlwaysKept&)>;
/// Stores other vectors for kept entries, such as those of a merge with evicted ones: fills plan.values, and plan.keys
/// and plan.merged_entries where keys are merged. Called only when something is evicted.
using MergePart = Part<void(const LayerView&, const Scores&, const AlwaysKept&, cache::KeepPlan& plan)>;
/// Initial values of the per-entry columns, for all entries of the prompt, one Scores for each column. Where the prompt
/// fits into the budget, `always_kept` covers all of it, and the scores are 0.
using StatePart = Part<std::vector<Scores>(const LayerView&, const Scores&, const AlwaysKept&)>;
/// Number of entries that are always kept, however small the budget.
using LeastPart = Part<int(const LayerPrompt&)>;
/// Entries that are always kept when a prompt is cut to B entries.
using AlwaysKeptPart = Part<AlwaysKept(const LayerPrompt&, int budget)>;
/// Tokens that are read once more after a prompt, at the positions that follow it, to see what they attend to: `ask`,
/// the `cue` tokens of the prompt before `first`, `reply`, the prompt's tokens [first, first + count), then those of
/// the method's draft. They see the prompt and one another, and leave nothing behind. Recorded is the attention that
/// all of them give to some tokens of the prompt.
struct Passage {
  std::string ask = {};
  int cue = 0;  ///< at most `first`
  std::string reply = {};
  int first = 0;
  int count = 0;
  int drafted = 0;                    ///< at most; REQUIRES: 0 where Method::draft is empty
  attention::KeyRange recorded = {};  ///< by default the whole prompt

  bool operator==(const Passage&) const = default;
};

/// Passages, each of which sees the prompt alone, and what is done over their rows with the attention probabilities of
/// each token.
struct Replay {
  std::vector<Passage> passages;
  attention::Reduction reduction = attention::Reduction::max;
  attention::RowScale scale = attention::RowScale::one;

  bool operator==(const Replay&) const = default;
  /// Whether passages repeat a draft: then replays that are asked for alike may read different tokens.
  bool has_draft() const {
    return std::any_of(passages.begin(), passages.end(), [](const Passage& passage) { return passage.drafted > 0; });
  }
};

/// The tokens that another method would generate after the prompt, each the likeliest one. The prompt is then read
/// twice: first for that method, with the same budget, and once more when the tokens are known and passages repeat
/// them. What is compressed later than a prompt, such as a turn of a conversation, has no draft.
struct Draft {
  std::shared_ptr<const Method> drafter;  ///< REQUIRES: it has no draft itself
  int tokens = 0;                         ///< at most; the end of the text ends them, but the first is always there
};

/// The step of a per-step method after attention has been seen: updates its columns, evicts down to the limit. Called
/// for one KV head at a time, by several threads, or, where heads share one set, for all of them.
using StepPart = Part<void(const StepView&)>;
/// The slot whose entry is evicted when a new token is about to enter a full lane, for per-step methods that look at
/// nothing.
using EvictPart = Part<int(cache::LayerLanes&, int head, const Terms&)>;
/// Entries of each lane that a query reads, for methods that narrow it or change distances: one plan for each KV head,
/// empty on entry. Called for one KV head at a time, by several threads, or, where heads read alike, for all of them.
using AttendPart = Part<void(const AttendView&, std::span<std::vector<cache::AttendRange>> plans)>;
/// Summarizes the blocks of a layer's lanes. Called when these have been filled, and when they have been put together
/// with what is kept of a later text.
using SummarizePart = Part<void(cache::LayerLanes&, const Terms&)>;
/// Runs once for a layer, when its lanes have been filled: stores what decoding will read.
using PreparePart = Part<void(const LayerView&, cache::LayerLanes&, const Terms&)>;

/// Entries that are kept together.
struct Piece {
  double score = 0;
  std::vector<std::int32_t> entries = {};  ///< where not all of them are kept, the first ones are
};
/// All evictable entries in pieces, from the best to the worst, by one score for each entry, [n].
using DividePart = Part<std::vector<Piece>(const LayerView&, std::span<const double> scores, const AlwaysKept&)>;

/// Units that a method keeps together.
struct Pieces {
  /// Whether a layer or a head chooses them; undecided: the layer, unless its heads share a budget.
  enum class Per : std::uint8_t { undecided, layer, head };
  DividePart divide;
  Per per = Per::undecided;
};

/// When entries are evicted.
enum class Schedule : std::uint8_t {
  keep,  ///< never
  once,  ///< when the prompt has been read
  step,  ///< then too, and while tokens are decoded
};

/// The effective positions of entries.
enum class Positions : std::uint8_t {
  absolute,            ///< those in the text
  absolute_unrotated,  ///< the same, with keys that are un-rotated in the lane, so that they can be merged
  cache,               ///< their ranks in the lane, so that no distance is longer than the lane
};

/// Parts that act when a layer of the prompt is done, and choose the entries that are kept.
struct SelectionParts {
  AlwaysKeptPart always_kept;
  LeastPart least;  ///< REQUIRES: set where the method needs a budget
  ScorePart score;  ///< empty: nothing but the always kept entries is kept
  /// Bytes that score has in use at its peak, beside what it returns; empty: hardly any.
  std::function<std::size_t(const LayerPrompt&)> score_bytes;
  LayerBudgetPart over_layers;  ///< empty: uniform
  HeadBudgetPart over_heads;    ///< empty: uniform
  /// over_heads spreads over the heads of all layers, from all their scores; so the prompt is read twice. What is
  /// compressed later than a prompt is spread over those of each layer. If set, over_heads is, and over_layers is
  /// empty.
  bool heads_of_all_layers = false;
  SelectPart select;       ///< empty: the best of each head
  DrawPart draw;           ///< empty: select fills all places
  double drawn_share = 0;  ///< share of the selected places that draw fills
  /// Bytes that select has in use at its peak, beside what it returns; empty: hardly any.
  std::function<std::size_t(const LayerPrompt&)> select_bytes;
  bool two_stages = false;       ///< select fills a part of the places by another score
  bool signed_scores = false;    ///< scores may be negative, and so are not to be multiplied
  bool turns = false;            ///< scores look at keys or queries before RoPE
  std::optional<Pieces> pieces;  ///< set where select takes whole pieces
  std::string fixed;             ///< why wrappers cannot change what is selected; empty: they can
};

/// Data that the lanes hold of the selected entries, and beside them.
struct LaneParts {
  MergePart merge;  ///< empty: what is not kept is lost
  /// Bytes that merge has in use at its peak for a head with so many entries, beside the plan; empty: hardly any.
  std::function<std::size_t(const LayerPrompt&, int entries)> merge_bytes;
  double merged_entries = 0;  ///< entries without vectors of their own that merge leaves, at most, for each entry of
                              ///< the budget
  std::vector<std::string> columns;  ///< names of the f32 values that each entry carries
  StatePart state;                   ///< what the columns begin with; empty: 0
  bool state_by_scores = false;      ///< state is made of scores alone, those of pieces where the method keeps them
  int summary_rows = 0;              ///< rows of d floats that are stored for each block
  int summary_block = 16;            ///< entries that a block has at least
  SummarizePart summarize;           ///< REQUIRES: set where summary_rows is
};

/// Parts that act while tokens are decoded, and just before.
struct DecodingParts {
  PreparePart prepare;  ///< empty: nothing to do
  EvictPart evict;      ///< of Schedule::step, this
  StepPart step;        ///< or this
  int buffer = 1;       ///< entries by which a lane is longer than its limit when step brings it back to that
  bool step_sees_attention = true;  ///< false: step does without, and nothing is captured for it
  int predicted_column = -1;      ///< of the lane: gets what the calibration predicts of each new token; negative: none
  AttendPart attend;              ///< empty: each query reads everything
  bool heads_read_alike = false;  ///< attend makes one choice for all heads of a layer
  double read_share = 1;          ///< of a lane's entries, what a query reads if the method evicts and retrieves
};

/// The parts, by when they act, and what holds all the time.
struct Method {
  std::string name;
  Schedule schedule = Schedule::keep;
  Positions positions = Positions::absolute;
  bool one_set_per_layer = false;  ///< all heads of a layer keep the same entries, at every step
  bool retrieves = false;          ///< each query chooses what it reads: a budget's worth of all entries, or a share
                                   ///< of those that are kept
  Observers observers;
  /// Facts about the model that its parts go by, from the session's calibration; empty: none.
  std::optional<CalibrationPart> calibration;
  /// Tokens that passages of its replays repeat; empty: the prompt is read once.
  std::optional<Draft> draft;
  SelectionParts selection;
  LaneParts lanes;
  DecodingParts decoding;

  /// Whether lanes change at every step, so that a token must have been read by all layers before the next one enters.
  bool changes_while_decoding() const { return decoding.evict || decoding.step; }
  bool evicts() const { return schedule != Schedule::keep; }
  /// Whether the method needs `--budget`.
  bool needs_budget() const { return evicts() || retrieves; }
};

}  // namespace winnow::policy
