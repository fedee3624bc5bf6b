// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"
#include "winnow/methods.h"
#include "winnow/session.h"

namespace winnow {

namespace documents {
class Document;
struct AskMethod;
}  // namespace documents

/// How documents that were read one by one are put together for a question, read from a string such as
/// `samkv:update=overwrite` or `epic:initial=64,local=128`: the grammar of Spec without wrappers. A value: cheap to
/// copy, immutable, safe to share between threads.
class WINNOW_EXPORT AskSpec {
 public:
  /// `samkv`.
  AskSpec();

  /// Throws UsageError: an unknown method or option names the nearest one and lists all.
  static AskSpec parse(std::string_view text);

  /// Canonical form: the name and the options that differ from their default, in declared order. parse(print(s)) = s.
  std::string print() const;
  /// The same with every option written out.
  std::string print_full() const;
  std::string name() const;
  bool needs_budget() const;

  bool operator==(const AskSpec& other) const { return print() == other.print(); }

  struct WINNOW_NO_EXPORT Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit AskSpec(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// All methods of asking with their options.
WINNOW_EXPORT std::vector<MethodInfo> list_ask_methods();

/// How to treat a document whose keys and values cannot be read when they are needed: its store is gone, somebody
/// has removed it, a block is damaged.
enum class UnreadableDocument : std::uint8_t {
  is_an_error,
  is_recomputed,  ///< its tokens, which came when it was opened, are read anew and kept as they were: the same cache,
                  ///< at a prefill's cost
};

struct WINNOW_EXPORT AskOptions {
  AskSpec method;
  std::optional<Budget> budget;  ///< REQUIRES: set for a method that needs one (multi-infllm), not set for the others
  KvType kv_type;                ///< of the cache that is made
  UnreadableDocument unreadable = UnreadableDocument::is_an_error;

  /// Throws UsageError when these do not go together.
  void check() const;
};

/// Time that a stage of asking took.
struct AskStage {
  std::string name;  ///< "recompute" (documents that could not be read), "question", "select", "assemble", "answer"
                     ///< (the question once more), "prefill"
  double seconds = 0;
};

/// A document that could not be read and was recomputed.
struct RecomputedDocument {
  int index = 0;    ///< among those that were asked about
  std::string why;  ///< one sentence
  /// The document that was used in its stead, also for the next question; must not outlive the session.
  std::shared_ptr<const documents::Document> document;
};

/// A question over several documents, ready to be answered by generate().
struct Asked {
  Cache cache;  ///< of the documents and the question; Session::save() takes it only when all entries are kept
  std::vector<float> logits;  ///< [n_vocab] after the question
  /// Blocks of 64 tokens of which entries are kept, ascending: [layer][document][…].
  std::vector<std::vector<std::vector<int>>> kept_blocks;
  int document_tokens = 0;             ///< of all documents, as they were stored
  double sequence_ratio = 0;           ///< kept entries of all, mean over layers (and heads)
  double recompute_ratio = 0;          ///< recomputed entries of all
  double recompute_ratio_of_kept = 0;  ///< and of those that are kept
  std::vector<AskStage> stages;        ///< in their order
  std::vector<RecomputedDocument> recomputed_documents;
};

/// Puts documents together, in their order, and reads a question over them. `question`: its tokens without BOS, with
/// whatever closes the prompt. A document may be there twice: each copy has its own place. Documents of fewer than four
/// blocks have no middle blocks, so samkv keeps all of them. A document that was compressed when it was added can only
/// be put together as it is (`reuse`). Throws InputError for no documents, an empty question, a document of another
/// model, or one that is damaged or gone (see AskOptions::unreadable); UsageError for a method that cannot work on
/// compressed documents; MemoryError; Interrupted.
WINNOW_EXPORT Asked ask(Session& session, std::span<const std::shared_ptr<const documents::Document>> documents,
                        std::span<const Token> question, const AskOptions& options);

}  // namespace winnow
