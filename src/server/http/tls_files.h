// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::server {

/// Files in PEM format: a certificate with its chain, and its key.
struct TlsFiles {
  std::string certificate;
  std::string key;
};

}  // namespace winnow::server
