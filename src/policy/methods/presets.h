#pragma once

#include "policy/registry.h"

/// One function for each preset, each in the file of its name.
namespace winnow::policy::methods {

Preset full();
Preset streaming_llm();
Preset snapkv();

}  // namespace winnow::policy::methods
