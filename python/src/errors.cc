// SPDX-License-Identifier: Apache-2.0
#include "bind.h"
#include "winnow/budget_error.h"
#include "winnow/documents.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::python {

namespace {

template <class E>
nb::object add_error(nb::module_& m, const char* name, const nb::handle& bases, const char* doc) {
  nb::exception<E> error(m, name, bases);
  error.attr("__doc__") = doc;
  return error;
}

}  // namespace

/// The errors of winnow/error.h. Each also derives from a built-in exception. The last translator that fits is used, so
/// derived classes come after their bases.
void bind_errors(nb::module_& m) {
  const auto base = add_error<Error>(m, "Error", PyExc_Exception, "Base of every exception that winnow raises.");
  const auto usage = add_error<UsageError>(m, "UsageError", nb::make_tuple(base, nb::handle(PyExc_ValueError)),
                                           "Invalid use, such as an unknown method or a wrong option.");
  add_error<BudgetError>(m, "BudgetError", usage, "A budget is too small for its method, the model and the prompt.");
  add_error<ModelError>(m, "ModelError", base, "A model file cannot be used.");
  const auto input =
      add_error<InputError>(m, "InputError", base, "An input or output other than the model cannot be used.");
  add_error<StoreError>(m, "StoreError", input, "A store cannot be reached, read or written now.");
  add_error<UnknownDocument>(m, "UnknownDocument", input, "A store has no document of that name.");
  add_error<MemoryError>(m, "OutOfMemoryError", nb::make_tuple(base, nb::handle(PyExc_MemoryError)),
                         "There is not enough memory. The state before the call is unchanged.");
  add_error<Interrupted>(m, "Interrupted", base,
                         "Session.stop() ended the call. The state before the call is unchanged.");
}

}  // namespace winnow::python
