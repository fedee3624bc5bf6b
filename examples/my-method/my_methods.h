// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <winnow/policy/registry.h>

/// Keeps the entries with the longest values.
winnow::policy::Preset value_norm();

/// Keeps the entries that the last queries attend to, weighted by the length of their values.
winnow::policy::Preset attended_values();
