// SPDX-License-Identifier: Apache-2.0
// Opens stores of documents at the given places, and prints the errors of a library without Redis.
#include <winnow/documents.h>
#include <winnow/error.h>

#include <iostream>

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    try {
      const winnow::DocumentStore store(argv[i]);
      std::cout << "opened " << argv[i] << "\n";
    } catch (const winnow::UsageError& error) {
      std::cout << error.what() << "\n";
    }
  }
}
