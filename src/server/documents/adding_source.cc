// SPDX-License-Identifier: Apache-2.0
#include "server/documents/adding_source.h"

#include <utility>

#include "base/start_thread.h"
#include "engine/cache_bytes.h"

namespace winnow::server {

AddingSource::AddingSource(std::unique_ptr<documents::Adding> adding, Shelf& shelf, std::function<void()> wake,
                           std::shared_ptr<AddingResult> result)
    : adding_(std::move(adding)), shelf_(shelf), wake_(std::move(wake)), result_(std::move(result)) {}

std::size_t AddingSource::cache_bytes(const Session::Impl& session) const {
  return engine::cache_bytes(adding_->reading().options(), session.hparams, tokens());
}

AddingSource::~AddingSource() {
  if (writer_.joinable()) writer_.join();
}

bool AddingSource::advance() {
  if (!writer_.joinable()) {
    if (adding_->advance()) return true;
    result_->is_writing = true;
    writer_ = start_thread("writing a document", [this] { return std::thread([this] { write(); }); });
    return true;
  }
  writer_.join();
  if (error_) std::rethrow_exception(error_);
  result_->added = adding_->added();
  return false;
}

void AddingSource::write() noexcept {
  try {
    shelf_.use([this](DocumentStore& store) { adding_->keep(store.archive()); });
  } catch (...) {
    error_ = std::current_exception();
  }
  is_written_ = true;
  wake_();
}

}  // namespace winnow::server
