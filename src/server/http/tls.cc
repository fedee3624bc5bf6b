// SPDX-License-Identifier: Apache-2.0
#include "server/http/tls.h"

#include <openssl/ssl.h>
#include <spdlog/fmt/fmt.h>

#include <boost/asio/buffer.hpp>
#include <span>
#include <string>

#include "base/file.h"
#include "winnow/error.h"

namespace winnow::server {

namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

std::string pem_text(const std::string& path) {
  const FileSource file(path);
  std::string out(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(out)));
  return out;
}

void load_certificate(ssl::context& context, const std::string& path) {
  const std::string text = pem_text(path);
  error_code error;
  context.use_certificate_chain(boost::asio::buffer(text), error);
  if (error) throw InputError(fmt::format("{} is not a certificate in PEM format: {}", path, error.message()));
}

/// Fails for an encrypted key instead of prompting for its password.
void load_key(ssl::context& context, const TlsFiles& files) {
  const std::string text = pem_text(files.key);
  error_code error;
  context.set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); }, error);
  if (!error) context.use_private_key(boost::asio::buffer(text), ssl::context::pem, error);
  if (error) {
    throw InputError(fmt::format("{} is not the key of {} in PEM format without a password: {}", files.key,
                                 files.certificate, error.message()));
  }
}

}  // namespace

ssl::context tls_context(const TlsFiles& files) {
  ssl::context out(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(out.native_handle(), TLS1_2_VERSION);
  load_certificate(out, files.certificate);
  load_key(out, files);
  return out;
}

}  // namespace winnow::server
