// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "winnow/documents.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::server {

/// A store's location (a folder or an address), which clients must not see.
class HiddenPlace {
 public:
  explicit HiddenPlace(std::string place) : place_(std::move(place)) {}

  /// Removes the location from a sentence. Logs the original sentence if it contained the location.
  std::string without(const std::string& sentence) const;

  /// Returns the result of `use`. Removes the location from its errors, and throws them on as the same type.
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
