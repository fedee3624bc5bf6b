// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

/// The extension winnow._core: one bind_…() for each topic, each in the file of its name.
namespace winnow::python {

/// As Python shows it.
inline std::string shown(nb::handle object) {
  return nb::cast<std::string>(nb::steal<nb::str>(PyObject_Repr(object.ptr())));
}

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
