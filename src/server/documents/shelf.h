// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "server/hidden_place.h"
#include "winnow/documents.h"

namespace winnow::server {

/// The server's store of documents. After a failure, the next use opens it again. Thread-safe.
class Shelf {
 public:
  /// Opens the store, or creates it. Throws UsageError, InputError.
  explicit Shelf(std::string where);

  /// Calls `use` with the store. Passes on its exceptions, without the store's place.
  template <class Use>
  auto use(const Use& use) {
    return place_.use([&] {
      const auto store = open();
      try {
        return use(*store);
      } catch (const StoreError&) {
        drop(store);
        throw;
      }
    });
  }
  /// The store's location.
  const HiddenPlace& place() const { return place_; }

 private:
  std::shared_ptr<DocumentStore> open();
  void drop(const std::shared_ptr<DocumentStore>& store);

  std::string where_;
  std::mutex mutex_;
  std::shared_ptr<DocumentStore> store_;  ///< null after a failure
  HiddenPlace place_;                     ///< set when it is open
};

}  // namespace winnow::server
