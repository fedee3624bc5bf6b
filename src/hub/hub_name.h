// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::hub {

/// A model on a hub.
struct HubName {
  std::string repository;  ///< USER/REPO
  std::string quant;       ///< such as Q4_K_M, in any case; empty: not specified

  /// Throws UsageError unless the text is USER/REPO[:QUANT].
  static HubName parse(const std::string& text);
};

}  // namespace winnow::hub
