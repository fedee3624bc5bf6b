#pragma once

#include "policy/registry.h"

/// One function for each preset, each in the file of its name.
namespace winnow::policy::methods {

Preset full();
Preset h2o();
Preset streaming_llm();
Preset tova();
Preset snapkv();

}  // namespace winnow::policy::methods
