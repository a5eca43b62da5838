/// One stored state of an object: its tree and its text, of which at least one is in memory.
///
/// After a start the tree is made of the text when somebody first looks at it: most objects of a
/// large store are only ever sent. And where there are many objects, the text of one that has a tree
/// is given up, and made of the tree for whoever wants to send it. May be read on any thread, also
/// the first time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "json/packed.h"

namespace muster::apiserver {

class Tree {
 public:
  using Text = std::shared_ptr<const std::string>;

  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { delete made_.load(); }

  /// Once, before anybody else knows of it: both, or what the tree is to be made of.
  void set(json::Packed tree, Text text);
  enum class Keep : std::uint8_t { kBoth, kOne };  // kOne: once there is a tree, it alone
  void set_text(Text text, std::shared_ptr<json::Packer> packer, Keep keep = Keep::kBoth);

  [[nodiscard]] const json::Value& value() const {
    const json::Packed* made = made_.load(std::memory_order_acquire);
    return made != nullptr ? made->value() : make();
  }
  operator const json::Value&() const { return value(); }

  /// The object as JSON, kind and apiVersion first.
  [[nodiscard]] Text text() const;
  /// The same if it is in memory, else null.
  [[nodiscard]] Text find_text() const { return text_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t text_size() const { return text_size_; }
  [[nodiscard]] bool has_tree() const { return made_.load(std::memory_order_acquire) != nullptr; }
  /// Gives the text up; nothing happens where there is no tree.
  void drop_text() const;

 private:
  const json::Value& make() const;

  mutable std::atomic<const json::Packed*> made_ = nullptr;
  mutable std::atomic<Text> text_;
  std::uint32_t text_size_ = 0;
  Keep keep_ = Keep::kBoth;
  std::shared_ptr<json::Packer> packer_;
};

}  // namespace muster::apiserver
