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
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
///
/// One cache line. There are vectors of every node and gang, and few clusters name more than six
/// resources; where one does, the amounts are in a block of their own.
class ResourceVector {
 public:
  /// Names beyond this many are refused by the interner; only what pods, gangs and queues ask for
  /// is interned.
  static constexpr std::size_t kMax = 20;

  ResourceVector() = default;
  ResourceVector(const ResourceVector& o) : size_(o.size_) {
    few_ = o.few_;
    if (o.many_) many_ = std::make_unique<Many>(*o.many_);
  }
  ResourceVector(ResourceVector&& o) noexcept
      : size_(std::exchange(o.size_, 0)), few_(o.few_), many_(std::move(o.many_)) {}
  ResourceVector& operator=(const ResourceVector& o) {
    if (o.many_ || many_) return *this = ResourceVector(o);
    size_ = o.size_;
    few_ = o.few_;
    return *this;
  }
  ResourceVector& operator=(ResourceVector&& o) noexcept {
    size_ = std::exchange(o.size_, 0);
    few_ = o.few_;
    many_ = std::move(o.many_);
    return *this;
  }

  std::int64_t operator[](std::size_t i) const { return i < size_ ? data()[i] : 0; }
  void set(std::size_t i, std::int64_t amount) {
    grow(i + 1);
    data()[i] = amount;
  }
  void add(std::size_t i, std::int64_t amount) { set(i, (*this)[i] + amount); }
  [[nodiscard]] std::size_t size() const { return size_; }

  ResourceVector& operator+=(const ResourceVector& o) {
    grow(o.size_);
    std::int64_t* const mine = data();
    const std::int64_t* const theirs = o.data();
    for (std::size_t i = 0; i < o.size_; ++i) mine[i] += theirs[i];
    return *this;
  }
  ResourceVector& operator-=(const ResourceVector& o) {
    grow(o.size_);
    std::int64_t* const mine = data();
    const std::int64_t* const theirs = o.data();
    for (std::size_t i = 0; i < o.size_; ++i) mine[i] -= theirs[i];
    return *this;
  }
  friend ResourceVector operator+(ResourceVector a, const ResourceVector& b) { return a += b; }
  friend ResourceVector operator-(ResourceVector a, const ResourceVector& b) { return a -= b; }
  ResourceVector& scale(std::int64_t k) {
    std::int64_t* const mine = data();
    for (std::size_t i = 0; i < size_; ++i) mine[i] *= k;
    return *this;
  }

  /// True when each amount asked for (> 0) is there.
  [[nodiscard]] bool fits_in(const ResourceVector& free) const {
    const std::int64_t* const mine = data();
    for (std::size_t i = 0; i < size_; ++i) {
      if (mine[i] > 0 && mine[i] > free[i]) return false;
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
    return std::all_of(data(), data() + size_, [](auto x) { return x == 0; });
  }
  bool operator==(const ResourceVector& o) const {
    const std::size_t n = std::max(size_, o.size_);
    for (std::size_t i = 0; i < n; ++i) {
      if ((*this)[i] != o[i]) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kFew = 6;
  using Many = std::array<std::int64_t, kMax>;

  [[nodiscard]] const std::int64_t* data() const { return many_ ? many_->data() : few_.data(); }
  [[nodiscard]] std::int64_t* data() { return many_ ? many_->data() : few_.data(); }
  void grow(std::size_t n) {
    if (n <= size_) return;
    if (n > kFew && !many_) {
      many_ = std::make_unique<Many>();
      std::copy(few_.begin(), few_.begin() + size_, many_->begin());
    }
    std::fill(data() + size_, data() + n, 0);
    size_ = static_cast<std::uint32_t>(n);
  }

  std::uint32_t size_ = 0;  ///< What stands behind so many counts as 0.
  std::array<std::int64_t, kFew> few_{};
  std::unique_ptr<Many> many_;  ///< Instead, once there were more.
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
  /// At most ResourceVector::kMax, so a scan is the quickest lookup.
  std::vector<std::string> names_;
};

}  // namespace muster::engine
