/// What is written to the database, each in a transaction of its own: all of it or nothing.
///
/// Every version of every object is one row of `history`, written once; `live` points from a key to
/// its newest row. A write is one row and one pointer, so the bytes of an object go to the disk
/// once (plus WAL).
///
///   history(revision 7, "/pods/default/a", value, deleted 0)     live("/pods/default/a" -> 7)
///
/// Compaction forgets rows that no key points to. It walks forward once: a row at or before the
/// compacted revision is always live, and a write that supersedes such a row deletes it on the
/// spot.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/sqlite.h"
#include "store/store.h"

namespace muster::store {

/// 2: free pages can be given back to the disk (auto_vacuum).
inline constexpr std::int64_t kFormat = 2;

/// One write on its way to the disk.
struct Write {
  std::string key;
  Store::MakeValue make;
  Bytes value;  // what it made
  Revision revision = 0;
  Kind kind = Kind::kPut;
  std::optional<Error> failure;  // why it is not written
  std::function<void(Result<void>)> done;
};

/// Makes the tables, or brings those of an earlier format up to this one. Invalid: a later one.
Result<void> prepare_schema(Database& database, const std::string& path);

class Transactions {
 public:
  Result<void> prepare(Database& database);
  /// Those that have not failed already. `thin`: a deletion keeps nothing of what it deletes, so
  /// that it needs next to no room; changes across it cannot be told afterwards.
  Result<void> commit(const std::vector<Write>& writes, std::int64_t compacted, bool thin);
  Result<void> compact(std::int64_t after, std::int64_t upto);
  /// Whether somebody has the store open.
  Result<void> set_open(bool open);

 private:
  template <typename Body>
  Result<void> in_transaction(Body body);
  Result<void> put(const Write& write, std::int64_t compacted, bool thin);
  Result<void> set_meta(std::string_view name, std::int64_t value);

  Statement begin_, commit_, rollback_, insert_, find_, point_, unpoint_, forget_, meta_, compact_;
};

}  // namespace muster::store
