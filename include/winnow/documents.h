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
class Archive;
class Document;
}  // namespace documents

/// Description of a document in a store.
struct DocumentInfo {
  using Time = std::chrono::system_clock::time_point;

  std::string name;
  std::vector<std::string> tags;
  std::string id;      ///< of its content: equal for equal tokens read by the same model with the same cache options
  CacheOptions cache;  ///< `full`, or the options it was compressed with
  std::string model_name;
  std::string model_arch;
  std::uint64_t model_hash = 0;
  int n_layer = 0;
  int tokens = 0;
  std::size_t bytes = 0;  ///< of its values in the store; shared by all names of the content
  Time added;             ///< under this name
  Time used;              ///< when a session last opened it, to the hour
};

/// A document to be added.
struct NewDocument {
  std::string name;  ///< 1 to 200 bytes without control characters
  std::vector<std::string> tags;
  DocumentText text;
};

/// Result of adding a document.
struct AddedDocument {
  enum class Outcome : std::uint8_t {
    added,      ///< the name is new
    replaced,   ///< the name referred to other content
    unchanged,  ///< the name already referred to this content: nothing was read
  };
  Outcome outcome = Outcome::added;
  bool was_read = false;  ///< false: the content was already stored, under this name or another
  DocumentInfo info;
  double read_ms = 0;   ///< prefill
  double store_ms = 0;  ///< until the document was on disk
};

/// Damage found by verify().
struct DocumentDamage {
  std::string name;  ///< empty: not specific to a document
  std::string what;  ///< one sentence
};

/// Measures of how well each layer singles out the blocks that matter. They help to choose samkv's option `deciding`
/// for a model.
struct Calibration {
  /// [layer] Number of documents in which the layer singles out the block that matters most over all layers.
  std::vector<int> scores;
  int long_enough = 0;  ///< documents with enough blocks to single one out
  int deciding = 0;  ///< number of last layers for samkv's option `deciding`; the paper's share if no layer has a score
  /// Exponents of the power law by which attention to a block's representative falls with distance.
  /// [document][layer][middle block]
  std::vector<std::vector<std::vector<float>>> exponents;
};

/// No document has this name; the message names the nearest one.
class WINNOW_EXPORT UnknownDocument : public InputError {
 public:
  using InputError::InputError;
};

/// Whether to create a store that does not exist.
enum class MissingStore : std::uint8_t { is_created, is_an_error };

/// Throws whatever DocumentStore::import_from() would throw for the file and the name (empty: the file's own). For
/// callers that create a store only if there is something to import.
WINNOW_EXPORT void check_exported(const std::string& path, const std::string& name = "");

/// Documents with their keys and values, in a folder or on a Redis server.
///
/// Any number of threads, processes and (with Redis) machines may use one store at the same time. Changes are atomic:
/// others see all of a change or nothing, and a killed process leaves nothing half-written. Reading a document that was
/// removed meanwhile throws InputError. When add() or another change returns, the change is on disk; with Redis, it is
/// as durable as the server makes it. All calls throw StoreError if the store cannot be reached, read or written (a
/// full disk, missing permission, an unreachable server), and InputError with a description if it is damaged.
class WINNOW_EXPORT DocumentStore {
 public:
  /// `where` is a folder, redis[s]://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE] (rediss: with TLS; the password
  /// defaults to WINNOW_REDIS_PASSWORD), or empty for the user's data directory. Throws UsageError, InputError.
  explicit DocumentStore(const std::string& where = "", MissingStore missing = MissingStore::is_created);
  DocumentStore(DocumentStore&&) noexcept;
  DocumentStore& operator=(DocumentStore&&) noexcept;
  ~DocumentStore();

  /// The folder or the server's address, without a password.
  const std::string& where() const;

  /// Reads a document and stores it, with its full cache or compressed. Content that is already stored is not read
  /// again; new content under an existing name replaces the old. Throws InputError for an empty document or one longer
  /// than the model's context, UsageError for an invalid name or options that documents do not support, and whatever
  /// Session::prefill() throws; the store is then unchanged.
  AddedDocument add(Session& session, const NewDocument& document, const CacheOptions& cache = {});

  /// Opens a document for ask(). Its keys and values are read from the store when needed. Throws UnknownDocument, and
  /// InputError if another model read it.
  std::shared_ptr<const documents::Document> open(const std::string& name, Session& session);
  std::shared_ptr<const documents::Document> open(const std::string& name, const Model& model);

  /// All documents, ordered by name.
  std::vector<DocumentInfo> list() const;
  /// Throws UnknownDocument.
  DocumentInfo info(const std::string& name) const;

  /// Removes all of these documents, or throws UnknownDocument and removes none.
  void remove(std::span<const std::string> names);

  /// Throws UnknownDocument, and InputError for documents that were compressed or that different models read. REQUIRES:
  /// names is not empty.
  Calibration calibrate(std::span<const std::string> names) const;

  /// Verifies all checksums. `progress` gets the share that is done. Throws only if the store cannot be read at all.
  std::vector<DocumentDamage> verify(const std::function<void(double)>& progress = {}) const;

  /// Writes a document to a file. An existing file at `path` is replaced only when the new one is on disk.
  void export_to(const std::string& name, const std::string& path) const;
  /// Adds a document that export_to() wrote, under its own name or another. Throws InputError if the file is no
  /// exported document, has another version, or is truncated or damaged.
  AddedDocument import_from(const std::string& path, const std::string& name = "");

  /// Removes the least recently used documents until the values of the others take at most `max_bytes`. Returns the
  /// removed documents. A folder does not shrink; later documents use its free space.
  std::vector<DocumentInfo> gc(std::size_t max_bytes);

  documents::Archive& archive() { return *archive_; }

 private:
  std::unique_ptr<documents::Archive> archive_;
};

}  // namespace winnow
