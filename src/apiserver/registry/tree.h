/// The tree of one stored state of an object.
///
/// After a start it is made of the text when somebody first looks at it: most objects of a large
/// store are only ever sent. May be read on any thread, also the first time.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "json/packed.h"

namespace muster::apiserver {

class Tree {
 public:
  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() { delete made_.load(); }

  /// Once, before anybody else knows of it; either the tree or what it is to be made of.
  void set(json::Packed tree) { made_ = new json::Packed(std::move(tree)); }
  void set_text(std::shared_ptr<const std::string> text, std::shared_ptr<json::Packer> packer);

  [[nodiscard]] const json::Value& value() const {
    const json::Packed* made = made_.load(std::memory_order_acquire);
    return made != nullptr ? made->value() : make();
  }
  operator const json::Value&() const { return value(); }

 private:
  const json::Value& make() const;

  mutable std::atomic<const json::Packed*> made_ = nullptr;
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<json::Packer> packer_;
};

}  // namespace muster::apiserver
