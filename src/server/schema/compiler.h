// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/answer.h"
#include "server/schema/rules.h"

namespace winnow::server {

/// Makes rules of JSON schemas. Each schema becomes one. Those that are met are compiled one after the other, so that
/// they may refer to each other in any way. The rule of an `anyOf` lists rules that begin with a character: libllama's
/// time to read a grammar is then short.
class SchemaCompiler {
 public:
  /// `field` is what errors name when all schemas together are too large.
  explicit SchemaCompiler(std::string field) : field_(std::move(field)) {}

  /// The name of the rule of a schema, which is at `path` of a request and outlives the compiler. Its references are
  /// to itself.
  std::string add(const Json& schema, const std::string& path);
  /// For rules that are made of those of schemas.
  Rules& rules() { return rules_; }
  /// The grammar. Throws FieldError, which names the place, for a keyword that is not known and for what cannot be.
  std::string finish();

 private:
  /// A schema in a request, and the one that its references are to.
  struct Place {
    const Json* schema;
    std::string path;
    const Place* root;

    Place inner(const Json& other, const std::string& more) const { return {&other, path + more, root}; }
  };

  std::string rule_of(const Place& place);
  std::string body_of(const Place& place);
  void add_alternatives(const Place& place, std::set<const Json*>& seen, std::vector<std::string>& to);
  Place target_of(const Place& place);
  static std::string values_of(const Place& place);
  std::string body_of_type(const std::string& type, const Place& place);
  std::string object_of(const Place& place);
  std::string array_of(const Place& place);
  std::string members_of(const Place& place);

  std::string field_;
  Rules rules_;
  int lookups_ = 0;  ///< of references
  std::map<const Json*, std::string> names_;
  std::deque<Place> waiting_;
  std::deque<Place> roots_;
};

}  // namespace winnow::server
