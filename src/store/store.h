/// Revisioned records and their history, durable in SQLite.
///
/// A write is durable (WAL, synchronous=FULL) before its callback runs; concurrent writes share a
/// commit. Revisions are handed out in call order, strictly increasing, and are never reused, also
/// not after kill -9. All methods are called on the loop; one writer thread does the SQL. The store
/// knows nothing of JSON: values are bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"

namespace muster::store {

using Revision = std::uint64_t;
using Bytes = std::shared_ptr<const std::string>;

struct Record {
  std::string key;  // "/pods/default/web-0"
  Bytes value;
  Revision revision = 0;
};

struct Change {
  Revision revision = 0;
  std::string key;
  /// What it became; for a deletion the last state, with the deletion's revision inside.
  Bytes value;
  bool deleted = false;
};

/// A full disk is ServiceUnavailable with this as the reason of its cause; over HTTP it is 507.
inline constexpr std::string_view kInsufficientStorage = "InsufficientStorage";
bool is_full_disk(const Error& error);

/// What a write means for the room that the store takes: when the disk is full, only what makes room
/// is written.
enum class Kind : std::uint8_t {
  kPut,
  kPutToDelete,  // a state on the way to a deletion: marked as deleted, a finalizer less
  kDelete,
};

class Store {
 public:
  virtual ~Store() = default;

  /// Why writes are refused now, for people; empty: they are not.
  [[nodiscard]] virtual std::string trouble() const = 0;
  /// The error after which nothing is written any more; null: none. From then on a restart may find
  /// what was answered as failed, so nobody may be told that something is as they want it to be.
  [[nodiscard]] virtual const Error* failure() const = 0;

  /// The last durable revision.
  [[nodiscard]] virtual Revision revision() const = 0;
  /// Changes at or before this revision are forgotten.
  [[nodiscard]] virtual Revision compacted() const = 0;

  /// The revision the next write() will get: values carry it inside (resourceVersion).
  [[nodiscard]] virtual Revision next_revision() const = 0;
  /// Queues one write under next_revision() and returns that revision. `done` runs on the loop once
  /// it is durable or has failed. Callbacks run in revision order.
  ///
  /// A full disk fails it (is_full_disk): then only deletions are written, with room that
  /// is kept back for them, until there is room again. After any other I/O error every later write
  /// fails, and the store must be reopened.
  Revision write(std::string key,
                 Bytes value,
                 bool deleted,
                 std::function<void(Result<void>)> done) {
    return write(std::move(key),
                 MakeValue([value = std::move(value)] { return value; }),
                 deleted ? Kind::kDelete : Kind::kPut,
                 std::move(done));
  }
  /// The same with a value that is made on the writer's thread, which has time where the loop has
  /// none. Called once, or never when the write fails.
  using MakeValue = std::function<Bytes()>;
  virtual Revision write(std::string key,
                         MakeValue make,
                         Kind kind,
                         std::function<void(Result<void>)> done) = 0;

  /// All live records in key order, for building the in-memory image at start.
  virtual Result<void> load(const std::function<void(Record)>& each) = 0;
  /// Changes after `revision` in order, for watches that resume across a restart. Expired if
  /// compacted.
  virtual Result<std::vector<Change>> changes_after(Revision revision, std::size_t limit) = 0;
  /// Forgets history at or before `revision`; runs in the background.
  virtual void compact(Revision revision) = 0;

  /// Waits for queued writes and closes.
  virtual Task<void> close() = 0;
};

struct OpenOptions {
  /// SQLite's layer over files; empty: the usual one, with locks and room kept back beside the file.
  std::string vfs;
  /// False: SQL is done on the loop, between other things; for a simulation, which has one thread.
  bool own_thread = true;
};

/// `path` is a file; its folder must exist. ":memory:" keeps nothing (tests).
Result<std::unique_ptr<Store>> open(Env& env, const std::string& path, OpenOptions options = {});

}  // namespace muster::store
