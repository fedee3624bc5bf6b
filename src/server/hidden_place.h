// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "winnow/documents.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::server {

/// Where a store is, a folder or an address, which is not told to clients.
class HiddenPlace {
 public:
  explicit HiddenPlace(std::string place) : place_(std::move(place)) {}

  /// A sentence without the place. Where it had it, the log gets it as it was.
  std::string without(const std::string& sentence) const;

  /// Returns what `use` returns. Errors that name the place are thrown on without it, as the same kind.
  template <class Use>
  auto use(const Use& use) const {
    try {
      return use();
    } catch (const UnknownDocument& error) {
      throw UnknownDocument(without(error.what()));
    } catch (const StoreError& error) {
      throw StoreError(without(error.what()));
    } catch (const InputError& error) {
      throw InputError(without(error.what()));
    } catch (const UsageError& error) {
      throw UsageError(without(error.what()));
    }
  }

 private:
  std::string place_;
};

}  // namespace winnow::server
