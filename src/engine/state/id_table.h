/// From names to ids, in one flat table: a part of the name's hash and the id. The name itself is
/// looked up where the id leads, so that a name is kept once and a copy of the table is one block of
/// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace muster::engine {

template <typename Id>
class IdTable {
 public:
  /// A name that is looked up in several tables, or inserted after it was not found, is hashed once.
  static std::uint32_t hash(std::string_view name) {
    const std::uint64_t h = std::hash<std::string_view>{}(name);
    return static_cast<std::uint32_t>(h ^ (h >> 32));
  }

  /// Invalid: nobody is called so. `name_of(id)` is the name of one that was inserted.
  template <typename NameOf>
  [[nodiscard]] Id find(std::string_view name, std::uint32_t hash, NameOf&& name_of) const {
    if (slots_.empty()) return {};
    for (std::size_t at = hash & mask(); slots_[at].id.valid(); at = next(at)) {
      if (slots_[at].hash == hash && std::string_view(name_of(slots_[at].id)) == name)
        return slots_[at].id;
    }
    return {};
  }

  /// One that is not there yet.
  void insert(std::uint32_t hash, Id id) {
    if ((count_ + 1) * 4 > slots_.size() * 3) grow();
    put({hash, id});
    ++count_;
  }

  /// One that was inserted with that hash, if it is there.
  void erase(std::uint32_t hash, Id id) {
    if (slots_.empty()) return;
    std::size_t hole = hash & mask();
    while (slots_[hole].id.valid() && slots_[hole].id != id) hole = next(hole);
    if (!slots_[hole].id.valid()) return;
    --count_;
    // Those behind it move up, unless they would stand before where they belong.
    for (std::size_t at = next(hole); slots_[at].id.valid(); at = next(at)) {
      const std::size_t home = slots_[at].hash & mask();
      if (((at - home) & mask()) < ((at - hole) & mask())) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = {};
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    Id id;  ///< Invalid: empty.
  };
  [[nodiscard]] std::size_t mask() const { return slots_.size() - 1; }
  [[nodiscard]] std::size_t next(std::size_t at) const { return (at + 1) & mask(); }

  void put(Slot slot) {
    std::size_t at = slot.hash & mask();
    while (slots_[at].id.valid()) at = next(at);
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 16 : old.size() * 2, Slot{});
    for (const Slot& slot : old) {
      if (slot.id.valid()) put(slot);
    }
  }

  std::vector<Slot> slots_;  ///< A power of two, a quarter of them empty at least.
  std::size_t count_ = 0;
};

}  // namespace muster::engine
