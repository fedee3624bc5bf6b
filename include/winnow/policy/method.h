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
/// done, while tokens are decoded. Every part is a value, and wrappers such as ada(X) replace single parts. Parts with
/// a forward-declared class in their signature act on the cache itself and can only be written inside winnow.
namespace winnow::policy {

struct AttendView;
struct Method;
struct StepView;

/// Everything that a part sees when a layer of a prompt is done.
struct WINNOW_EXPORT LayerView {
  int layer = 0;   ///< index among the layers that methods compress: those without a sliding window
  int layers = 0;  ///< number of these layers
  int number = 0;  ///< index among all layers of the model; seeds random draws
  attention::Shape shape;
  const cache::LayerScratch& scratch;  ///< keys and values of all tokens; positions continue those of the past
  const Rope& rope;
  const LayerCalibration& calibration;
  std::span<const TokenClass> classes = {};  ///< [n] classes of the prompt's tokens
  int question = 0;                          ///< as LayerPrompt::question
  int budget = 0;  ///< entries per KV head kept of a prompt, mean over all layers; as Terms::budget
  ObserverResults results = {};

  int tokens() const;
  /// Facts about the layer that were known before it was read.
  LayerPrompt prompt() const { return {tokens(), shape.group(), shape.head_dim, shape.kv_heads, question}; }
  /// Key of one token, decoded to f32 and rotated to the token's position, [head_dim].
  void key(int kv_head, int token, std::span<float> out) const;
  /// Value of one token, decoded to f32, [head_dim].
  void value(int kv_head, int token, std::span<float> out) const;
  /// Lengths of a head's keys, without a magnitude that RoPE gives only some dimensions, and of its values, [n]. A
  /// device that has the rows sends only these numbers.
  std::vector<double> key_norms(int kv_head) const;
  std::vector<double> value_norms(int kv_head) const;
  /// Result of one of the method's observers.
  template <class Result>
  const Result& operator[](ResultPlace<Result> place) const {
    return results[place];
  }
};

/// Entries that are kept whatever their scores: the first `sinks` and the last `recent`.
struct AlwaysKept {
  int sinks = 0;
  int recent = 0;
  int total() const { return sinks + recent; }
};

/// Terms of a sequence's layer, fixed when its prompt is compressed.
struct Terms {
  LayerPrompt prompt;
  int budget = 0;          ///< entries per KV head, mean over layers
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
/// Joins second scores to the scores of heads that share a budget, in place. Both have the same size, [heads][n];
/// `budget`: entries per head.
using JoinPart = Part<void(Scores&, const Scores& second, int budget)>;
/// Entries per KV head for each layer, [L], from the mean `budget`; they sum to L * budget exactly. `AlwaysKept` is
/// that of the layer with the most always kept entries.
using LayerBudgetPart = Part<std::vector<int>(int budget, int layers, int tokens, const AlwaysKept&)>;
/// Number of entries that each head selects in addition to the always kept ones, [H_kv]; they sum to H_kv * mean
/// exactly.
using HeadBudgetPart = Part<std::vector<int>(const LayerView&, int mean, const Scores&, const AlwaysKept&)>;
/// Entries that each head selects in addition to the always kept ones, ascending: counts[h] of head h. One call for all
/// heads, so that heads may share a set.
using SelectPart = Part<std::vector<std::vector<std::int32_t>>(const LayerView&, const Scores&,
                                                               std::span<const int> counts, const AlwaysKept&)>;
/// Fills places left by `select`: adds to `selected` until head h has counts[h] entries.
using DrawPart = Part<void(const LayerView&, const Scores&, std::vector<std::vector<std::int32_t>>& selected,
                           std::span<const int> counts, const AlwaysKept&)>;
/// Replaces vectors of kept entries, for instance to merge evicted ones into them: fills plan.values, and plan.keys and
/// plan.merged_entries if keys are merged. Called only if something is evicted.
using MergePart = Part<void(const LayerView&, const Scores&, const AlwaysKept&, cache::KeepPlan& plan)>;
/// Initial values of the per-entry columns for all entries of the prompt, one Scores per column. If the prompt fits
/// into the budget, `always_kept` covers all of it, and the scores are 0.
using StatePart = Part<std::vector<Scores>(const LayerView&, const Scores&, const AlwaysKept&)>;
/// Number of entries that are always kept, even with the smallest budget.
using LeastPart = Part<int(const LayerPrompt&)>;
/// Entries that are always kept when a prompt is cut to B entries.
using AlwaysKeptPart = Part<AlwaysKept(const LayerPrompt&, int budget)>;
/// Tokens that are read after a prompt or a part of it, at the positions that follow, to record their attention to it.
/// In order: the text `ask`, a copy of the `cue` prompt tokens before `first`, the text `reply`, a copy of the prompt
/// tokens [first, first + count), the tokens of the method's draft. Attention is causal, and no entries are kept.
struct Passage {
  std::string ask = {};
  int cue = 0;  ///< at most `first`
  std::string reply = {};
  int first = 0;
  int count = 0;
  int drafted = 0;                    ///< maximum number of draft tokens; REQUIRES: 0 if Method::draft is empty
  attention::KeyRange recorded = {};  ///< prompt tokens; default: all
  std::optional<int> after = {};      ///< prompt tokens before the passage; default: all

