// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace winnow::cli {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kInterrupted = 130;  ///< by Ctrl-C

}  // namespace winnow::cli
