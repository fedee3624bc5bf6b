// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/answers/surface_writer.h"
#include "server/openai/answer.h"

namespace winnow::server {

/// Tells one text in the form of llama.cpp's server, whole or in chunks.
class InfillWriter : public OneAnswerWriter {
 public:
  using OneAnswerWriter::OneAnswerWriter;

  void piece(int choice, AnswerPiece piece, const AnswerCost& now) override;
  void finished(const AnswerCost& cost) override;

 private:
  std::string text_;  ///< unless it is streamed
};

}  // namespace winnow::server
