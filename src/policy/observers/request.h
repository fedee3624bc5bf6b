// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "winnow/policy/observer.h"

namespace winnow::policy {

/// A request for an observer T that is constructed from a T::Wanted. T::bytes(wanted, layer) is its size;
/// T::columns(wanted), if it exists, names the statistics that attention records for it; T::first_row, T::state_name,
/// T::kStateGrows and T::state_bytes are those of the request.
template <class T>
class Request : public ObserverRequest {
 public:
  using Wanted = typename T::Wanted;

  explicit Request(Wanted wanted) : wanted_(std::move(wanted)) {}

  bool equals(const ObserverRequest& other) const override {
    const auto* const same = dynamic_cast<const Request*>(&other);
    return same != nullptr && same->wanted_ == wanted_;
  }
  ObserverBytes bytes(const ObservedLayer& layer) const override { return T::bytes(wanted_, layer); }
  std::unique_ptr<Observer> observer(const ObservedLayer& layer) const override {
    return std::make_unique<T>(wanted_, layer);
  }
  std::vector<attention::ColumnRequest> columns() const override {
    if constexpr (requires { T::columns(wanted_); }) {
      return T::columns(wanted_);
    } else {
      return {};
    }
  }

  int first_row(const LayerPrompt& prompt) const override {
    if constexpr (requires { T::first_row(wanted_, prompt); }) {
      return T::first_row(wanted_, prompt);
    } else {
      return 0;
    }
  }

  std::string state_name() const override {
    if constexpr (requires { T::state_name(wanted_); }) {
      return T::state_name(wanted_);
    } else {
      return {};
    }
  }
  bool state_grows() const override {
    if constexpr (requires { T::kStateGrows; }) {
      return T::kStateGrows;
    } else {
      return false;
    }
  }
  std::size_t state_bytes(const ObservedLayer& layer, int rows) const override {
    if constexpr (requires { T::state_bytes(wanted_, layer, rows); }) {
      return T::state_bytes(wanted_, layer, rows);
    } else {
      return 0;
    }
  }

 protected:
  const Wanted& wanted() const { return wanted_; }

 private:
  Wanted wanted_;
};

template <class T, class Result>
RequestOf<Result> request(typename T::Wanted wanted) {
  return RequestOf<Result>(std::make_shared<const Request<T>>(std::move(wanted)));
}

}  // namespace winnow::policy
