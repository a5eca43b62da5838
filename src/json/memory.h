/// Memory for trees that go together: those of one request, say.
///
/// It is taken in blocks and given back as a whole, so making a tree costs a fraction of what
/// hundreds of small allocations do, and taking it apart costs nothing. Trees made with it must not
/// be looked at after it is gone; they may be destroyed then. A copy of a tree allocates as the tree
/// does: what is to stay is assigned to a value of its own, or made with other memory.
#pragma once

#include <memory>

#include "json/json.h"

namespace muster::json {

/// What a value allocates with; by default the heap.
using Storage = boost::json::storage_ptr;

class Memory {
 public:
  /// What a value is made with: `Value copy(other, memory.storage())`.
  [[nodiscard]] Storage storage() {
    if (!blocks_) blocks_ = std::make_unique<boost::json::monotonic_resource>(kFirstBlock);
    return blocks_.get();
  }

 private:
  /// Enough for the tree of a small pod.
  static constexpr std::size_t kFirstBlock = 8 * 1024;
  std::unique_ptr<boost::json::monotonic_resource> blocks_;
};

/// Memory that goes with the last tree made with it, for trees that are handed on to somebody who
/// may keep them. Copies that name no other memory are made in it, by one thread at a time.
inline Storage shared_memory() {
  return boost::json::make_shared_resource<boost::json::monotonic_resource>();
}

/// parse() of json.h into other memory.
Result<Value> parse(std::string_view text,
                    std::vector<std::string>* duplicate_keys,
                    Storage storage);

/// `target` becomes `source` with the memory it lies in. An assignment would copy it.
inline void replace(Value& target, Value&& source) {
  std::destroy_at(&target);
  std::construct_at(&target, std::move(source));
}

}  // namespace muster::json
