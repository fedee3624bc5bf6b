// SPDX-License-Identifier: Apache-2.0
#include "server/documents/shelf.h"

namespace winnow::server {

Shelf::Shelf(std::string where) : where_(std::move(where)), place_(open()->where()) {}

std::shared_ptr<DocumentStore> Shelf::open() {
  const std::lock_guard lock(mutex_);
  if (!store_) store_ = std::make_shared<DocumentStore>(where_);
  return store_;
}

void Shelf::drop(const std::shared_ptr<DocumentStore>& store) {
  const std::lock_guard lock(mutex_);
  if (store_ == store) store_.reset();
}

}  // namespace winnow::server
