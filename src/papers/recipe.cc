// SPDX-License-Identifier: Apache-2.0
#include "papers/recipe.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <span>

#include "base/json.h"
#include "base/printable.h"
#include "papers/cell_key.h"
#include "papers/schema.h"
#include "winnow/error.h"

namespace winnow::papers {

namespace {

/// Runs `work`, and prefixes its errors with the place in the recipe.
template <class Work>
auto at(const std::string& place, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw InputError(fmt::format("{}: {}", place, error.what()));
  }
}

std::vector<std::string> texts_of(const Json& json, const char* name) {
  return json.value(name, std::vector<std::string>());
}

Protocol protocol_of(const std::string& name) {
  return name == eval::name_of(Protocol::aware) ? Protocol::aware : Protocol::agnostic;
}

std::vector<eval::Method> methods_of(const Json& json, const std::string& place) {
  const auto types = json.contains("kv_types") ? texts_of(json, "kv_types") : std::vector<std::string>{"f16"};
  const auto budgets = texts_of(json, "budgets");
  const auto methods = texts_of(json, "methods");
  for (std::size_t i = 0; i < types.size(); ++i)
    at(fmt::format("{}.kv_types[{}]", place, i), [&] { return KvType::parse(types[i]); });
  for (std::size_t i = 0; i < budgets.size(); ++i)
    at(fmt::format("{}.budgets[{}]", place, i), [&] { return Budget::parse(budgets[i]); });
  std::vector<eval::Method> out;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    const auto more = at(fmt::format("{}.methods[{}]", place, i),
                         [&] { return eval::methods_of(std::span(&methods[i], 1), budgets, types, kProtocols); });
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

/// The canonical form of one method.
std::string canonical_method(const std::string& text) {
  const std::string some_budget = "64";  // without a budget, a method is incomplete
  const std::string some_type = "f16";
  const auto methods =
      eval::methods_of(std::span(&text, 1), std::span(&some_budget, 1), std::span(&some_type, 1), kProtocols);
  if (methods.size() != 1) throw InputError(fmt::format("{} is {} methods, not one", brief(text), methods.size()));
  return methods.front().spec();
}

Measure measure_of(const Json& json, const std::string& place) {
  Measure out;
  out.name = json.at("name").get<std::string>();
  const auto tasks = texts_of(json, "tasks");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto meant = at(fmt::format("{}.tasks[{}]", place, i), [&] { return eval::tasks_meant(tasks[i]); });
    out.tasks.insert(out.tasks.end(), meant.begin(), meant.end());
  }
  out.methods = methods_of(json, place);
  for (const auto& name : json.contains("protocols") ? texts_of(json, "protocols")
                                                     : std::vector<std::string>{eval::name_of(Protocol::aware)})
    out.protocols.push_back(protocol_of(name));
  out.lengths = json.value("lengths", std::vector<int>());
  out.depths = json.value("depths", std::vector<int>());
  out.seeds = json.value("seeds", std::vector<std::uint32_t>());
  out.max_prompt = json.value("max_prompt", 0);
  if (json.value("beyond_context", false)) out.beyond = eval::PromptLimits::Beyond::allowed;
  out.shots = json.value("shots", 0);
  out.answer = json.value("answer", 0);
  out.requests = json.value("requests", std::vector<int>());
  return out;
}

Select select_of(const Json& json, const std::string& place) {
  Select out;
  out.measure = json.value("measure", "");
  const auto tasks = texts_of(json, "tasks");
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    for (const auto* task : at(fmt::format("{}.tasks[{}]", place, i), [&] { return eval::tasks_meant(tasks[i]); }))
      out.tasks.push_back(task->name);
  }
  const auto canonical = [&](const char* name, const auto& print) {
    const auto text = json.value(name, "");
    return text.empty() ? text : at(fmt::format("{}.{}", place, name), [&] { return print(text); });
  };
  out.method = canonical("method", canonical_method);
  out.budget = canonical("budget", [](const std::string& text) { return Budget::parse(text).print(); });
  out.kv_type = canonical("kv_type", [](const std::string& text) { return KvType::parse(text).print(); });
  out.protocol = json.value("protocol", "");
  out.labels = json.value("labels", std::map<std::string, std::string>());
  out.value = json.value("value", "");
  out.series = json.value("series", "");
  return out;
}

/// `unit`: for lines without their own.
std::vector<Line> lines_of(const Json& json, const char* name, double unit) {
  std::vector<Line> out;
  if (!json.contains(name)) return out;
  for (const auto& line : json[name]) {
    const auto place = fmt::format("{}[{}]", name, out.size());
    Line read;
    read.name = line.at("name").get<std::string>();
    read.group = line.value("group", "");
    read.unit = line.value("unit", unit);
    if (line.contains("x")) read.x = line["x"].get<double>();
    if (line.contains("select")) read.select = select_of(line["select"], place + ".select");
    read.not_measured = line.value("not_measured", "");
    out.push_back(std::move(read));
  }
  return out;
}

