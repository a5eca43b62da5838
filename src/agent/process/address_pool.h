/// Pod addresses, handed out round robin: an address is used again as late as possible, because the
/// kernel takes its time with the interface that had it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace muster::agent::process {

class AddressPool {
 public:
  AddressPool() = default;
  AddressPool(std::uint32_t first, std::uint32_t last) : AddressPool(first, last, first) {}
  /// Begins with `next`.
  AddressPool(std::uint32_t first, std::uint32_t last, std::uint32_t next)
      : first_(first), last_(last), next_(next) {}

  std::optional<std::uint32_t> take() {
    if (last_ < first_ || used_.size() > last_ - first_) return std::nullopt;
    while (used_.contains(next_)) advance();
    const auto address = next_;
    used_.insert(address);
    advance();
    return address;
  }
  void reserve(std::uint32_t address) {
    used_.insert(address);
    if (address >= next_ && address < last_) next_ = address + 1;
  }
  void give_back(std::uint32_t address) { used_.erase(address); }

 private:
  void advance() { next_ = next_ == last_ ? first_ : next_ + 1; }
  std::uint32_t first_ = 1, last_ = 0, next_ = 1;
  std::set<std::uint32_t> used_;
};

}  // namespace muster::agent::process
