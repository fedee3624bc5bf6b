// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "winnow/export.h"
#include "winnow/policy/attention.h"
#include "winnow/policy/layer.h"
#include "winnow/prompt.h"

namespace winnow {
struct Rope;
struct Worker;

namespace cache {
class LayerScratch;
}  // namespace cache
}  // namespace winnow

/// Observers look at a prompt while it passes through a layer, and show what they have seen to the parts of the methods
/// that asked for it. Methods that ask for the same share one observer.
namespace winnow::policy {

struct Replay;
class OutputProjection;

/// A layer of a prompt, as it is known before the prompt's rows pass through it.
struct ObservedLayer {
  int number = 0;   ///< among all layers of the model
  int keys_of = 0;  ///< the layer whose keys it reads: its own number, or an earlier layer's
  int readers = 1;  ///< layers that read these keys, this one included
  LayerPrompt prompt;
  attention::Shape shape;
  const Rope& rope;
  const LayerCalibration& calibration;
  int past = 0;                      ///< tokens that come before the prompt
  int input_dim = 0;                 ///< n_embd: the length of the row that query, key and value are made of
  std::size_t projection_bytes = 0;  ///< work space of OutputProjection::lengths()
};

/// The rows that queries, keys and values of some tokens are made of: those of the prompt from `first` on.
struct LayerInputs {
  int first = 0;
  int count = 0;
  int width = 0;                ///< n_embd
  const float* data = nullptr;  ///< [count][width]
};

/// Tokens of a prompt, from `first` on, when attention has been computed for them.
struct LayerRows {
  int first = 0;
  int count = 0;
  const float* queries = nullptr;      ///< [count][H_q][d], rotated
  const float* outputs = nullptr;      ///< [count][H_q][d] what attention gave for them, before the output projection
  const cache::LayerScratch& scratch;  ///< keys, values and positions of all tokens so far
};

/// A layer whose keys nobody reads any more.
struct EndedLayer {
  int number = 0;
  const cache::LayerScratch& scratch;  ///< keys and values of the whole prompt
  const OutputProjection& projection;
};

/// Rows that an observer reads of a chunk, beside the attention that is recorded for it.
struct ObserverNeeds {
  bool inputs = false;
  bool queries = false;  ///< with the outputs
};

/// Looks at a prompt in one layer after the other. The team calls see_inputs() and see_rows() with a barrier before and
/// after: its members share the rows, or the heads.
class WINNOW_EXPORT Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual ObserverNeeds needs() const { return {}; }
  /// Statistics that attention adds to while chunks pass.
  virtual std::vector<attention::Observation*> columns() { return {}; }
  /// Where attention writes down the logarithm of each query's sum of exp(logit), [n][H_q]; null: nowhere.
  virtual float* logsums() { return nullptr; }
  /// The prompt comes to a layer. Of layers that read the same keys, the one that has them is the first.
  virtual void begin_layer(const ObservedLayer& layer);
  virtual void see_inputs(const LayerInputs& inputs, Worker worker);
  virtual void see_rows(const LayerRows& rows, Worker worker);
  /// The last layer that reads the same keys is done. Throws MemoryError and Interrupted.
  virtual void end_layer(const EndedLayer& layer);
};

/// An observer that shows a Result to the parts of methods.
template <class Result>
class ObserverOf : public Observer {
 public:
  virtual const Result& result() const = 0;
};

/// Bytes of an observer in one layer of a prompt, at most.
struct ObserverBytes {
  std::size_t reading = 0;  ///< from the first chunk until the layer is compressed
  std::size_t ending = 0;   ///< besides, while the layer is compressed
};

/// A method's wish to see something, as a value: equal requests are met by one observer.
class WINNOW_EXPORT ObserverRequest {
 public:
  ObserverRequest() = default;
  ObserverRequest(const ObserverRequest&) = delete;
  ObserverRequest& operator=(const ObserverRequest&) = delete;
  virtual ~ObserverRequest() = default;

  virtual bool equals(const ObserverRequest& other) const = 0;
  virtual ObserverBytes bytes(const ObservedLayer& layer) const = 0;
  virtual std::unique_ptr<Observer> observer(const ObservedLayer& layer) const = 0;
  /// Statistics that attention records for its observer.
  virtual std::vector<attention::Observe> columns() const { return {}; }
  /// Passages that are read again for it; null: none. Attention is then recorded for these alone.
  virtual const Replay* replay() const { return nullptr; }
  /// The tokens that passages of the replay repeat as their draft.
  virtual std::span<const Token> draft() const { return {}; }
};
using ObserverRequestPtr = std::shared_ptr<const ObserverRequest>;

/// A request whose observer shows a Result.
template <class Result>
class RequestOf {
 public:
  explicit RequestOf(ObserverRequestPtr request) : request_(std::move(request)) {}
  const ObserverRequestPtr& get() const { return request_; }

 private:
  ObserverRequestPtr request_;
};

/// Facts that a request may depend on.
struct Asking {
  LayerPrompt prompt;
  int budget = 0;                     ///< entries per KV head
  LayerPrompt first_layer;            ///< the prompt in the first layer that methods compress
  int past = 0;                       ///< tokens that come before the prompt
  std::span<const Token> draft = {};  ///< the tokens that Method::draft has made; empty before
};

/// The parts of a method that look at what an observer shows.
struct ShownTo {
  bool ranking = false;  ///< `score`, `over_heads`: where something is evicted
  bool keeping = false;  ///< `select`, `draw`, `merge`: the same
  bool state = false;    ///< `state`, `prepare`: in any case
};

/// A way to look that a method brings along.
template <class Result>
struct ObserverPart {
  std::string kind;  ///< under which `winnow methods` lists it
  std::string text;
  std::function<RequestOf<Result>(const Asking&)> ask;
};

/// The place of what an observer has seen in the views of the method that asked for it.
template <class Result>
struct Seen {
  std::size_t place = 0;
};

/// The observers of a method.
class Observers {
 public:
  struct Part {
    std::string kind;
    std::string text;
    ShownTo shown_to;
    std::function<ObserverRequestPtr(const Asking&)> ask;
  };

  template <class Result>
  Seen<Result> add(ObserverPart<Result> part, ShownTo shown_to) {
    parts_.push_back({std::move(part.kind), std::move(part.text), shown_to,
                      [ask = std::move(part.ask)](const Asking& asking) { return ask(asking).get(); }});
    return {parts_.size() - 1};
  }
  const std::vector<Part>& parts() const { return parts_; }
  bool has(std::string_view kind) const;

 private:
  std::vector<Part> parts_;
};

/// The results of one method's observers in a layer.
class WINNOW_EXPORT Shown {
 public:
  Shown() = default;
  /// [place] null where a part does not look.
  explicit Shown(std::vector<const Observer*> observers) : observers_(std::move(observers)) {}

  /// Throws std::logic_error where the method has not said that the part looks at it.
  template <class Result>
  const Result& operator[](Seen<Result> seen) const {
    return static_cast<const ObserverOf<Result>&>(at(seen.place)).result();
  }

 private:
  const Observer& at(std::size_t place) const;

  std::vector<const Observer*> observers_;
};

}  // namespace winnow::policy
