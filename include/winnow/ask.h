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

namespace policy {
class Options;
}  // namespace policy

/// A way of combining documents that were read separately, parsed from a string such as `samkv:update=overwrite` or
/// `epic:initial=64,local=128`: the grammar of Spec without wrappers. A value: cheap to copy, immutable, safe to share
/// between threads.
class WINNOW_EXPORT AskSpec {
 public:
  /// `samkv`.
  AskSpec();

  /// Throws UsageError; for an unknown method or option it names the nearest one and lists all.
  static AskSpec parse(std::string_view text);

  /// Canonical form: the name and the options that differ from their default, in declared order. parse(print(s)) = s.
  std::string print() const;
  /// Canonical form with every option written out.
  std::string print_full() const;
  std::string name() const;
  bool needs_budget() const;

  bool operator==(const AskSpec& other) const { return print() == other.print(); }

  const documents::AskMethod& method() const;
  const policy::Options& options() const;

 private:
  struct WINNOW_NO_EXPORT Impl;
  explicit AskSpec(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// All ask methods with their options.
WINNOW_EXPORT std::vector<MethodInfo> list_ask_methods();

/// Handling of a document whose keys and values cannot be read when they are needed: its store is gone, the document
/// was removed, or a block is damaged.
enum class UnreadableDocument : std::uint8_t {
  is_an_error,
  is_recomputed,  ///< its tokens, loaded when it was opened, are read again and compressed as before: the same cache at
                  ///< the cost of a prefill
};

struct WINNOW_EXPORT AskOptions {
  AskSpec method;
  std::optional<Budget> budget;  ///< REQUIRES: set if and only if the method needs one (multi-infllm)
  KvType kv_type;                ///< of the resulting cache
  UnreadableDocument unreadable = UnreadableDocument::is_an_error;

  /// Throws UsageError if the options contradict each other.
  void check() const;
};

/// Time of one phase of ask().
struct AskPhase {
  std::string name;  ///< "recompute" (unreadable documents), "question", "select", "assemble", "answer" (the question
                     ///< again), "prefill"
  double seconds = 0;
};

/// A document that could not be read and was recomputed.
struct RecomputedDocument {
  int index = 0;    ///< among the documents of the call
  std::string why;  ///< one sentence
  /// The replacement document, usable for later questions too; must not outlive the session.
  std::shared_ptr<const documents::Document> document;
};

/// The result of ask(), ready for generate().
struct Asked {
  Cache cache;                ///< documents and question; Session::save() accepts it only if all entries are kept
  std::vector<float> logits;  ///< [n_vocab] after the question
  /// Blocks of 64 tokens with at least one kept entry, ascending: [layer][document][…].
  std::vector<std::vector<std::vector<int>>> kept_blocks;
  int document_tokens = 0;             ///< tokens of all documents, as stored
  double sequence_ratio = 0;           ///< kept entries / all entries, mean over layers and heads
  double recompute_ratio = 0;          ///< recomputed entries / all entries
  double recompute_ratio_of_kept = 0;  ///< recomputed entries / kept entries
  std::vector<AskPhase> phases;        ///< in order
  std::vector<RecomputedDocument> recomputed_documents;
};

/// Combines documents in the given order and reads a question over them. `question` has no BOS and includes the tokens
/// that close the prompt. A document may occur several times; each copy has its own positions. Documents of fewer than
/// four blocks have no middle blocks, so samkv keeps all of them. A document that was compressed when it was added can
/// only be combined by `reuse`. Throws InputError for no documents, an empty question, a document of another model, or
/// one that is damaged or gone (see AskOptions::unreadable); UsageError for a method that does not work on compressed
/// documents; MemoryError; Interrupted.
WINNOW_EXPORT Asked ask(Session& session, std::span<const std::shared_ptr<const documents::Document>> documents,
                        std::span<const Token> question, const AskOptions& options);

}  // namespace winnow
