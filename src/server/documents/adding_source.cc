// SPDX-License-Identifier: Apache-2.0
#include "server/documents/adding_source.h"

#include <utility>

#include "engine/prefill.h"

namespace winnow::server {

AddingSource::AddingSource(std::unique_ptr<documents::Adding> adding, Shelf& shelf, std::function<void()> wake,
                           std::shared_ptr<AddingResult> result)
    : adding_(std::move(adding)), shelf_(shelf), wake_(std::move(wake)), result_(std::move(result)) {}

std::size_t AddingSource::cache_bytes(const Session::Impl& session) const {
  return engine::cache_bytes(adding_->reading().options(), session.hparams, tokens());
}

bool AddingSource::advance() {
  if (!writer_.valid()) {
    if (adding_->advance()) return true;
    result_->is_writing = true;
    writer_ = std::async(std::launch::async, [this] { write(); });
    return true;
  }
  writer_.wait();
  if (error_) std::rethrow_exception(error_);
  result_->added = adding_->added();
  return false;
}

void AddingSource::write() noexcept {
  try {
    shelf_.use([this](DocumentStore& store) { adding_->keep(store.impl().archive); });
  } catch (...) {
    error_ = std::current_exception();
  }
  is_written_ = true;
  wake_();
}

}  // namespace winnow::server
