// SPDX-License-Identifier: Apache-2.0
#include "winnow/methods.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include "bind.h"
#include "winnow/ask.h"
#include "winnow/spec.h"

namespace winnow::python {

void bind_methods(nb::module_& m) {
  nb::class_<OptionInfo>(m, "OptionInfo", "An option of a method.")
      .def_ro("name", &OptionInfo::name)
      .def_ro("value", &OptionInfo::value, "Default.")
      .def_ro("range", &OptionInfo::range)
      .def_ro("effect", &OptionInfo::effect)
      .def("__repr__",
           [](const OptionInfo& o) { return fmt::format("<{}={} ({}): {}>", o.name, o.value, o.range, o.effect); });
  nb::class_<PartInfo>(m, "PartInfo", "A part of a method's composition.")
      .def_ro("place", &PartInfo::place)
      .def_ro("text", &PartInfo::text)
      .def("__repr__", [](const PartInfo& p) { return fmt::format("<{}: {}>", p.place, p.text); });
  nb::class_<MethodInfo>(m, "MethodInfo", "A method as `winnow methods NAME` shows it.")
      .def_ro("name", &MethodInfo::name)
      .def_ro("summary", &MethodInfo::summary)
      .def_ro("paper", &MethodInfo::paper)
      .def_ro("parts", &MethodInfo::parts)
      .def_ro("options", &MethodInfo::options)
      .def("__repr__", [](const MethodInfo& self) { return fmt::format("<{}: {}>", self.name, self.summary); });
  m.def("list_methods", list_methods, "All methods, those that were registered included.");
  m.def("list_wrappers", list_wrappers, "All wrappers: 'ada' for ada(X).");
  m.def("list_ask_methods", list_ask_methods, "All methods of ask().");
  m.def(
      "describe_method", [](const std::string& spec) { return describe_method(spec); }, nb::arg("spec"),
      "The parts of any spec. Raises UsageError.");
  m.def(
      "canonical", [](const std::string& spec) { return Spec::parse(spec).print(); }, nb::arg("spec"),
      "A spec in canonical form. Raises UsageError.");
}

}  // namespace winnow::python
