// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "winnow/document.h"
#include "winnow/error.h"
#include "winnow/export.h"
#include "winnow/session.h"
#include "winnow/store_error.h"

namespace winnow {

namespace documents {
class Document;
}  // namespace documents

/// Description of a document in a store.
struct DocumentInfo {
  using Time = std::chrono::system_clock::time_point;

  std::string name;
  std::vector<std::string> tags;
  std::string id;      ///< of its content: equal for equal tokens, read by the same model and kept in the same way
  CacheOptions cache;  ///< how it is kept: `full`, or what it was compressed by
  std::string model_name;
  std::string model_arch;
  std::uint64_t model_hash = 0;
  int n_layer = 0;
  int tokens = 0;
  std::size_t bytes = 0;  ///< of its values in the store; names of one content share them
  Time added;             ///< under this name
  Time used;              ///< when it was last opened for a session, to the hour
};

/// A document that is to be added.
struct NewDocument {
  std::string name;  ///< 1 to 200 bytes without control characters
  std::vector<std::string> tags;
  DocumentText text;
};

/// Result of adding a document.
struct AddedDocument {
  enum class Outcome : std::uint8_t {
    added,      ///< the name is new
    replaced,   ///< the name stood for another content
    unchanged,  ///< the name stood for the same content: nothing was read
  };
  Outcome outcome = Outcome::added;
  bool was_read = false;  ///< false: the content was there already, under this name or another
  DocumentInfo info;
  double read_ms = 0;   ///< prefill
  double store_ms = 0;  ///< until it was on the disk
};

/// Faults that verify() has found.
struct DocumentDamage {
  std::string name;  ///< empty: no document's in particular
  std::string what;  ///< one sentence
};

/// Which layers should decide, when samkv asks, how many blocks each document offers; a matter of the model.
struct Calibration {
  /// [layer] Of how many documents the layer singles out the block that matters most in all layers.
  std::vector<int> scores;
  int long_enough = 0;  ///< documents with so many blocks that one can be singled out
  int deciding = 0;  ///< how many of the last layers: samkv's option of this name. The paper's share where none has a
                     ///< score
  /// [document][layer][middle block] with what exponent of distance attention to the block's representative falls.
  std::vector<std::vector<std::vector<float>>> exponents;
};

/// There is no document of that name; the sentence has the nearest one.
class WINNOW_EXPORT UnknownDocument : public InputError {
 public:
  using InputError::InputError;
};

/// How to open a store that is not there yet.
enum class MissingStore : std::uint8_t { is_created, is_an_error };

/// Throws what DocumentStore::import_from() would throw for the file and the name (empty: its own), for those who make
/// a store only when there is something to put into it.
WINNOW_EXPORT void check_exported(const std::string& path, const std::string& name = "");

/// Documents that were read once, each with its keys and values, in a folder or on a Redis server.
///
/// Any number of threads, processes and (with Redis) machines may use one store at the same time: what one adds or
/// removes, others see whole or not at all, and a process that is killed leaves nothing half-written behind. A document
/// that is removed while somebody reads it is an InputError there. What add() and the others have returned from is on
/// the disk; with Redis, it is what the server makes of it. All calls throw StoreError when the store cannot be
/// reached, read or written (a full disk, no permission, a server that is gone), and InputError when it is damaged,
/// with one sentence that names it.
class WINNOW_EXPORT DocumentStore {
 public:
  /// `where` is a folder, redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE] (with the password from
  /// WINNOW_REDIS_PASSWORD where it has none; rediss by TLS), or empty for the user's data directory. Throws
  /// UsageError, InputError.
  explicit DocumentStore(const std::string& where = "", MissingStore missing = MissingStore::is_created);
  DocumentStore(DocumentStore&&) noexcept;
  DocumentStore& operator=(DocumentStore&&) noexcept;
  ~DocumentStore();

  /// The folder or the server's address, without a password.
  const std::string& where() const;

  /// Reads a document and keeps it, with its full cache or compressed. What is known already is not read again; another
  /// content under a known name replaces it. Throws InputError for an empty document or one longer than the model's
  /// context, UsageError for a name or for options that documents cannot be kept by, and what Session::prefill()
  /// throws; the store is then as it was.
  AddedDocument add(Session& session, const NewDocument& document, const CacheOptions& cache = {});

  /// A document to ask() about, for as long as it is held; its keys and values are read where the store has them.
  /// Throws UnknownDocument, and InputError when it was read by another model than the session's.
  std::shared_ptr<const documents::Document> open(const std::string& name, Session& session);
  std::shared_ptr<const documents::Document> open(const std::string& name, const Model& model);

  /// By name.
  std::vector<DocumentInfo> list() const;
  /// Throws UnknownDocument.
  DocumentInfo info(const std::string& name) const;

  /// Removes all of these or, when one is not there, throws UnknownDocument and removes none.
  void remove(std::span<const std::string> names);

  /// Throws InputError when there is none of a name, and for documents that were compressed or read by different
  /// models. REQUIRES: names.
  Calibration calibrate(std::span<const std::string> names) const;

  /// Computes all checksums. `progress` is called with the share that is done. Throws only when the store cannot be
  /// read at all.
  std::vector<DocumentDamage> verify(const std::function<void(double)>& progress = {}) const;

  /// Writes a document to a file of its own; what was there stays until all is on the disk.
  void export_to(const std::string& name, const std::string& path) const;
  /// Adds what export_to() has written, under its name there or another one. Throws InputError when the file is no
  /// exported document, of another version, truncated or damaged.
  AddedDocument import_from(const std::string& path, const std::string& name = "");

  /// Removes those documents that were not used for the longest time until the others' values take at most so many
  /// bytes. Returns what was removed. A folder does not become smaller; what is free in it is used for the next
  /// documents.
  std::vector<DocumentInfo> gc(std::size_t max_bytes);

  struct WINNOW_NO_EXPORT Impl;
  Impl& impl() { return *impl_; }
  const Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
