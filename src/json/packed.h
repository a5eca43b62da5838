/// Trees that nobody changes any more, in as little memory as they can have.
///
/// A tree is hundreds of small allocations, and most of what thousands of pods say is the same in
/// all of them. A packed tree is one piece of memory, and parts that were met before (a toleration,
/// a condition of the same second, the set of fields somebody manages) are there once for all trees
/// that have them. It reads as any other tree, and copies of it are ordinary trees.
///
/// A Packer may be used, and Packed may be destroyed, on any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "json/json.h"

namespace muster::json {

namespace packing {
class Table;
struct Piece;
}  // namespace packing

/// One tree. It holds what it needs: it may outlive its Packer.
class Packed {
 public:
  Packed() = default;
  Packed(Packed&& other) noexcept
      : table_(std::move(other.table_)), root_(std::exchange(other.root_, nullptr)) {}
  Packed& operator=(Packed&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(root_, other.root_);
    return *this;
  }
  ~Packed();

  /// Null where nothing was packed.
  [[nodiscard]] const Value& value() const;
  // Reads as any other tree.
  operator const Value&() const { return value(); }

 private:
  friend class Packer;
  std::shared_ptr<packing::Table> table_;
  packing::Piece* root_ = nullptr;
};

class Packer {
 public:
  Packer();

  /// The same tree, to the order of its members.
  Packed pack(const Value& value);

  struct Counts {
    std::size_t trees = 0;      // packed, and still there
    std::size_t parts = 0;      // that several trees have in common, or had
    std::size_t bytes = 0;      // of all of them
    std::size_t misjudged = 0;  // pieces that needed more memory than was foreseen
  };
  [[nodiscard]] Counts counts() const;

 private:
  std::shared_ptr<packing::Table> table_;
};

}  // namespace muster::json
