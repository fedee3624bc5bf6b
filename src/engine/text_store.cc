// SPDX-License-Identifier: Apache-2.0
#include "engine/text_store.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <utility>

#include "base/as_size.h"
#include "engine/layers.h"

namespace winnow::engine {

namespace {

bool is_lost(const TextBlock& block) { return block.filed() != nullptr && block.filed()->is_lost(); }

}  // namespace

std::vector<std::size_t> TextBlock::sizes(const model::Hparams& hparams, ElementType type) {
  std::vector<std::size_t> out;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto heads = kv_heads_of(hparams.layer(layer));
    out.push_back(cache::LayerScratch::bytes(type, {&heads, 1}, TextBlock::kTokens));
  }
  return out;
}

TextBlock::TextBlock(MemoryAccount& account, const model::Hparams& hparams, ElementType type,
                     std::span<const Token> tokens)
    : type_(type),
      tokens_(tokens.begin(), tokens.end()),
      rows_(std::in_place, account, sizes(hparams, type), "keys and values of a text") {}

TextBlock::TextBlock(ElementType type, std::span<const Token> tokens, std::shared_ptr<FiledRows> rows)
    : type_(type), tokens_(tokens.begin(), tokens.end()), filed_(std::move(rows)) {}

std::size_t TextBlock::bytes(const model::Hparams& hparams, ElementType type) {
  return LayerBytes::bytes(sizes(hparams, type)) + filed_bytes();
}

void TextBlock::copy(int layer, int first, const cache::LayerScratch& from) {
  if (rows_) return from.copy_rows(first, kTokens, type_, rows_->layer(layer).data());
  std::vector<std::byte> rows(filed_->sizes()[as_size(layer)]);
  from.copy_rows(first, kTokens, type_, rows.data());
  filed_->write(layer, rows);
}

void TextBlock::put(int layer, int first, cache::LayerScratch& to) const {
  if (rows_) return to.put_rows(first, kTokens, type_, rows_->layer(layer).data());
  const auto rows = filed_->read(layer);
  to.put_rows(first, kTokens, type_, rows.parts.front().data());
}

std::vector<TextStore::Node*> TextStore::chain(std::string_view owner, std::span<const Token> text) const {
  std::vector<Node*> out;
  const auto of_owner = owners_.find(owner);
  if (of_owner == owners_.end()) return out;
  const Children* next = &of_owner->second;
  for (constexpr auto kTokens = as_size(TextBlock::kTokens); text.size() >= kTokens; text = text.subspan(kTokens)) {
    const auto found = next->find({text.begin(), text.begin() + TextBlock::kTokens});
    if (found == next->end() || is_lost(*found->second->block)) break;
    out.push_back(found->second.get());
    next = &found->second->next;
  }
  return out;
}

void TextStore::touch(std::span<Node* const> chain) {
  for (Node* const node : chain | std::views::reverse) {
    by_use_.erase({node->used, node, ""});
    node->used = ++uses_;
    by_use_.emplace(node->used, node, "");
  }
}

void TextStore::use_fact(Node& node, const std::string& name, std::uint64_t used) {
  auto& fact = node.facts.at(name);
  by_use_.erase({fact.used, &node, name});
  fact.used = used;
  by_use_.emplace(fact.used, &node, name);
}

std::vector<TextBlockPtr> TextStore::find(std::string_view owner, std::span<const Token> text) {
  const auto nodes = chain(owner, text);
  touch(nodes);
  std::vector<TextBlockPtr> out;
  for (const Node* const node : nodes) out.push_back(node->block);
  return out;
}

std::size_t TextStore::with_facts(std::span<Node* const> nodes, std::size_t most, const FactNames& names) {
  const auto has_all = [&](std::size_t block, const std::vector<std::string>& all) {
    return std::ranges::all_of(all, [&](const auto& name) { return nodes[block]->facts.contains(name); });
  };
  std::size_t blocks = 0;
  while (blocks < std::min(most, nodes.size()) && has_all(blocks, names.along)) ++blocks;
  while (blocks > 0 && !has_all(blocks - 1, names.after)) --blocks;
  return blocks;
}

std::size_t TextStore::blocks_with_facts(std::string_view owner, std::span<const Token> text, std::size_t most,
                                         const FactNames& names) const {
  return with_facts(chain(owner, text), most, names);
}

