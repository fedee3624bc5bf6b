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

/// Tasks, methods and protocols that are measured together: what a command line of `winnow eval` says.
struct Measure {
  std::string name;
  std::vector<const eval::TaskInfo*> tasks;
  std::vector<eval::Method> methods;  ///< with all budgets and types
  std::vector<Protocol> protocols;
  std::vector<int> lengths;          ///< of prompts that are made up; empty: the task's own
  std::vector<int> depths;           ///< of what is hidden in them, in percent; likewise
  std::vector<std::uint32_t> seeds;  ///< of what is made up; empty: the user's
  int max_prompt = 0;                ///< tokens to which longer prompts are cut; 0: none is cut
  eval::PromptLimits::Beyond beyond = eval::PromptLimits::Beyond::refused;  ///< prompts longer than the context
  int shots = 0;
  int answer = 0;             ///< tokens of answers, whatever they say; 0: the task's own number
  std::vector<int> requests;  ///< how many are served together; empty: the task's own
};

/// Which records a row or a column is about. What is empty is left to the other one, or means all there are.
struct Select {
  std::string measure;
  std::vector<std::string> tasks;  ///< as `winnow eval tasks` names them
  std::string method;              ///< canonical, as the next two
  std::string budget;              ///< without effect on methods that take none
  std::string kv_type;
  std::string protocol;
  std::map<std::string, std::string> labels;  ///< of the samples
  std::string value;                          ///< empty: the score
  std::string series;                         ///< that is drawn; empty: none

  bool operator==(const Select&) const = default;
};

/// A row or a column.
struct Line {
  std::string name;
  std::string group;        ///< of rows: a paper orders rows of one group, and those without a group
  std::optional<double> x;  ///< of a column, in curves
  double unit = 1;          ///< of a column's figures: winnow's times this
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

/// The paper's own figures with one model, [row][column]; nothing where it has none (out of memory).
struct Figures {
  std::string model;
  std::vector<std::vector<std::optional<double>>> values;
};

/// One row's figure is above another's in these columns, by the paper's words or picture.
struct Order {
  std::size_t more = 0;  ///< rows
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
  series,     ///< of the means of a row's series, by their place in it
  heads,      ///< the same of series by head, layer by layer: sorted within each layer
  histogram,  ///< how often a row's series have each whole number
};

/// A series that is the same whatever the row, and is drawn once.
struct Reference {
  std::string name;
  std::string series;
};

struct Plot {
  PlotKind kind = PlotKind::table;
  std::string x;  ///< of a heat map: a label of the samples; of others: the axis' title
  std::string y;
  eval::Scale scale = eval::Scale::linear;  ///< of x
  eval::Scale y_scale = eval::Scale::linear;
  std::optional<Reference> reference;
};

/// A table or a figure of a paper, and what its counterpart is made of.
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
  std::vector<std::string> missing;  ///< sentences: what the counterpart cannot have
  std::vector<Measure> measures;     ///< none: nothing can be measured
  std::vector<Line> rows;
  std::vector<Line> columns;
  int digits = 2;  ///< after the point, of figures that are shown
  std::vector<Figures> figures;
  std::vector<Claim> claims;
  Plot plot;
  Json json;  ///< what it was read from

  /// ems/table-9
  std::string id() const { return paper + "/" + name; }
  /// Nothing where the row or the column has no counterpart.
  std::optional<CellKey> cell(std::size_t row, std::size_t column) const;
};

/// Reads a recipe. Throws InputError, which names the file and the place in it: no JSON, not as the schema says, an
/// unknown method, budget, task or row, figures that are not rows times columns, a cell that stands for several
/// methods.
Recipe parse_recipe(const std::string& text, const std::string& file);

}  // namespace winnow::papers
