// SPDX-License-Identifier: Apache-2.0
#include "arrays.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include <limits>

#include "winnow/error.h"

namespace winnow::python {

namespace {

[[noreturn]] void refuse(const nb::object& tokens) {
  throw UsageError(fmt::format("tokens must be a sequence of integers, not of type {}",
                               text_of(nb::str(tokens.type().attr("__name__")))));
}

}  // namespace

std::vector<Token> tokens_of(const nb::object& tokens) {
  // Arrays become lists of Python numbers, so that there is one way of checking them.
  const nb::object list = nb::hasattr(tokens, "tolist") ? tokens.attr("tolist")() : tokens;
  if (nb::isinstance<nb::str>(list) || PySequence_Check(list.ptr()) == 0) refuse(tokens);
  std::vector<Token> out;
  for (const nb::handle token : nb::iter(list)) {
    if (PyLong_Check(token.ptr()) == 0 || PyBool_Check(token.ptr()) != 0) refuse(tokens);
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(token.ptr(), &overflow);
    if (overflow != 0 || number < 0 || number > std::numeric_limits<Token>::max())
      throw UsageError(fmt::format("{} is not a token", shown(token)));
    out.push_back(static_cast<Token>(number));
  }
  return out;
}

}  // namespace winnow::python
