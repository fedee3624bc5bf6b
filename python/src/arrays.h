// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bind.h"
#include "winnow/prompt.h"

namespace winnow::python {

/// Read-only arrays of numpy.
using Floats = nb::ndarray<nb::numpy, const float, nb::ndim<1>, nb::c_contig>;
using Rows = nb::ndarray<nb::numpy, const float, nb::ndim<2>, nb::c_contig>;
using Cube = nb::ndarray<nb::numpy, const float, nb::ndim<3>, nb::c_contig>;
using Integers = nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<1>, nb::c_contig>;

/// A Python object that keeps `data` alive while an array uses it.
template <class T>
nb::capsule owner_of(std::shared_ptr<T> data) {
  return {new std::shared_ptr<T>(std::move(data)),
          [](void* p) noexcept { delete static_cast<std::shared_ptr<T>*>(p); }};
}

/// Makes an array of a vector without copying it.
template <class Array, class T>
Array array_of(std::vector<T> values, std::initializer_list<std::size_t> shape) {
  const auto data = std::make_shared<const std::vector<T>>(std::move(values));
  return Array(data->data(), shape, owner_of(data));
}

/// Tokens of a sequence or a one-dimensional array of integers. Throws UsageError for anything else, and for numbers
/// that are not tokens.
std::vector<Token> tokens_of(const nb::object& tokens);

}  // namespace winnow::python
