// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/fmt/fmt.h>

#include "bind.h"
#include "eval/runner.h"
#include "eval/tasks.h"
#include "options.h"
#include "session_state.h"
#include "winnow/error.h"

namespace winnow::python {

namespace {

using Words = std::vector<std::string>;

/// Collects the messages of failed measurements. A single one makes the whole call fail.
struct Failed {
  std::vector<std::string> sentences;

  void check() const {
    if (!sentences.empty())
      throw InputError(fmt::format("{} samples could not be measured: {}", sentences.size(), sentences.front()));
  }
};

eval::TaskOptions task_options(const std::string& data, int limit, const std::vector<int>& lengths, int shots,
                               const std::vector<std::uint32_t>& seeds, const std::optional<std::string>& format,
                               Failed& failed) {
  eval::TaskOptions out;
  out.data = data;
  out.limit = limit;
  out.lengths = lengths;
  out.shots = shots;
  out.seeds = seeds;
  if (format) out.format = format_of(*format);
  out.on_bad_line = [&failed](const std::string& sentence) { failed.sentences.push_back(sentence); };
  out.on_left_out = [](const std::string&) {};
  return out;
}

/// Measures the records of the evaluation that are missing in the folder `output`. Returns all records there, as lines
/// of JSON.
std::vector<std::string> evaluate(const std::shared_ptr<SessionState>& self, const Words& tasks, const Words& kv,
                                  const Words& budgets, const Words& kv_types, const Words& protocols,
                                  const std::string& output, const std::string& data, int limit,
                                  const std::vector<int>& lengths, int shots, const std::vector<std::uint32_t>& seeds,
                                  const std::optional<std::string>& format, int max_prompt) {
  if (limit < 0 || shots < 0 || max_prompt < 0)
    throw UsageError(fmt::format("limit {}, shots {}, max_prompt {}: none may be below 0", limit, shots, max_prompt));
  Failed failed;
  eval::Evaluation evaluation;
  for (const auto& name : protocols) evaluation.protocols.push_back(protocol_of(name));
  evaluation.methods = eval::methods_of(kv, budgets, kv_types, evaluation.protocols);
  const auto options = task_options(data, limit, lengths, shots, seeds, format, failed);
  return self->call([&](Session& session) {
    const auto& model = session.model();
    evaluation.tasks = eval::make_tasks(tasks, model, options);
    evaluation.limits.max_prompt = max_prompt;
    evaluation.limits.context = model.info().context;
    eval::RecordFile records(output, fmt::format("{:016x}", model.hash()));
    eval::run(session, evaluation, records,
              {{}, [&failed](const std::string& sentence) { failed.sentences.push_back(sentence); }});
    failed.check();
    std::vector<std::string> out;
    for (const auto& record : records.records()) out.push_back(eval::line_of(record));
    return out;
  });
}

}  // namespace

/// winnow/_evaluate.py parses the lines.
void bind_evaluate(nb::module_& m) {
  m.def("evaluate", evaluate, nb::arg("session"), nb::arg("tasks"), nb::arg("kv"), nb::arg("budgets"),
        nb::arg("kv_types"), nb::arg("protocols"), nb::arg("output"), nb::arg("data"), nb::arg("limit"),
        nb::arg("lengths"), nb::arg("shots"), nb::arg("seeds"), nb::arg("format").none(), nb::arg("max_prompt"));
  m.def(
      "list_tasks",
      [] {
        std::vector<nb::dict> out;
        for (const auto& task : eval::list_tasks()) {
          auto& row = out.emplace_back();
          row["name"] = task.name;
          row["source"] = task.source;
          row["metric"] = task.metric;
          row["protocol"] = task.protocol;
        }
        return out;
      },
      "Tasks of evaluate(), as `winnow eval tasks` lists them: dictionaries with name, source, metric, protocol.");
}

}  // namespace winnow::python
