/// Room on the disk that is kept back: a file of zeros beside the database. When the disk is full
/// the file is emptied, and what it took is there for deletions, which need room before they give
/// any. Used by the store's writer alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace muster::store {

class Reserve {
 public:
  virtual ~Reserve() = default;
  /// Takes the room, and leaves half as much to others; false: the disk has not so much.
  virtual bool hold() = 0;
  virtual void release() = 0;
};

/// 32 MiB; on a small disk less, but no less than what the database may grow by at once.
std::unique_ptr<Reserve> make_reserve(std::string path);

}  // namespace muster::store
