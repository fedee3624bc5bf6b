#pragma once

#include "policy/registry.h"

namespace winnow::policy::methods {

Preset value_norm();

}  // namespace winnow::policy::methods