std::vector<Figures> figures_of(const Json& json, std::size_t rows, std::size_t columns) {
  std::vector<Figures> out;
  if (!json.contains("figures")) return out;
  for (const auto& block : json["figures"]) {
    const auto place = fmt::format("figures[{}].values", out.size());
    Figures read;
    read.model = block.at("model").get<std::string>();
    for (const auto& row : block.at("values")) {
      if (row.size() != columns)
        throw InputError(fmt::format("{}[{}] has {} figures, but there are {} columns", place, read.values.size(),
                                     row.size(), columns));
      auto& values = read.values.emplace_back();
      for (const auto& value : row)
        values.push_back(value.is_null() ? std::nullopt : std::optional(value.get<double>()));
    }
    if (read.values.size() != rows)
      throw InputError(fmt::format("{} has {} rows, but the recipe has {}", place, read.values.size(), rows));
    out.push_back(std::move(read));
  }
  return out;
}

/// The index of the line with this name.
std::size_t number_of(const std::vector<Line>& lines, const std::string& name, const std::string& place) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const Line& line) { return line.name == name; });
  if (found == lines.end()) throw InputError(fmt::format("{}: there is no {}", place, brief(name)));
  return static_cast<std::size_t>(found - lines.begin());
}

Order order_of(const Json& json, const Recipe& recipe, const std::string& place) {
  Order out;
  out.more = number_of(recipe.rows, json.at("more").get<std::string>(), place + ".more");
  out.less = number_of(recipe.rows, json.at("less").get<std::string>(), place + ".less");
  for (const auto& name : texts_of(json, "columns"))
    out.columns.push_back(number_of(recipe.columns, name, place + ".columns"));
  for (std::size_t i = 0; out.columns.size() < recipe.columns.size() && !json.contains("columns"); ++i)
    out.columns.push_back(i);
  return out;
}

std::vector<Claim> claims_of(const Json& json, const Recipe& recipe) {
  std::vector<Claim> out;
  if (!json.contains("claims")) return out;
  for (const auto& claim : json["claims"]) {
    Claim read{claim.at("says").get<std::string>(), claim.at("place").get<std::string>(), {}};
    for (const auto& order : claim.value("orders", Json::array()))
      read.orders.push_back(
          order_of(order, recipe, fmt::format("claims[{}].orders[{}]", out.size(), read.orders.size())));
    out.push_back(std::move(read));
  }
  return out;
}

eval::Scale scale_of(const Json& json, const char* name) {
  return json.value(name, "linear") == "linear" ? eval::Scale::linear : eval::Scale::logarithmic;
}

Plot plot_of(const Json& json) {
  static const std::map<std::string, PlotKind> kinds = {
      {"table", PlotKind::table},   {"curves", PlotKind::curves}, {"heat-map", PlotKind::heat_map},
      {"series", PlotKind::series}, {"heads", PlotKind::heads},   {"histogram", PlotKind::histogram}};
  Plot out{kinds.at(json.at("kind").get<std::string>()),
           json.value("x", ""),
           json.value("y", ""),
           scale_of(json, "scale"),
           scale_of(json, "y_scale"),
           {}};
  if (json.contains("reference")) {
    const auto& reference = json["reference"];
    out.reference = {reference.at("name").get<std::string>(), reference.at("series").get<std::string>()};
  }
  return out;
}

/// Checks that every cell selects something.
void check_cells(const Recipe& recipe) {
  for (std::size_t r = 0; r < recipe.rows.size(); ++r) {
    for (std::size_t c = 0; c < recipe.columns.size(); ++c)
      at(fmt::format("rows[{}] and columns[{}]", r, c), [&] { return recipe.cell(r, c); });
  }
}

Recipe read(const Json& json) {
  Recipe out;
  out.json = json;
  out.paper = json.at("paper").get<std::string>();
  out.name = json.at("name").get<std::string>();
  out.title = json.at("title").get<std::string>();
  out.place = json.at("place").get<std::string>();
  const auto& used = json.at("used");
  out.used = {texts_of(used, "models"), used.value("data", ""), used.value("settings", ""), used.value("hardware", "")};
  out.missing = texts_of(json, "missing");
  for (const auto& measure : json.value("measures", Json::array()))
    out.measures.push_back(measure_of(measure, fmt::format("measures[{}]", out.measures.size())));
  if (out.measures.empty() && out.missing.empty()) throw InputError("it has no measures, and missing gives no reason");
  const double unit = json.value("unit", 1.0);
  out.rows = lines_of(json, "rows", unit);
  out.columns = lines_of(json, "columns", unit);
  out.digits = json.value("digits", 2);
  out.figures = figures_of(json, out.rows.size(), out.columns.size());
  if (json.contains("plot")) out.plot = plot_of(json["plot"]);
  check_cells(out);
  out.claims = claims_of(json, out);
  return out;
}

}  // namespace

std::optional<CellKey> Recipe::cell(std::size_t row, std::size_t column) const {
  if (measures.empty() || !rows[row].not_measured.empty() || !columns[column].not_measured.empty()) return {};
  return key_of(*this, rows[row].select, columns[column].select);
}

Recipe parse_recipe(const std::string& text, const std::string& file) {
  return at(file, [&] {
    const auto json = parse_json<Json>(text);
    const auto why = violation(nlohmann::json(json));
    if (!why.empty()) throw InputError(why);
    return read(json);
  });
}

}  // namespace winnow::papers