TextStore::Facts TextStore::find_facts(std::string_view owner, std::span<const Token> text, std::size_t most,
                                       const FactNames& names) {
  const auto nodes = chain(owner, text);
  Facts out{.blocks = with_facts(nodes, most, names)};
  if (out.blocks == 0) return out;
  const auto take = [&](std::size_t block, const std::string& name) {
    use_fact(*nodes[block], name, ++uses_);
    return nodes[block]->facts.at(name).bytes;
  };
  for (const auto& name : names.after) out.after.push_back(take(out.blocks - 1, name));
  for (const auto& name : names.along) {
    auto& pieces = out.along.emplace_back(out.blocks);
    for (std::size_t block = out.blocks; block-- > 0;) pieces[block] = take(block, name);  // the last is dropped first
  }
  return out;
}

bool TextStore::drop_one() {
  for (const auto& [used, node, name] : by_use_) {
    if (!name.empty()) {
      if (node->facts.at(name).bytes.use_count() > 1) continue;
      drop_fact(*node, std::string(name));
      return true;
    }
    if (!node->next.empty() || node->block.use_count() > 1) continue;
    drop_leaf(*node);
    return true;
  }
  return false;
}

void TextStore::drop_fact(Node& node, const std::string& name) {
  const auto found = node.facts.find(name);
  held_ -= found->second.bytes->bytes();
  by_use_.erase({found->second.used, &node, name});
  node.facts.erase(found);
  ++generation_;
}

void TextStore::drop_leaf(Node& node) {
  while (!node.facts.empty()) drop_fact(node, std::string(node.facts.begin()->first));
  held_ -= node.block->bytes();
  const auto tokens = node.block->tokens();
  const std::vector<Token> key(tokens.begin(), tokens.end());
  by_use_.erase({node.used, &node, ""});
  const auto owner = owners_.find(node.owner);
  node.siblings->erase(key);
  if (owner->second.empty()) owners_.erase(owner);
  ++dropped_;
  ++generation_;
  --blocks_;
}

bool TextStore::reserve(std::size_t bytes) {
  if (bytes > memory_) return false;
  while (held_ + reserved_ + bytes > memory_) {
    if (!drop_one()) return false;
  }
  reserved_ += bytes;
  return true;
}

void TextStore::put(std::string_view owner, std::span<const TextBlockPtr> chain) {
  if (chain.empty()) return;
  auto& [name, first] = *owners_.try_emplace(std::string(owner)).first;
  Children* next = &first;
  std::vector<Node*> nodes;
  for (const auto& block : chain) {
    const auto tokens = block->tokens();
    auto& node = (*next)[{tokens.begin(), tokens.end()}];
    if (node == nullptr) {
      node = std::make_unique<Node>(Node{block, name, next});
      held_ += block->bytes();
      by_use_.emplace(0, node.get(), "");
      ++generation_;
      ++blocks_;
    } else if (is_lost(*node->block)) {
      held_ = held_ - node->block->bytes() + block->bytes();
      node->block = block;
      ++generation_;
    }
    nodes.push_back(node.get());
    next = &node->next;
  }
  touch(nodes);
}

void TextStore::put_fact(std::string_view owner, std::span<const Token> text, const std::string& name,
                         LayerBytesPtr fact) {
  auto nodes = chain(owner, text);
  if (nodes.size() * as_size(TextBlock::kTokens) != text.size()) return;
  if (!add_fact(*nodes.back(), name, std::move(fact))) return;
  nodes.pop_back();
  for (Node* const earlier : nodes) {
    if (earlier->facts.contains(name) && earlier->next.size() < 2) use_fact(*earlier, name, 0);
  }
}

bool TextStore::add_fact(Node& node, const std::string& name, LayerBytesPtr fact) {
  const std::size_t bytes = fact->bytes();
  if (!node.facts.try_emplace(name, Node::Fact{std::move(fact)}).second) return false;
  held_ += bytes;
  ++generation_;
  use_fact(node, name, ++uses_);
  return true;
}

void TextStore::put_pieces(std::string_view owner, std::span<const Token> text, std::size_t first,
                           const std::string& name, std::span<const LayerBytesPtr> pieces) {
  const auto nodes = chain(owner, text);
  if (nodes.size() < first) return;
  for (std::size_t i = std::min(pieces.size(), nodes.size() - first); i-- > 0;)
    add_fact(*nodes[first + i], name, pieces[i]);
}

}  // namespace winnow::engine
