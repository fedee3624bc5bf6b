// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/text_store.h"
#include "engine/text_value.h"
#include "store/values.h"
#include "winnow/scheduler.h"

namespace winnow::engine {

/// A value to be written: a block's keys and values, in memory or written already, or an observer's state.
struct TierValue {
  TextName name;
  std::variant<LayerBytesPtr, std::shared_ptr<FiledRows>> rows;
};

/// Where a value is read to: into memory, or nowhere, to be read layer by layer later.
using TierTarget = std::variant<std::shared_ptr<LayerBytes>, std::shared_ptr<FiledRows>>;

/// Values that are requested from a tier. Its threads work on them until `working` is 0.
struct TierRequest {
  std::vector<TextName> names;
  std::vector<bool> exist;              ///< [name], after look()
  std::vector<TierTarget> targets;      ///< [name], for read(), those in front first
  std::atomic<std::size_t> good{0};     ///< values before the first one that could not be read
  std::atomic<std::size_t> next{0};     ///< value to be read next
  std::atomic<bool> is_damaged{false};  ///< one of them is: all are looked at, so that all such are written again
  std::atomic<int> working{0};          ///< threads at work
  std::atomic<bool> is_unwanted{false};
};

/// Text blocks and observers' states outside of memory, in a folder or on a server. They outlast the process and can be
/// shared by several. Threads of the tier write and read them, so its owner does not wait for the store, except for
/// rows that stay there. If a store fails, this is logged once, and the store is tried again after a while. Called by
/// one thread.
class TextTier {
 public:
  /// Keeps at most `queue` bytes of values that are still to be written, or the values of one text. Throws MemoryError
  /// if threads cannot be started.
  TextTier(std::unique_ptr<store::Values> values, const SessionKey& session, std::size_t queue);
  TextTier(const TextTier&) = delete;
  TextTier& operator=(const TextTier&) = delete;
  /// Writes what is queued, unless the store has failed.
  ~TextTier();

  std::vector<TextName> names(std::string_view owner, std::span<const Token> text) const {
    return names_of(session_, owner, text);
  }
  TextName name_of_state(const TextName& block, const std::string& state) const {
    return engine::name_of_state(session_, block, state);
  }
  /// The most bytes of blocks whose rows can stay in the store; 0: none can.
  std::size_t room_for_parts() const;
  bool has_parts() const { return room_for_parts() > 0; }
  /// Rows of a block that stay there. REQUIRES: has_parts().
  std::shared_ptr<FiledRows> filed(TextName name, std::vector<std::size_t> sizes) const;
  /// Runs work that writes such rows, unless the store has failed. Returns false if that failed.
  bool write(const std::function<void()>& work);
  /// Queues the missing values of a text for writing, and records the use of all; those at the end are dropped first.
  /// Does nothing if too much is queued; the next use of the text tries again.
  void keep(std::vector<TierValue> values);
  /// False for a while after the store has failed.
  bool may_read();
  /// Treats the store as failed, since it has not answered for so long.
  void give_up(std::chrono::milliseconds waited);
  /// Finds out which values exist.
  void look(const std::shared_ptr<TierRequest>& asked);
  /// Fills or opens the targets.
  void read(const std::shared_ptr<TierRequest>& asked);
  /// Waits at most `most` for the end of a look() or read().
  void wait(std::chrono::milliseconds most);

  /// Without the fields about memory.
  TextUse use() const;

 private:
  struct Impl;
  SessionKey session_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::engine
