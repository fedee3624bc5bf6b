// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>

#include "server/http/tls_files.h"

namespace winnow::server {

/// The server's context for TLS 1.2 and 1.3. Throws InputError if a file cannot be read, has no certificate or no key,
/// or if the key is encrypted or belongs to another certificate.
boost::asio::ssl::context tls_context(const TlsFiles& files);

}  // namespace winnow::server
