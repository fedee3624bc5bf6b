// SPDX-License-Identifier: Apache-2.0
#include "server/answers/surface_writer.h"

#include "server/openai/errors.h"

namespace winnow::server {

void SurfaceWriter::begun() {
  if (!is_streamed()) return;
  to_->begin();
  open_stream();
}

void SurfaceWriter::goes_on() {
  if (is_streamed()) tell_going_on();
}

void SurfaceWriter::failed(const std::exception_ptr& error) {
  if (!is_streamed()) return to_->send(error_reply_for(error));
  tell_failure(error);
  end_stream();
}

void SurfaceWriter::tell_failure(const std::exception_ptr& error) { write("data: " + error_text(error) + "\n\n"); }

HttpReply SurfaceWriter::error_reply_for(const std::exception_ptr& error) const { return error_reply(error); }

}  // namespace winnow::server
