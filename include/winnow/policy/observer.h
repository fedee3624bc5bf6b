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

/// Observers watch a prompt while it passes through a layer, and provide results to the parts of the methods that
/// requested them. Equal requests share one observer.
namespace winnow::policy {

struct Replay;
class OutputProjection;

/// A layer of a prompt, as known before the prompt's rows pass through it.
struct ObservedLayer {
  int number = 0;   ///< among all layers of the model
  int keys_of = 0;  ///< the layer whose keys it reads: itself, or an earlier one
  int readers = 1;  ///< layers that read these keys, this one included
  LayerPrompt prompt;
  attention::Shape shape;
  const Rope& rope;
  const LayerCalibration& calibration;
  int past = 0;                      ///< tokens before the prompt
  int input_dim = 0;                 ///< n_embd, the width of the layer's input rows
  std::size_t projection_bytes = 0;  ///< work space of OutputProjection::lengths()
};

/// Layer inputs of some tokens of the prompt: the normalized hidden states from which queries, keys and values are
/// computed.
struct LayerInputs {
  int first = 0;
  int count = 0;
  int width = 0;                ///< n_embd
  const float* data = nullptr;  ///< [count][width]
};

/// Some tokens of a prompt after their attention has been computed.
struct LayerRows {
  int first = 0;
  int count = 0;
  const float* queries = nullptr;      ///< [count][H_q][d], rotated
  const float* outputs = nullptr;      ///< [count][H_q][d] attention outputs before the output projection
  const cache::LayerScratch& scratch;  ///< keys, values and positions of all tokens so far
};

/// A layer whose keys are not needed any more.
struct EndedLayer {
  int number = 0;
  const cache::LayerScratch& scratch;  ///< keys and values of the whole prompt
  const OutputProjection& projection;
};

/// Rows of each chunk that an observer reads, in addition to the attention statistics recorded for it.
struct ObserverNeeds {
  bool inputs = false;
  bool queries = false;  ///< and outputs
};

/// Watches a prompt in one layer after the other. All members of the team call see_inputs() and see_rows(), between
/// barriers, and share the rows or the heads.
class WINNOW_EXPORT Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual ~Observer() = default;

  virtual ObserverNeeds needs() const { return {}; }
  /// Statistics that attention accumulates while chunks pass.
  virtual std::vector<attention::ColumnStatistics*> columns() { return {}; }
  /// Destination for the logarithm of each query's sum of exp(logit), [n][H_q]; null: not needed.
  virtual float* logsums() { return nullptr; }
  /// The prompt enters a layer. Among layers that read the same keys, the one that computes them comes first.
  virtual void begin_layer(const ObservedLayer& layer);
  virtual void see_inputs(const LayerInputs& inputs, Worker worker);
  virtual void see_rows(const LayerRows& rows, Worker worker);
  /// Continues after the first `rows` rows, which do not pass, from the state that an equal observer kept after them.
  virtual void take_state(int rows, std::span<const std::byte> state);
  /// Writes the state after the first `rows` rows to `state`, when they have passed and before end_layer() returns. May
  /// be called several times in a layer. REQUIRES: a multiple of 64 rows, more than those of a state that was taken.
  virtual void keep_state(int rows, std::span<std::byte> state);
  /// The last layer that reads the same keys has finished. Throws MemoryError and Interrupted.
  virtual void end_layer(const EndedLayer& layer);
};

/// An observer that provides a Result to the parts of methods.
template <class Result>
class ObserverOf : public Observer {
 public:
  virtual const Result& result() const = 0;
};

/// Worst-case bytes of an observer in one layer of a prompt.
struct ObserverBytes {
  std::size_t reading = 0;  ///< from the first chunk until the layer is compressed
  std::size_t ending = 0;   ///< additional bytes while the layer is compressed
};

