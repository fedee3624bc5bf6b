// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "server/answers/events.h"
#include "server/answers/plan.h"
#include "server/http/message.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// Tells an answer as a message of content blocks, whole or as a stream.
class MessageWriter : public AnswerWriter {
 public:
  MessageWriter(AnswerPlan plan, std::shared_ptr<Responder> to) : plan_(std::move(plan)), to_(std::move(to)) {}

  void refused(const std::exception_ptr& why) override;
  void begun() override;
  void goes_on() override;
  void piece(int choice, AnswerPiece piece, const AnswerCost& now) override;
  void ended(int choice, const AnswerEnd& end, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;
  void failed(const std::exception_ptr& error) override;

 private:
  enum class Block : std::uint8_t { thinking, text, call };

  Json message(const AnswerCost& cost) const;
  /// Ends the block that is open unless it is such a one, and begins one.
  void open(Block kind, Json block);
  void close();
  void delta(Json delta);
  void write(const Json& event);

  AnswerPlan plan_;
  std::shared_ptr<Responder> to_;
  AnswerPiece whole_;  ///< unless it is streamed
  AnswerEnd end_;
  std::optional<Block> block_;  ///< that is open
  std::size_t blocks_ = 0;      ///< that have begun
};

}  // namespace winnow::server
