/// Amounts of resources. Outside the engine they are named lists; inside, short vectors over a
/// dense index.
///
/// Units: cpu in milli-cores, memory in bytes, everything else in units. Inside the engine the
/// device resource (GPUs) is counted in thousandths, so that a share of one device and whole
/// devices add up.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

struct Amount {
  std::string name;        ///< "cpu", "memory", "nvidia.com/gpu" …
  std::int64_t value = 0;  ///< cpu: milli-cores; memory: bytes; others: units.

  auto operator<=>(const Amount&) const = default;
};
using ResourceList = std::vector<Amount>;  ///< Any order; a name twice adds up.

/// Dense vector of amounts. Zero and absent are the same thing; where "absent" means "no limit" (a
/// queue's capability), the owner keeps a mask beside it.
class ResourceVector {
 public:
  /// Names beyond this many are refused by the interner; only what pods, gangs and queues ask for
  /// is interned.
  static constexpr std::size_t kMax = 20;

  std::int64_t operator[](std::size_t i) const { return i < size_ ? v_[i] : 0; }
  void set(std::size_t i, std::int64_t amount) {
    grow(i + 1);
    v_[i] = amount;
  }
  void add(std::size_t i, std::int64_t amount) { set(i, (*this)[i] + amount); }
  [[nodiscard]] std::size_t size() const { return size_; }

  ResourceVector& operator+=(const ResourceVector& o) {
    grow(o.size_);
    for (std::size_t i = 0; i < o.size_; ++i) v_[i] += o.v_[i];
    return *this;
  }
  ResourceVector& operator-=(const ResourceVector& o) {
    grow(o.size_);
    for (std::size_t i = 0; i < o.size_; ++i) v_[i] -= o.v_[i];
    return *this;
  }
  friend ResourceVector operator+(ResourceVector a, const ResourceVector& b) { return a += b; }
  friend ResourceVector operator-(ResourceVector a, const ResourceVector& b) { return a -= b; }
  ResourceVector& scale(std::int64_t k) {
    for (std::size_t i = 0; i < size_; ++i) v_[i] *= k;
    return *this;
  }

  /// True when each amount asked for (> 0) is there.
  [[nodiscard]] bool fits_in(const ResourceVector& free) const {
    for (std::size_t i = 0; i < size_; ++i) {
      if (v_[i] > 0 && v_[i] > free[i]) return false;
    }
    return true;
  }
  /// True when every amount is <= the other's, whether asked for or not.
  [[nodiscard]] bool all_le(const ResourceVector& o) const {
    const std::size_t n = std::max(size_, o.size_);
    for (std::size_t i = 0; i < n; ++i) {
      if ((*this)[i] > o[i]) return false;
    }
    return true;
  }
  [[nodiscard]] bool is_zero() const {
    return std::all_of(
        v_.begin(), v_.begin() + static_cast<std::ptrdiff_t>(size_), [](auto x) { return x == 0; });
  }
  bool operator==(const ResourceVector& o) const {
    const std::size_t n = std::max(size_, o.size_);
    for (std::size_t i = 0; i < n; ++i) {
      if ((*this)[i] != o[i]) return false;
    }
    return true;
  }

 private:
  void grow(std::size_t n) {
    while (size_ < n) v_[size_++] = 0;
  }

  std::uint32_t size_ = 0;  ///< v_[i] for i >= size_ is not initialised and counts as 0.
  std::array<std::int64_t, kMax> v_;
};

/// Names <-> dense indexes. cpu, memory, pods and the device resource come first, always.
class ResourceNames {
 public:
  static constexpr std::size_t kCpu = 0;
  static constexpr std::size_t kMemory = 1;
  static constexpr std::size_t kPods = 2;
  static constexpr std::size_t kDevice = 3;
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit ResourceNames(std::string device_resource);

  /// kNone when unknown.
  [[nodiscard]] std::size_t find(std::string_view name) const;
  /// kNone when the table is full.
  std::size_t intern(std::string_view name);
  [[nodiscard]] const std::string& name(std::size_t i) const { return names_[i]; }
  [[nodiscard]] std::size_t size() const { return names_.size(); }
  /// Inner amount of one outer unit: 1000 for the device resource, 1 otherwise.
  [[nodiscard]] std::int64_t factor(std::size_t i) const { return i == kDevice ? 1000 : 1; }

 private:
  std::vector<std::string>
      names_;  ///< At most ResourceVector::kMax, so a scan is the quickest lookup.
};

}  // namespace muster::engine
