// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "cache/scratch.h"
#include "engine/filed_rows.h"
#include "engine/layer_bytes.h"
#include "model/hparams.h"
#include "winnow/model.h"

/// Full keys and values of texts that were read. If a later text begins with such a text, only its remaining tokens are
/// read, and its method sees the same as if all of them were.
namespace winnow::engine {

/// Keys and values of kTokens consecutive tokens in all layers that store them. They depend on all tokens before.
class TextBlock {
 public:
  /// Number of rows that matrix products compute together (network::Linear), so a block has the same bits in every
  /// text.
  static constexpr int kTokens = 64;

  /// A block in memory. Throws MemoryError. REQUIRES: kTokens tokens.
  TextBlock(MemoryAccount& account, const model::Hparams& hparams, ElementType type, std::span<const Token> tokens);
  /// A block whose rows stay in a store. REQUIRES: kTokens tokens.
  TextBlock(ElementType type, std::span<const Token> tokens, std::shared_ptr<FiledRows> rows);
  /// Bytes of rows in each layer.
  static std::vector<std::size_t> sizes(const model::Hparams& hparams, ElementType type);
  /// Bytes of memory of a block in memory, with its tokens.
  static std::size_t bytes(const model::Hparams& hparams, ElementType type);
  /// Bytes of memory of a block whose rows stay in a store.
  static std::size_t filed_bytes() { return static_cast<std::size_t>(kTokens) * sizeof(Token); }

  std::span<const Token> tokens() const { return tokens_; }
  /// Bytes of memory.
  std::size_t bytes() const { return filed_bytes() + (rows_ ? rows_->bytes() : 0); }
  /// Encoded keys and values, as cache::LayerScratch::copy_rows() writes them. REQUIRES: a block in memory.
  LayerBytes& rows() { return *rows_; }
  const LayerBytes& rows() const { return *rows_; }
  /// Null for a block in memory.
  const std::shared_ptr<FiledRows>& filed() const { return filed_; }
  /// Copies a layer's rows from `first` on, out of a scratch or back into it. Encodes or decodes them if the scratch
  /// has another type. Throws StoreError, or TextLost, if the rows stay in a store.
  void copy(int layer, int first, const cache::LayerScratch& from);
  void put(int layer, int first, cache::LayerScratch& to) const;

 private:
  ElementType type_;
  std::vector<Token> tokens_;
  std::optional<LayerBytes> rows_;
  std::shared_ptr<FiledRows> filed_;
};

using TextBlockPtr = std::shared_ptr<const TextBlock>;

/// Names of facts about a text.
struct FactNames {
  std::vector<std::string> after = {};  ///< each is stored as a whole, with the last block of the text that it is about
  std::vector<std::string> along = {};  ///< each is stored in pieces, one with every block
};

/// Chains of blocks by owner: texts with the same beginning share its blocks. Facts about the text up to the end of a
/// block are stored with it, by name. When there is no room, the least recently used blocks and facts are dropped,
/// blocks from the ends of chains and with their facts.
class TextStore {
 public:
  /// Facts about the first `blocks` blocks of a text.
  struct Facts {
    std::size_t blocks = 0;
    std::vector<LayerBytesPtr> after = {};               ///< [name]
    std::vector<std::vector<LayerBytesPtr>> along = {};  ///< [name][block]
  };

  explicit TextStore(std::size_t memory) : memory_(memory) {}

  std::size_t memory() const { return memory_; }
  /// The longest stored chain that the text begins with; its blocks count as used.
  std::vector<TextBlockPtr> find(std::string_view owner, std::span<const Token> text);
  /// The longest beginning of a stored chain, up to `most` blocks, about which all these facts are stored. They count
  /// as used.
  Facts find_facts(std::string_view owner, std::span<const Token> text, std::size_t most, const FactNames& names);
  /// Number of blocks that find_facts() finds now.
  std::size_t blocks_with_facts(std::string_view owner, std::span<const Token> text, std::size_t most,
                                const FactNames& names) const;
  /// Reserves bytes for new blocks and facts; false if those in use leave no room for them.
  bool reserve(std::size_t bytes);
  void release(std::size_t bytes) { reserved_ -= bytes; }
  /// Stores the blocks of a text from its beginning. Blocks that are there already stay, unless they are lost.
  void put(std::string_view owner, std::span<const TextBlockPtr> chain);
  /// Stores a fact about the text of a stored chain, unless it is there already. Facts of the same name about earlier
  /// beginnings of the text are among the first to be dropped, except where texts branch off. REQUIRES: a chain of
  /// blocks in use.
  void put_fact(std::string_view owner, std::span<const Token> text, const std::string& name, LayerBytesPtr fact);
  /// Stores pieces of a fact with the blocks of a stored chain from `first` on, except those that are there already.
  void put_pieces(std::string_view owner, std::span<const Token> text, std::size_t first, const std::string& name,
                  std::span<const LayerBytesPtr> pieces);

  /// Changes whenever the set of stored blocks and facts changes.
  std::uint64_t generation() const { return generation_; }
  std::size_t held() const { return held_; }
  /// Number of blocks dropped so far.
  std::uint64_t dropped() const { return dropped_; }
  /// Number of blocks stored now.
  std::size_t blocks() const { return blocks_; }

 private:
  struct Node;
  using Children = std::map<std::vector<Token>, std::unique_ptr<Node>>;
  struct Node {
    TextBlockPtr block;
    std::string_view owner;        ///< a key of owners_
    Children* siblings = nullptr;  ///< the map that contains this node
    Children next = {};
    std::uint64_t used = 0;
    struct Fact {
      LayerBytesPtr bytes;
      std::uint64_t used = 0;
    };
    std::map<std::string, Fact, std::less<>> facts = {};
  };

  /// A fact's name, or empty for the node's block.
  using Use = std::tuple<std::uint64_t, Node*, std::string>;

  /// Nodes of the longest chain without lost rows.
  std::vector<Node*> chain(std::string_view owner, std::span<const Token> text) const;
  /// Number of the first nodes, at most `most`, after which all these facts are stored.
  static std::size_t with_facts(std::span<Node* const> nodes, std::size_t most, const FactNames& names);
  /// Marks blocks as used, the last one first: the end of a chain is dropped before its beginning.
  void touch(std::span<Node* const> chain);
  /// `used`: 0 for what is dropped first.
  void use_fact(Node& node, const std::string& name, std::uint64_t used);
  /// Drops the least recently used fact or leaf that nothing else holds. Returns false if there is none.
  bool drop_one();
  /// Returns false if the fact is there already.
  bool add_fact(Node& node, const std::string& name, LayerBytesPtr fact);
  void drop_fact(Node& node, const std::string& name);
  void drop_leaf(Node& node);

  std::size_t memory_;
  std::size_t held_ = 0;
  std::size_t reserved_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t generation_ = 0;
  std::size_t blocks_ = 0;
  std::uint64_t uses_ = 0;
  std::map<std::string, Children, std::less<>> owners_;
  std::set<Use> by_use_;
};

}  // namespace winnow::engine
