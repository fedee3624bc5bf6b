// SPDX-License-Identifier: Apache-2.0
#include "server/schema/schema.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/printable.h"
#include "base/stop_scope.h"
#include "server/openai/errors.h"
#include "server/schema/compiler.h"
#include "server/schema/keywords.h"
#include "server/schema/numbers.h"

namespace winnow::server {

namespace {

constexpr std::size_t kMostBytes = 64 << 10;     // of a grammar: libllama takes many times as many for each answer
constexpr std::int64_t kMostRepetitions = 5000;  // that libllama writes out
constexpr std::size_t kMostReferences = 1000;    // from one to the next
constexpr int kMostLookups = 10'000;             // of what is referred to: each looks at many members
constexpr std::size_t kMostProperties = 1000;    // of an object

}  // namespace

std::string SchemaCompiler::add(const Json& schema, const std::string& path) {
  Place& root = roots_.emplace_back(Place{&schema, path, nullptr});
  root.root = &root;
  return rule_of(root);
}

std::string SchemaCompiler::finish() {
  while (!waiting_.empty()) {
    StopScope::check();
    const Place place = waiting_.front();
    waiting_.pop_front();
    rules_.define(names_.at(place.schema), body_of(place));
    if (rules_.text().size() > kMostBytes)
      throw FieldError(field_,
                       fmt::format("{} is too large: its grammar would have more than {} bytes", field_, kMostBytes));
    if (rules_.repetitions() > kMostRepetitions)
      throw FieldError(field_,
                       fmt::format("{} has too many different lengths of texts and lists: leave some out", field_));
  }
  return rules_.text();
}

std::string SchemaCompiler::rule_of(const Place& place) {
  const auto [found, is_new] = names_.emplace(place.schema, fmt::format("schema{}", names_.size()));
  if (is_new) waiting_.push_back(place);
  return found->second;
}

std::string SchemaCompiler::body_of(const Place& place) {
  check_keywords(*place.schema, place.path);
  if (place.schema->contains("$ref") || place.schema->contains("anyOf")) {
    std::set<const Json*> seen;
    std::vector<std::string> out;
    add_alternatives(place, seen, out);
    if (out.empty()) throw FieldError(place.path, fmt::format("{} refers only to itself", place.path));
    return fmt::format("{}", fmt::join(out, " | "));
  }
  if (place.schema->contains("const") || place.schema->contains("enum")) return values_of(place);
  std::vector<std::string> out;
  for (const auto& type : types_of(*place.schema, place.path)) out.push_back(body_of_type(type, place));
  return fmt::format("{}", fmt::join(out, " | "));
}

/// The rules of what a schema refers to, through any number of others.
void SchemaCompiler::add_alternatives(const Place& place, std::set<const Json*>& seen, std::vector<std::string>& to) {
  if (!seen.insert(place.schema).second) return;
  if (seen.size() > kMostReferences)
    throw FieldError(field_,
                     fmt::format("{} refers to more than {} others from one to the next", field_, kMostReferences));
  check_keywords(*place.schema, place.path);
  if (place.schema->contains("$ref")) return add_alternatives(target_of(place), seen, to);
  const auto any = place.schema->find("anyOf");
  if (!place.schema->is_object() || any == place.schema->end()) return to.push_back(rule_of(place));
  const std::string path = place.path + ".anyOf";
  if (!any->is_array() || any->empty()) throw FieldError(path, fmt::format("{} must be a list of schemas", path));
  for (std::size_t i = 0; i < any->size(); ++i)
    add_alternatives(place.inner((*any)[i], fmt::format(".anyOf[{}]", i)), seen, to);
}

SchemaCompiler::Place SchemaCompiler::target_of(const Place& place) {
  if (++lookups_ > kMostLookups)
    throw FieldError(field_, fmt::format("{} follows references more than {} times", field_, kMostLookups));
  const std::string path = place.path + ".$ref";
  const Json& reference = (*place.schema)["$ref"];
  const std::string text = reference.is_string() ? reference.get<std::string>() : "";
  if (text.empty() || text.front() != '#')
    throw FieldError(path, fmt::format("{} must be a place in the schema itself, such as #/$defs/x", path));
  try {
    const Json::json_pointer pointer(text.substr(1));
    std::string at = place.root->path + brief(text.substr(1));
    std::ranges::replace(at, '/', '.');
    return {&place.root->schema->at(pointer), at, place.root};
  } catch (const Json::exception&) {
    throw FieldError(path, fmt::format("{} is {}, which is not there", path, brief(text)));
  }
}

/// Those of `const` or `enum` that have the type.
std::string SchemaCompiler::values_of(const Place& place) {
  const auto types = types_of(*place.schema, place.path);
  const bool is_const = place.schema->contains("const");
  const std::string path = place.path + (is_const ? ".const" : ".enum");
  const Json values = is_const ? Json::array({place.schema->at("const")}) : place.schema->at("enum");
  if (!values.is_array()) throw FieldError(path, fmt::format("{} must be a list of values", path));
  std::vector<std::string> out;
  for (const auto& value : values) {
    if (has_type(value, types)) out.push_back(literal(value.dump()));
  }
  if (out.empty()) throw FieldError(path, fmt::format("{} has no value of the type", path));
  return fmt::format("{}", fmt::join(out, " | "));
}

std::string SchemaCompiler::body_of_type(const std::string& type, const Place& place) {
  if (type == "object") return object_of(place);
  if (type == "array") return array_of(place);
  if (type == "string") {
    const Times times = times_of(*place.schema, "minLength", "maxLength", place.path);
    return rules_.named(fmt::format(R"("\"" {} "\"")", rules_.repeated("char", times)));
  }
  if ((type == "number" || type == "integer") && has_bounds(*place.schema)) {
    const NumberRange range = range_of(*place.schema, place.path);
    std::string out = type == "integer" ? whole_numbers(range) : decimal_numbers(range);
    if (out.empty()) throw FieldError(place.path, fmt::format("{} has bounds that no number is within", place.path));
    return out;
  }
  return type;
}

std::string SchemaCompiler::array_of(const Place& place) {
  const Times times = times_of(*place.schema, "minItems", "maxItems", place.path);
  const auto items = place.schema->find("items");
  const std::string item = items == place.schema->end() ? "value" : rule_of(place.inner(*items, ".items"));
  if (times.most == 0) return R"("[" ws "]")";
  const Times others{std::max<std::int64_t>(0, times.least - 1),
                     times.most ? std::optional(*times.most - 1) : times.most};
  const std::string more = rules_.repeated(rules_.named("\",\" ws " + item), others);
  if (times.least > 0) return fmt::format(R"("[" ws {} {} ws "]")", item, more);
  return fmt::format(R"("[" ws ({} {})? ws "]")", item, more);
}

std::string SchemaCompiler::object_of(const Place& place) {
  const auto more = place.schema->find("additionalProperties");
  if (more != place.schema->end() && !more->is_boolean()) {
    const std::string path = place.path + ".additionalProperties";
    throw FieldError(path, fmt::format("{} must be true or false: winnow cannot keep to a schema for them", path));
  }
  const bool is_any = !place.schema->contains("properties") && !place.schema->contains("required") &&
                      (more == place.schema->end() || more->get<bool>());
  return is_any ? "object" : fmt::format(R"("{{" ws {} ws "}}")", members_of(place));
}

/// Members in the order of `properties`. The rules are those of what may come from a member on: as the first one of the
/// object, or after others.
std::string SchemaCompiler::members_of(const Place& place) {
  static const Json anything = true;
  static const Json nothing = Json::object();
  const std::string path = place.path + ".properties";
  const auto properties = place.schema->find("properties");
  const Json& all = properties == place.schema->end() ? nothing : *properties;
  if (!all.is_object()) throw FieldError(path, fmt::format("{} must be an object of schemas", path));
  const auto list = texts_of(*place.schema, "required", place.path);
  std::set<std::string> required(list.begin(), list.end());
  std::vector<std::pair<std::string, bool>> members;
  const auto add = [&](const std::string& name, const std::string& rule, bool is_required) {
    members.emplace_back(fmt::format(R"({} ws {})", literal(Json(name).dump() + ":"), rule), is_required);
  };
  for (const auto& [name, schema] : all.items())
    add(name, rule_of(place.inner(schema, ".properties." + brief(name))), required.erase(name) > 0);
  if (!required.empty() && place.schema->value("additionalProperties", true) == false)
    throw FieldError(place.path + ".required",
                     fmt::format("{}.required names {}, which is no property", place.path, brief(*required.begin())));
  for (const auto& name : required) add(name, rule_of(place.inner(anything, ".properties")), true);
  if (members.size() > kMostProperties)
    throw FieldError(path, fmt::format("{} has {} members: at most {}", path, members.size(), kMostProperties));
  std::string first;   // of the object
  std::string others;  // after others
  for (auto member = members.rbegin(); member != members.rend(); ++member) {
    const auto& [text, is_required] = *member;
    const std::string last = member == members.rbegin() ? "" : rules_.named(others);
    const std::string begun = fmt::format("{} {}", text, last);
    const std::string skipped =
        first.empty() ? fmt::format("({})?", begun) : fmt::format("{} | {}", begun, rules_.named(first));
    first = is_required ? begun : skipped;
    const std::string further = "\",\" ws " + begun;
    others = is_required ? further : fmt::format("(\",\" ws {})? {}", text, last);
  }
  return first.empty() ? "" : rules_.named(first);
}

std::string grammar_of_schema(const Json& schema, const std::string& path) {
  SchemaCompiler compiler(path);
  compiler.rules().define("root", compiler.add(schema, path));
  return compiler.finish();
}

std::string grammar_of_objects() {
  Rules rules;
  rules.define("root", "object");
  return rules.text();
}

}  // namespace winnow::server
