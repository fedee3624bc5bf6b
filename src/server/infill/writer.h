// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "server/answers/events.h"
#include "server/answers/plan.h"
#include "server/http/message.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// Tells one text in the form of llama.cpp's server, whole or in chunks.
class InfillWriter : public AnswerWriter {
 public:
  InfillWriter(AnswerPlan plan, std::shared_ptr<Responder> to) : plan_(std::move(plan)), to_(std::move(to)) {}

  void refused(const std::exception_ptr& why) override;
  void begun() override;
  void goes_on() override;
  void piece(int choice, AnswerPiece piece, const AnswerCost& now) override;
  void ended(int choice, const AnswerEnd& end, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;
  void failed(const std::exception_ptr& error) override;

 private:
  AnswerPlan plan_;
  std::shared_ptr<Responder> to_;
  std::string text_;  ///< unless it is streamed
  AnswerEnd end_;
};

}  // namespace winnow::server
