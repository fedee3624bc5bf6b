// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "server/hidden_place.h"
#include "winnow/documents.h"

namespace winnow::server {

/// The server's store of documents. A store that has failed is opened anew for the next use. Thread-safe.
class Shelf {
 public:
  /// Opens the store, which is made where there is none. Throws UsageError, InputError.
  explicit Shelf(std::string where);

  /// Calls `use` with the store. What it throws is passed on, without the store's place.
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
  /// Where the store is.
  const HiddenPlace& place() const { return place_; }

 private:
  std::shared_ptr<DocumentStore> open();
  void drop(const std::shared_ptr<DocumentStore>& store);

  std::string where_;
  std::mutex mutex_;
  std::shared_ptr<DocumentStore> store_;  ///< null: it has failed
  HiddenPlace place_;                     ///< known when it is open
};

}  // namespace winnow::server
