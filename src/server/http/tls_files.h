// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::server {

/// Files in PEM form: a certificate with those that vouch for it, and its key.
struct TlsFiles {
  std::string certificate;
  std::string key;
};

}  // namespace winnow::server
