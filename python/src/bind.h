// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace nb = nanobind;

/// The extension winnow._core: a bind_…() for each topic, in the file of that name.
namespace winnow::python {

/// Raises UnicodeEncodeError, a ValueError, for half of a surrogate pair, which UTF-8 cannot encode.
inline std::string text_of(const nb::str& text) {
  Py_ssize_t size = 0;
  const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (data == nullptr) nb::raise_python_error();
  return {data, static_cast<std::size_t>(size)};
}

/// The object's repr().
inline std::string shown(nb::handle object) { return text_of(nb::repr(object)); }

void bind_errors(nb::module_& m);
void bind_options(nb::module_& m);
void bind_model(nb::module_& m);
void bind_cache(nb::module_& m);
void bind_session(nb::module_& m);
void bind_stream(nb::module_& m);
void bind_methods(nb::module_& m);
void bind_python_method(nb::module_& m);
void bind_documents(nb::module_& m);
void bind_evaluate(nb::module_& m);

}  // namespace winnow::python
