// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <thread>

#include "documents/adding.h"
#include "engine/cache_source.h"
#include "server/documents/shelf.h"

namespace winnow::server {

/// Progress of adding a document, readable by other threads.
struct AddingResult {
  std::atomic<bool> is_writing{false};  ///< everything has been read: stopping is no longer worthwhile
  AddedDocument added;                  ///< valid when its request has ended without an error
};

/// Reads a document as a request among others. Its own thread then writes it to the store, which may take long. The
/// request keeps the cache meanwhile, so the memory stays promised.
class AddingSource : public engine::CacheSource {
 public:
  /// `wake` wakes the scheduler; it may be called during the source's lifetime.
  AddingSource(std::unique_ptr<documents::Adding> adding, Shelf& shelf, std::function<void()> wake,
               std::shared_ptr<AddingResult> result);
  AddingSource(const AddingSource&) = delete;
  AddingSource& operator=(const AddingSource&) = delete;
  /// Joins its thread.
  ~AddingSource() override;

  int tokens() const override { return static_cast<int>(adding_->reading().tokens().size()); }
  std::size_t bytes(const Session::Impl& session) const override { return adding_->reading().bytes(session); }
  std::size_t cache_bytes(const Session::Impl& session) const override;
  void begin(Session::Impl& session) override { adding_->begin(session); }
  bool advance() override;
  bool is_waiting() const override { return writer_.joinable() && !is_written_; }
  double done() const override { return result_->is_writing ? 1 : adding_->reading().done(); }
  Cache take_cache() override { return adding_->take_cache(); }
  std::vector<float> take_logits() override { return {}; }

 private:
  void write() noexcept;

  std::unique_ptr<documents::Adding> adding_;
  Shelf& shelf_;
  std::function<void()> wake_;
  std::shared_ptr<AddingResult> result_;
  std::exception_ptr error_;  ///< from writing the document
  std::atomic<bool> is_written_{false};
  std::thread writer_;
};

}  // namespace winnow::server
