#include "apiserver/audit/block.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace muster::apiserver::audit {
namespace {

/// Lines of an idle server; those of a busy one are in pages of this size.
constexpr std::size_t kSmall = 64 << 10, kLargePage = 2 << 20;

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

Block::~Block() {
  if (memory_ != nullptr) ::munmap(memory_, capacity_);
}

void Block::grow(std::size_t bytes) {
  bytes = std::max(bytes, 2 * capacity_);
  const bool large = bytes > 4 * kSmall;
  bytes = rounded(bytes, large ? kLargePage : kSmall);
  void* made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  if (large) ::madvise(made, bytes, MADV_HUGEPAGE);  // if the machine has any
  if (size_ > 0) std::memcpy(made, memory_, size_);
  if (memory_ != nullptr) ::munmap(memory_, capacity_);
  memory_ = static_cast<char*>(made);
  capacity_ = bytes;
}

void Block::lengthen(std::size_t bytes) {
  if (bytes == 0 || size_ == 0) return;
  reserve(size_ + bytes);
  char* end = memory_ + size_ - 1;
  std::memset(end, ' ', bytes);
  end[bytes] = '\n';
  size_ += bytes;
}

}  // namespace muster::apiserver::audit
