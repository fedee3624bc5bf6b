// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "server/answers/surface_writer.h"
#include "server/openai/answer.h"
#include "winnow/model.h"

namespace winnow::server {

/// Sends answers as OpenAI's list of choices, at once or in chunks. Subclasses format a choice.
class ChoicesWriter : public SurfaceWriter {
 public:
  ChoicesWriter(std::shared_ptr<const Model> model, AnswerPlan plan, std::shared_ptr<Responder> to);

  void delta(int choice, AnswerDelta delta, const AnswerCost& now) override;
  void ended(int choice, const AnswerEnd& end, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;

 protected:
  /// An answer that is sent at once.
  struct Whole {
    AnswerDelta answer;
    AnswerEnd end;
  };

  /// Types of the objects of a complete answer and of a chunk.
  virtual const char* whole_object() const = 0;
  virtual const char* chunk_object() const = 0;
  /// The first chunk of each choice; null: none.
  virtual Json first_chunk() const { return nullptr; }
  /// Adds a delta to a choice of a chunk.
  virtual void put_delta(Json& choice, const AnswerDelta& delta) const = 0;
  /// Adds an answer to a choice, before the fields that all choices have.
  virtual void put_whole(Json& choice, const Whole& whole) const = 0;
  /// Edits a complete choice.
  virtual void complete(Json& /*choice*/, const Whole& /*whole*/) const {}
  /// REQUIRES: log probabilities were requested.
  virtual Json logprobs(int choice, std::span<const GeneratedToken> tokens) = 0;
  virtual const char* finish_of(const AnswerEnd& end) const { return finish_name(end.reason); }

  const Model& model() const { return *model_; }

 private:
  void open_stream() override;
  Json chunk(Json choice, const AnswerCost& now) const;
  Json delta_json(int choice, const AnswerDelta& delta, const char* finish, const AnswerCost& now);
  Json whole_json(int choice);

  std::shared_ptr<const Model> model_;
  std::vector<Whole> answers_;  ///< [choice], unless they are streamed
};

}  // namespace winnow::server
