// SPDX-License-Identifier: Apache-2.0
// Requests of every method, with queries, keys, origins, lengths and chunks, and several in one go.
#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  write_seed(folder / "get", "GET /health?x=1 HTTP/1.1\r\nHost: localhost:8080\r\n\r\n");
  write_seed(folder / "models", "GET /v1/models HTTP/1.0\r\nAuthorization: Bearer key\r\nX-Api-Key: key\r\n\r\n");
  write_seed(folder / "head",
             "HEAD /slots HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: http://localhost:1\r\n\r\n");
  write_seed(folder / "options",
             "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n");
  write_seed(folder / "kept", "GET /winnow/requests/cmpl-0123456789abcdef/kept HTTP/1.1\r\nHost: localhost\r\n\r\n");
  write_seed(folder / "two",
             "GET /props HTTP/1.1\r\nHost: localhost\r\n\r\nPOST /tokenize HTTP/1.1\r\nHost: "
             "localhost\r\nContent-Length: 15\r\n\r\n{\"content\":\"a\"}");
  write_seed(
      folder / "chunks",
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
      "9;x=y\r\n{\"prompt\"\r\n5\r\n:\"a\"}\r\n0\r\nTrailer: t\r\n\r\n");
  write_seed(folder / "codings",
             "POST /tokenize HTTP/1.1\r\nHost: [::1]:8080\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
  write_seed(folder / "rebound", "GET /slots HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n");
  write_seed(folder / "ignored", "GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET GET");
  write_seed(folder / "wrong", "BREW  //%20/../\x01 HTTP/9.9\r\n: \r\n folded\r\nContent-Length: -1\r\n\r\n");
  write_seed(folder / "absolute", "GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n\r\n");
}
