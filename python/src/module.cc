// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"
#include "bind.h"
#include "winnow/version.h"

NB_MODULE(_core, m) {
  using namespace winnow::python;
  winnow::set_verbosity(winnow::Verbosity::quiet);  // failures are exceptions
  nb::set_leak_warnings(false);  // objects that a user's module holds until the process ends are not leaks
  m.attr("__version__") = winnow::kVersion;
  bind_errors(m);
  bind_options(m);
  bind_model(m);
  bind_cache(m);
  bind_session(m);
  bind_stream(m);
  bind_methods(m);
  bind_python_method(m);
  bind_documents(m);
  bind_evaluate(m);
}
