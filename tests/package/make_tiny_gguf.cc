// SPDX-License-Identifier: Apache-2.0
// make_tiny_gguf FILE [ARCHITECTURE [CHAT_TEMPLATE]]: a small random model.
#include <cstdio>

#include "support/tiny_gguf.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE [ARCHITECTURE [CHAT_TEMPLATE]]\n", argv[0]);
    return 2;
  }
  auto model = argc > 2 ? winnow::test::tiny_of(argv[2]) : winnow::test::TinyModel();
  if (argc > 3) model.chat_template = argv[3];
  winnow::test::write_tiny_gguf(model, argv[1]);
}
