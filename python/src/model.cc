// SPDX-License-Identifier: Apache-2.0
#include "winnow/model.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include "arrays.h"
#include "bind.h"
#include "hub/fetch.h"
#include "options.h"
#include "session_state.h"
#include "winnow/devices.h"
#include "winnow/error.h"

namespace winnow::python {

namespace {

using Messages = std::vector<std::pair<std::string, std::string>>;

Integers as_array(std::vector<Token> tokens) {
  const auto n = tokens.size();
  return array_of<Integers>(std::move(tokens), {n});
}

Role role_of(const std::string& name) {
  for (const auto role : {Role::system, Role::user, Role::assistant}) {
    if (name == name_of(role)) return role;
  }
  throw UsageError(fmt::format("'{}' is not a role: give system, user or assistant", name));
}

Integers chat(const Model& model, const Messages& messages, const std::string& text) {
  Conversation conversation;
  conversation.text = text;
  for (const auto& [role, content] : messages) conversation.messages.push_back({role_of(role), content});
  std::vector<Token> tokens;
  {
    const nb::gil_scoped_release nogil;
    tokens = model.tokenize(conversation);
  }
  return as_array(std::move(tokens));
}

std::pair<Integers, Integers> prompt(const Model& model, const std::string& text, const std::string& question,
                                     const std::string& system, const std::string& format) {
  const PromptText whole{text, question, system, format_of(format)};
  Prompt out;
  {
    const nb::gil_scoped_release nogil;
    out = model.tokenize(whole);
  }
  return {as_array(std::move(out.text)), as_array(std::move(out.question))};
}

void check_token(const Model& model, Token token) {
  if (token < 0 || token >= model.info().n_vocab)
    throw UsageError(fmt::format("{} is not a token: the model has {}", token, model.info().n_vocab));
}

nb::bytes pieces(const Model& model, const nb::object& tokens) {
  std::string out;
  for (const auto token : tokens_of(tokens)) {
    check_token(model, token);
    out += model.vocab().text(token);
  }
  return nb::bytes(out.data(), out.size());
}

std::shared_ptr<Model> load(const std::string& path, const std::string& hf, bool offline, float rope_freq_base,
                            const std::string& rope_scaling, const std::string& chat_template,
                            const std::string& device) {
  if (path.empty() == hf.empty()) throw UsageError("give either the path of a model or hf='USER/REPO:QUANT'");
  const nb::gil_scoped_release nogil;
  const auto file = hf.empty() ? path : hub::fetch(hf, {offline, [](const hub::Progress&) { handle_signals(); }});
  return std::const_pointer_cast<Model>(
      Model::load(file, {rope_freq_base, rope_scaling, chat_template, open_device(device)}));
}

void bind_info(nb::module_& m) {
  nb::class_<ModelInfo>(m, "ModelInfo", "Facts from a model's file.")
      .def_ro("path", &ModelInfo::path)
      .def_ro("arch", &ModelInfo::arch)
      .def_ro("name", &ModelInfo::name)
      .def_ro("weight_type", &ModelInfo::weight_type, "Most frequent type of the matrices, such as 'q4_1'.")
      .def_ro("n_layer", &ModelInfo::n_layer)
      .def_ro("n_embd", &ModelInfo::n_embd)
      .def_ro("n_head", &ModelInfo::n_head, "Query heads of the first layer.")
      .def_ro("n_head_kv", &ModelInfo::n_head_kv, "KV heads of the first layer.")
      .def_ro("head_dim", &ModelInfo::head_dim)
      .def_ro("n_vocab", &ModelInfo::n_vocab)
      .def_ro("context", &ModelInfo::context, "Tokens that it reads.")
      .def_ro("n_params", &ModelInfo::n_params)
      .def_ro("weight_bytes", &ModelInfo::weight_bytes)
      .def("full_cache_bytes", &ModelInfo::full_cache_bytes, nb::arg("tokens"),
           "Bytes of an f16 cache of this many tokens.");
}

}  // namespace

void bind_model(nb::module_& m) {
  bind_info(m);
  nb::class_<DeviceInfo>(m, "DeviceInfo", "A GPU that a ggml backend has found.")
      .def_ro("name", &DeviceInfo::name)
      .def_ro("description", &DeviceInfo::description)
      .def_ro("free_bytes", &DeviceInfo::free_bytes)
      .def_ro("total_bytes", &DeviceInfo::total_bytes);
  m.def("devices", devices, "GPUs of the ggml backends that can be loaded.");
  nb::class_<Model>(
      m, "Model", "Weights and vocabulary of a GGUF file. Immutable; any number of threads and sessions may share it.")
      .def_static(
          "load", load, nb::arg("path") = "", nb::kw_only(), nb::arg("hf") = "", nb::arg("offline") = false,
          nb::arg("rope_freq_base") = 0.0F, nb::arg("rope_scaling") = "", nb::arg("chat_template") = "",
          nb::arg("device") = "cpu",
          "path: a GGUF file, or the first of a model's parts.\n"
          "hf: 'USER/REPO' or 'USER/REPO:QUANT' instead of a path, downloaded from the hub to its cache if necessary.\n"
          "offline: only from the cache.\n"
          "rope_freq_base: 0 is the file's. rope_scaling: 'none', 'linear:FACTOR', 'yarn:FACTOR', or '' (the file's).\n"
          "chat_template: a Jinja source, or '' for the file's.\n"
          "device: where the network is computed: 'cpu', 'auto', a backend of ggml, or a GPU's name in devices().\n"
          "Raises ModelError, OutOfMemoryError, UsageError.")
      .def_prop_ro("info", &Model::info, nb::rv_policy::reference_internal)
      .def(
          "tokenize", [](const Model& self, const std::string& text) { return as_array(self.vocab().tokenize(text)); },
          nb::arg("text"), "Plain text without BOS as an array [tokens] of int32.")
      .def(
          "prompt", prompt, nb::arg("text"), nb::arg("question") = "", nb::kw_only(), nb::arg("system") = "",
          nb::arg("format") = "chat",
          "Two arrays of tokens: the text, and the question with the end of the prompt. format: 'chat' is the model's\n"
          "chat template with text, blank line and question in one message; 'raw' is text and question only.\n"
          "Raises InputError for an empty prompt.")
      .def("chat", chat, nb::arg("messages"), nb::kw_only(), nb::arg("text") = "",
           "Tokens of a conversation by the model's chat template, up to where the next answer begins.\n"
           "messages: (role, content) pairs; text: placed before the first user message.")
      .def("pieces", pieces, nb::arg("tokens"),
           nb::sig("def pieces(self, tokens: typing.Sequence[int] | numpy.ndarray) -> bytes"),
           "The bytes of these tokens; control tokens have none.")
      .def(
          "ends",
          [](const Model& self, Token token) {
            check_token(self, token);
            return self.vocab().ends(token);
          },
          nb::arg("token"), "True if generation ends with this token.")
      .def(
          "hash",
          [](const Model& self) {
            const nb::gil_scoped_release nogil;
            return self.hash();
          },
          "A hash of the whole file. 0.3 s for a GB that is in memory.")
      .def("__repr__", [](const Model& self) {
        return fmt::format("<winnow.Model {} ({}, {})>", self.info().name, self.info().arch, self.info().weight_type);
      });
}

}  // namespace winnow::python