  bool operator==(const Passage&) const = default;
};

/// Rows of passages whose attention to a prompt token counts.
enum class ReplayedRows : std::uint8_t {
  all,
  copies,  ///< the copy of the token, and the row before it, which predicts the copy
};

/// Passages, which do not see one another, and the reduction over their rows of the attention that each prompt token
/// gets.
struct Replay {
  std::vector<Passage> passages;
  attention::Reduction reduction = attention::Reduction::max;
  attention::RowScale scale = attention::RowScale::one;
  ReplayedRows rows = ReplayedRows::all;
  /// Names passages that do not depend on later text: prompts with a common beginning have the same ones after parts of
  /// it. Empty: they may differ.
  std::string name = {};

  bool operator==(const Replay&) const = default;
  /// True if a passage contains draft tokens. Equal replays may then read different tokens.
  bool has_draft() const {
    return std::any_of(passages.begin(), passages.end(), [](const Passage& passage) { return passage.drafted > 0; });
  }
};

/// Greedy continuation of the prompt by another method. The prompt is then read twice: first for that method, with the
/// same budget, and again with the draft in the passages. Text that is compressed after a prompt, such as a turn of a
/// conversation, has no draft.
struct Draft {
  std::shared_ptr<const Method> drafter;  ///< REQUIRES: it has no draft
  int tokens = 0;                         ///< maximum; end-of-sequence ends it early, but it has at least one token
};

/// Step of a per-step method after attention has been seen: updates columns, evicts down to the limit. Called by
/// several threads for one KV head each, or once for all heads if they share one set.
using StepPart = Part<void(const StepView&)>;
/// Slot of the entry to evict when a new token is about to enter a full lane, for per-step methods that do not look at
/// attention.
using EvictPart = Part<int(cache::LayerLanes&, int head, const Terms&)>;
/// Ranges of each lane that a query reads, for methods that narrow them or change distances: one plan for each KV head,
/// empty on entry. Called by several threads for one KV head each, or once for all heads if these read the same ranges.
using AttendPart = Part<void(const AttendView&, std::span<std::vector<cache::AttendRange>> plans)>;
/// Summarizes the blocks of a layer's lanes. Called when the lanes have been filled, and when kept entries of a later
/// text have been added.
using SummarizePart = Part<void(cache::LayerLanes&, const Terms&)>;
/// Runs once for a layer when its lanes have been filled; stores data for decoding.
using PreparePart = Part<void(const LayerView&, cache::LayerLanes&, const Terms&)>;

/// Entries that are kept together.
struct Piece {
  double score = 0;
  std::vector<std::int32_t> entries = {};  ///< if not all of them fit, the first ones are kept
};
/// Divides all evictable entries into pieces, best piece first, by one score for each entry, [n].
using DividePart = Part<std::vector<Piece>(const LayerView&, std::span<const double> scores, const AlwaysKept&)>;

/// How a method keeps entries in pieces.
struct Pieces {
  /// Whether a layer or a head chooses pieces; undecided: the layer, unless its heads share a budget.
  enum class Per : std::uint8_t { undecided, layer, head };
  DividePart divide;
  Per per = Per::undecided;
};

/// When entries are evicted.
enum class Schedule : std::uint8_t {
  keep,  ///< never
  once,  ///< when the prompt has been read
  step,  ///< when the prompt has been read, and while tokens are decoded
};

/// Effective positions of entries.
enum class Positions : std::uint8_t {
  absolute,            ///< positions in the text
  absolute_unrotated,  ///< the same, with un-rotated keys in the lane, which can be merged
  cache,               ///< ranks in the lane, so that no distance exceeds the lane's length
};

/// Parts that choose the kept entries when a layer of the prompt is done.
struct SelectionParts {
  AlwaysKeptPart always_kept;
  LeastPart least;  ///< REQUIRES: set if the method needs a budget
  ScorePart score;  ///< empty: only the always kept entries stay
  /// Peak work space of score, in bytes, without its result; empty: negligible.
  std::function<std::size_t(const LayerPrompt&)> score_bytes;
  ScorePart second_score;       ///< further scores of the entries; empty: none
  JoinPart join;                ///< REQUIRES: set if second_score is
  LayerBudgetPart over_layers;  ///< empty: uniform
  HeadBudgetPart over_heads;    ///< empty: uniform
  /// over_heads spreads the budget over the heads of all layers by all their scores, so the prompt is read twice. For
  /// text that is compressed after a prompt, it spreads over the heads of each layer. REQUIRES if set: over_heads is
  /// set, over_layers is empty.
  bool heads_of_all_layers = false;
  SelectPart select;       ///< empty: the entries with the highest scores of each head
  DrawPart draw;           ///< empty: select fills all places
  double drawn_share = 0;  ///< share of the selected places that draw fills
  /// Peak work space of select, in bytes, without its result; empty: negligible.
  std::function<std::size_t(const LayerPrompt&)> select_bytes;
  bool two_rounds = false;       ///< select fills some places by a second score
  bool signed_scores = false;    ///< scores may be negative, so multiplying them is meaningless
  bool turns = false;            ///< scores use keys or queries before RoPE
  std::optional<Pieces> pieces;  ///< set if select keeps whole pieces
  std::string fixed;             ///< why wrappers cannot change the selection; empty: they can
};

/// Contents of the lanes other than the selected entries.
struct LaneParts {
  MergePart merge;  ///< empty: evicted entries are lost
  /// Peak work space of merge, in bytes, for a head with `entries` entries, without the plan; empty: negligible.
  std::function<std::size_t(const LayerPrompt&, int entries)> merge_bytes;
  double merged_entries = 0;         ///< maximum number of merged entries per entry of the budget
  std::vector<std::string> columns;  ///< names of the f32 columns of each entry
  StatePart state;                   ///< initial values of the columns; empty: 0
  bool state_by_scores = false;      ///< state uses only scores, which are the pieces' if there are pieces
  int summary_rows = 0;              ///< rows of d floats stored for each block
  int summary_block = 16;            ///< minimum number of entries of a block
  SummarizePart summarize;           ///< REQUIRES: set if summary_rows > 0
};

/// Parts that act just before and during decoding.
struct DecodingParts {
  PreparePart prepare;              ///< empty: nothing to prepare
  EvictPart evict;                  ///< for Schedule::step; REQUIRES: empty if step is set
  StepPart step;                    ///< for Schedule::step
  int buffer = 1;                   ///< entries by which a lane exceeds its limit before step brings it back
  bool step_sees_attention = true;  ///< false: step does not need attention, and none is captured
  int predicted_column = -1;      ///< lane column that gets the calibration's prediction for each new token; negative:
                                  ///< none
  AttendPart attend;              ///< empty: each query reads all entries
  bool heads_read_alike = false;  ///< attend chooses once for all heads of a layer
  double read_share = 1;          ///< share of a lane's entries that a query reads if the method evicts and retrieves
};

/// A method: its parts, by when they act, and its general properties.
struct Method {
  std::string name;
  Schedule schedule = Schedule::keep;
  Positions positions = Positions::absolute;
  bool one_set_per_layer = false;  ///< all heads of a layer keep the same entries at every step
  bool retrieves = false;          ///< each query reads a subset: as many entries as the budget, or a share of the kept
                                   ///< ones
  Observers observers;
  /// Facts about the model that its parts need from the session's calibration; empty: none.
  std::optional<CalibrationPart> calibration;
  /// Draft for the passages of its replays; empty: the prompt is read once.
  std::optional<Draft> draft;
  SelectionParts selection;
  LaneParts lanes;
  DecodingParts decoding;

  /// True if lanes change at every step, so that a token must pass all layers before the next one enters.
  bool changes_while_decoding() const { return decoding.evict || decoding.step; }
  bool evicts() const { return schedule != Schedule::keep; }
  /// True if the method needs `--budget`.
  bool needs_budget() const { return evicts() || retrieves; }
};

}  // namespace winnow::policy
