// make_tiny_gguf FILE [ARCHITECTURE]: a small random model.
#include <cstdio>

#include "support/tiny_gguf.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FILE [ARCHITECTURE]\n", argv[0]);
    return 2;
  }
  winnow::test::TinyModel model;
  if (argc > 2) model.arch = argv[2];
  winnow::test::write_tiny_gguf(model, argv[1]);
}
