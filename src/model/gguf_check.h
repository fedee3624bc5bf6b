#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace winnow::model {

/// Walks a GGUF's header within the bytes that are there and checks everything that ggml and libllama would otherwise
/// abort on: counts, lengths, the types of the keys that are relied on, tensor shapes and places, the vocabulary's
/// invariants. Throws ModelError: `path`, what, the numbers.
void check_gguf(std::span<const std::byte> file, const std::string& path);

}  // namespace winnow::model
