#pragma once

#include <functional>
#include <string>
#include <vector>

#include "policy/method.h"
#include "policy/options.h"

namespace winnow::policy {

/// A published method under its name: which parts it is made of, and its options.
struct Preset {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<Option> options;
  std::function<Method(const Options&)> build;
};

/// `name(X)`: a method made of another one by exchanging parts.
struct Wrapper {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<Option> options;
  /// Throws UsageError with the reason when it cannot be put around that method.
  std::function<Method(const Method&, const Options&)> apply;
};

struct Registry {
  std::vector<Preset> presets;
  std::vector<Wrapper> wrappers;
};

/// The methods that winnow has, in the order in which they are listed. A method is added here, by one line.
const Registry& built_in();

}  // namespace winnow::policy