/// A method's request for an observer, as a value: equal requests share one observer.
class WINNOW_EXPORT ObserverRequest {
 public:
  ObserverRequest() = default;
  ObserverRequest(const ObserverRequest&) = delete;
  ObserverRequest& operator=(const ObserverRequest&) = delete;
  virtual ~ObserverRequest() = default;

  virtual bool equals(const ObserverRequest& other) const = 0;
  virtual ObserverBytes bytes(const ObservedLayer& layer) const = 0;
  virtual std::unique_ptr<Observer> observer(const ObservedLayer& layer) const = 0;
  /// Statistics that attention records for the observer.
  virtual std::vector<attention::ColumnRequest> columns() const { return {}; }
  /// Passages to replay for the observer; null: none. Attention is then recorded for the passages only.
  virtual const Replay* replay() const { return nullptr; }
  /// First row of a prompt that the observer must see. Earlier rows may be taken from known keys and values, and chunks
  /// before it are not shown to observers without column statistics.
  virtual int first_row(const LayerPrompt& /*prompt*/) const { return 0; }
  /// Name of the observer's state after some rows of a prompt. Requests with the same name have the same state, in
  /// every prompt with these rows and in every process, as states are also stored in files: the name contains the
  /// options that change the numbers. Empty: there is no state, and the observer must see the rows from first_row() on.
  virtual std::string state_name() const { return {}; }
  /// True if the state after some rows begins with the bytes of the state after fewer rows.
  virtual bool state_grows() const { return false; }
  /// Bytes of the state after `rows` rows.
  virtual std::size_t state_bytes(const ObservedLayer& /*layer*/, int /*rows*/) const { return 0; }
  /// Draft tokens that passages of the replay repeat.
  virtual std::span<const Token> draft() const { return {}; }
};
using ObserverRequestPtr = std::shared_ptr<const ObserverRequest>;

/// A request for an observer with a Result.
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
  int past = 0;                       ///< tokens before the prompt
  std::span<const Token> draft = {};  ///< tokens of Method::draft; empty until they have been generated
};

/// The parts of a method that use the result of an observer.
struct UsedBy {
  bool ranking = false;  ///< `score`, `over_heads`, if something is evicted
  bool keeping = false;  ///< `select`, `draw`, `merge`, if something is evicted
  bool state = false;    ///< `state`, `prepare`, always
};

/// An observer that a method requests.
template <class Result>
struct ObserverPart {
  std::string kind;  ///< name of the kind in `winnow methods`
  std::string text;
  std::function<RequestOf<Result>(const Asking&)> ask;
};

/// Index of an observer's result in the views of the method that requested it.
template <class Result>
struct ResultPlace {
  std::size_t index = 0;
};

/// The observers of a method.
class Observers {
 public:
  struct Part {
    std::string kind;
    std::string text;
    UsedBy used_by;
    std::function<ObserverRequestPtr(const Asking&)> ask;
  };

  template <class Result>
  ResultPlace<Result> add(ObserverPart<Result> part, UsedBy used_by) {
    parts_.push_back({std::move(part.kind), std::move(part.text), used_by,
                      [ask = std::move(part.ask)](const Asking& asking) { return ask(asking).get(); }});
    return {parts_.size() - 1};
  }
  const std::vector<Part>& parts() const { return parts_; }
  bool has(std::string_view kind) const;

 private:
  std::vector<Part> parts_;
};

/// The results of one method's observers in a layer.
class WINNOW_EXPORT ObserverResults {
 public:
  ObserverResults() = default;
  /// [place]; null for observers that the current part does not use.
  explicit ObserverResults(std::vector<const Observer*> observers) : observers_(std::move(observers)) {}

  /// Throws std::logic_error if the method did not declare that the part uses the result.
  template <class Result>
  const Result& operator[](ResultPlace<Result> place) const {
    return static_cast<const ObserverOf<Result>&>(at(place.index)).result();
  }

 private:
  const Observer& at(std::size_t index) const;

  std::vector<const Observer*> observers_;
};

}  // namespace winnow::policy
