// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/group.h"
#include "eval/method.h"
#include "eval/report/quantity.h"
#include "eval/tasks.h"
#include "winnow/questions.h"
#include "winnow/session.h"

namespace winnow::papers {

using Json = nlohmann::ordered_json;

/// Tasks, methods and protocols that are measured together, as in one command line of `winnow eval`.
struct Measure {
  std::string name;
  std::vector<const eval::TaskInfo*> tasks;
  std::vector<eval::Method> methods;  ///< with all budgets and types
  std::vector<Protocol> protocols;
  std::vector<int> lengths;          ///< of generated prompts; empty: the task's own
  std::vector<int> depths;           ///< of hidden answers, in percent; empty: the task's own
  std::vector<std::uint32_t> seeds;  ///< of generated samples; empty: the user's
  int max_prompt = 0;                ///< longer prompts are cut to this number of tokens; 0: none is cut
  eval::PromptLimits::Beyond beyond = eval::PromptLimits::Beyond::refused;  ///< prompts longer than the context
  int shots = 0;
  int answer = 0;             ///< fixed length of answers in tokens; 0: the task's own
  std::vector<int> requests;  ///< numbers of requests that are served together; empty: the task's own
};

/// The records that a row or a column selects. An empty field of a row leaves the choice to the column, and the
/// reverse. If both are empty, all records are selected.
struct Select {
  std::string measure;
  std::vector<std::string> tasks;  ///< as `winnow eval tasks` names them
  std::string method;              ///< canonical, like the next two
  std::string budget;              ///< without effect on methods without a budget
  std::string kv_type;
  std::string protocol;
  std::map<std::string, std::string> labels;  ///< of the samples
  std::string value;                          ///< empty: the score
  std::string series;                         ///< to draw; empty: none

  bool operator==(const Select&) const = default;
};

/// A row or a column.
struct Line {
  std::string name;
  std::string group;        ///< for rows: a paper orders the rows of one group, and those without a group
  std::optional<double> x;  ///< for a column, in curves
  double unit = 1;          ///< factor from winnow's figures to the column's
  Select select;
  std::string not_measured;  ///< why it has no counterpart; empty: it has one
};

/// The records of one cell: of one measure, method and protocol.
struct CellKey {
  const Measure* measure = nullptr;
  std::vector<std::string> tasks;
  eval::Method method;
  Protocol protocol = Protocol::aware;
  std::map<std::string, std::string> labels;
  std::string value;
  std::string series;
};

/// The paper's own figures with one model, [row][column]; empty where it has none (out of memory).
struct Figures {
  std::string model;
  std::vector<std::vector<std::optional<double>>> values;
};

/// One row's figure is above another's in these columns, according to the paper's text or picture.
struct Order {
  std::size_t more = 0;  ///< index of a row
  std::size_t less = 0;
  std::vector<std::size_t> columns;
};

struct Claim {
  std::string says;
  std::string place;
  std::vector<Order> orders;
};

enum class PlotKind : std::uint8_t {
  table,
  curves,     ///< of a row's figures
  heat_map,   ///< of a row's score by two labels
  series,     ///< means of a row's series, by index
  heads,      ///< the same for series by head, sorted within each layer
  histogram,  ///< frequencies of whole numbers in a row's series
};

/// A series that does not depend on the row, and is drawn once.
struct Reference {
  std::string name;
  std::string series;
};

struct Plot {
  PlotKind kind = PlotKind::table;
  std::string x;  ///< for a heat map: a label of the samples; otherwise: the axis title
  std::string y;
  eval::Scale scale = eval::Scale::linear;  ///< of x
  eval::Scale y_scale = eval::Scale::linear;
  std::optional<Reference> reference;
};

/// A table or figure of a paper, with the measurements for its counterpart.
struct Recipe {
  std::string paper;
  std::string name;
  std::string title;
  std::string place;
  struct {
    std::vector<std::string> models;
    std::string data;
    std::string settings;
    std::string hardware;
  } used;
  std::vector<std::string> missing;  ///< sentences about missing parts of the counterpart
  std::vector<Measure> measures;     ///< none: nothing can be measured
  std::vector<Line> rows;
  std::vector<Line> columns;
  int digits = 2;  ///< after the point, in shown figures
  std::vector<Figures> figures;
  std::vector<Claim> claims;
  Plot plot;
  Json json;  ///< the recipe's source

  /// The id: "ems/table-9".
  std::string id() const { return paper + "/" + name; }
  /// Empty if the row or the column has no counterpart.
  std::optional<CellKey> cell(std::size_t row, std::size_t column) const;
};

/// Parses a recipe. Throws InputError, naming the file and the place, for invalid JSON, a violation of the schema, an
/// unknown method, budget, task or row, figures of the wrong shape, and a cell that selects several methods.
Recipe parse_recipe(const std::string& text, const std::string& file);

}  // namespace winnow::papers
