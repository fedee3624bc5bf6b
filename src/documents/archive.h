// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "documents/document.h"
#include "documents/records.h"
#include "engine/sequence.h"
#include "store/byte_store.h"
#include "winnow/documents.h"

namespace winnow::documents {

/// A document's name and tags.
struct Label {
  std::string name;
  std::vector<std::string> tags;

  /// Throws UsageError.
  void check() const;
};

/// Content to be written.
struct NewContent {
  std::string id;
  ContentRecord record;
  std::vector<std::size_t> layer_bytes;                      ///< [layer]
  std::function<void(int layer, ByteSink& to)> write_layer;  ///< called once for each layer, in order
  std::size_t head_bytes = 0;
  std::function<store::Bytes()> head;  ///< called after the layers
};

/// Throws InputError if the file is not an exported document, UsageError if the document cannot have that name.
void check_exported(const std::string& path, const std::string& name);

/// A store of documents on a store of bytes. Names refer to content, which is kept as long as a name refers to it.
/// Thread-safe. Throws the errors of DocumentStore.
class Archive {
 public:
  /// Throws InputError if the store has another format version.
  explicit Archive(std::shared_ptr<store::ByteStore> bytes);

  const std::string& where() const { return bytes_->name(); }

  /// Stores a document that has been read.
  AddedDocument::Outcome put(const Label& label, const DocumentHead& head, const engine::Sequence& sequence);
  /// The same for any content. Content that exists already is not written again.
  AddedDocument::Outcome put(const Label& label, const NewContent& content);
  /// Gives a name to existing content. Returns false if there is none.
  bool name(const Label& label, const std::string& id, AddedDocument::Outcome& outcome);

  /// Opens a document for inspection.
  std::shared_ptr<const Document> open(const std::string& name) const;
  /// Opens a document for a session. Throws InputError if it was read by another model.
  std::shared_ptr<const Document> open(const std::string& name, const engine::ModelIdentity& model);

  std::vector<DocumentInfo> list() const;
  DocumentInfo info(const std::string& name) const;
  void remove(std::span<const std::string> names);
  std::vector<DocumentDamage> verify(const std::function<void(double)>& progress) const;
  std::vector<DocumentInfo> gc(std::size_t max_bytes);

  void export_to(const std::string& name, const std::string& path) const;
  AddedDocument::Outcome import_from(const std::string& path, Label& label);

 private:
  /// The records of a name and of its content.
  struct Found {
    NameRecord name;
    ContentRecord content;
  };
  /// Beginning of messages: the document NAME (or ID) in WHERE.
  std::string what(const std::string& name) const;
  Found find(const std::string& name) const;
  void check_kind(const std::string& key, const store::Bytes& record) const;
  DocumentInfo info_of(const std::string& name, const Found& found) const;
  AddedDocument::Outcome point(store::Change& change, const Label& label, const std::string& id) const;
  void drop_unnamed(store::Change& change, std::set<std::string> ids) const;
  static void drop_content(store::Change& change, const std::string& id, const ContentRecord& content);
  void note_use(const Found& found) noexcept;
  void verify_content(const ContentRecord& content, const std::string& what) const;
  [[noreturn]] void fail_unknown(const std::string& name, const store::Records& names) const;

  std::shared_ptr<store::ByteStore> bytes_;
};

}  // namespace winnow::documents
