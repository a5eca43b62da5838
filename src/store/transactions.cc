#include "store/transactions.h"

#include <fmt/core.h>

#include "base/log.h"

namespace muster::store {
namespace {

constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history(revision INTEGER PRIMARY KEY, key TEXT NOT NULL, deleted INTEGER NOT NULL, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS live(key TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES('revision', 0);
INSERT OR IGNORE INTO meta VALUES('compacted', 0);
INSERT OR IGNORE INTO meta VALUES('open', 0);
)";

/// Rewrites the file with what format 2 has. A disk without room for it is no reason not to start:
/// what reads and writes format 2 reads and writes 1, and the next start tries again.
Result<void> upgrade(Database& database, const std::string& path) {
  for (const char* sql : {"PRAGMA auto_vacuum = INCREMENTAL", "VACUUM"}) {
    auto done = database.run(sql);
    if (!done && is_full_disk(done.error())) {
      log::warn("store", "\"{}\" stays at format 1: {}", path, done.error().message);
      return {};
    }
    if (!done) return done;
  }
  log::info("store", "\"{}\" has format {} now", path, kFormat);
  return database.run(fmt::format("PRAGMA user_version = {}", kFormat));
}

}  // namespace

Result<void> prepare_schema(Database& database, const std::string& path) {
  const auto format = database.query_integer("PRAGMA user_version", 0);
  if (!format) return fail(format.error());
  if (*format > kFormat)
    return fail(
        Code::kInvalid,
        fmt::format("store: \"{}\" has format {}, and this program knows formats up to {}: "
                    "start it with the newer muster that wrote it, or restore a backup that "
                    "was made before",
                    path,
                    *format,
                    kFormat));
  // The order matters: a file that has a page keeps the auto_vacuum it was made with.
  std::vector<std::string> steps;
  if (*format == 0) steps.emplace_back("PRAGMA auto_vacuum = INCREMENTAL");
  steps.insert(steps.end(),
               {"PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA cache_size = -16000",
                "PRAGMA journal_size_limit = 67108864",
                kSchema});
  if (*format == 0) steps.push_back(fmt::format("PRAGMA user_version = {}", kFormat));
  for (const std::string& sql : steps) {
    auto done = database.run(sql);
    if (!done) return done;
  }
  return *format == 1 ? upgrade(database, path) : Result<void>();
}

Result<void> Transactions::prepare(Database& database) {
  const auto make = [&](Statement& statement, std::string_view sql) -> Result<void> {
    auto made = database.prepare(sql);
    if (!made) return tl::unexpected(std::move(made.error()));
    statement = std::move(*made);
    return {};
  };
  const std::pair<Statement*, std::string_view> all[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&insert_, "INSERT INTO history(revision, key, deleted, value) VALUES(?1, ?2, ?3, ?4)"},
      {&find_, "SELECT revision FROM live WHERE key = ?1"},
      {&point_,
       "INSERT INTO live(key, revision) VALUES(?1, ?2) ON CONFLICT(key) DO UPDATE SET revision = ?2"},
      {&unpoint_, "DELETE FROM live WHERE key = ?1"},
      {&forget_, "DELETE FROM history WHERE revision = ?1"},
      {&meta_, "UPDATE meta SET value = ?2 WHERE name = ?1"},
      {&compact_,
       "DELETE FROM history WHERE revision > ?1 AND revision <= ?2 AND NOT EXISTS "
       "(SELECT 1 FROM live WHERE live.key = history.key AND live.revision = history.revision)"},
  };
  for (const auto& [statement, sql] : all) {
    auto made = make(*statement, sql);
    if (!made) return made;
  }
  return {};
}

Result<void> Transactions::commit(const std::vector<Write>& writes,
                                  std::int64_t compacted,
                                  bool thin) {
  return in_transaction([&]() -> Result<void> {
    Revision last = 0;
    for (const auto& write : writes) {
      if (write.failure) continue;
      auto written = put(write, compacted, thin);
      if (!written) return written;
      last = write.revision;
    }
    if (last == 0) return {};
    return set_meta("revision", static_cast<std::int64_t>(last));
  });
}

Result<void> Transactions::compact(std::int64_t after, std::int64_t upto) {
  return in_transaction([&]() -> Result<void> {
    auto deleted = compact_.bind(1, after).bind(2, upto).run();
    if (!deleted) return deleted;
    return set_meta("compacted", upto);
  });
}

Result<void> Transactions::set_open(bool open) {
  return in_transaction([&] { return set_meta("open", open ? 1 : 0); });
}

template <typename Body>
Result<void> Transactions::in_transaction(Body body) {
  auto begun = begin_.run();
  if (!begun) return begun;
  auto done = body();
  if (done) done = commit_.run();
  if (!done) {
    const auto undone = rollback_.run();
    (void)undone;  // the first error is the one to tell
  }
  return done;
}

Result<void> Transactions::put(const Write& write, std::int64_t compacted, bool thin) {
  const bool deleted = write.kind == Kind::kDelete;
  thin = thin && deleted;
  std::int64_t superseded = 0;
  if (compacted > 0 || thin) {  // before the first compaction no row is one to forget
    auto found = find_.bind(1, std::string_view(write.key)).step();
    superseded = found && *found ? find_.integer(0) : 0;
    find_.reset();
    if (!found) return tl::unexpected(std::move(found.error()));
  }
  const auto revision = static_cast<std::int64_t>(write.revision);
  auto done = insert_.bind(1, revision)
                  .bind(2, std::string_view(write.key))
                  .bind(3, deleted ? 1 : 0)
                  .bind_blob(4, thin ? std::string_view() : std::string_view(*write.value))
                  .run();
  if (!done) return done;
  if (deleted) {
    done = unpoint_.bind(1, std::string_view(write.key)).run();
  } else {
    done = point_.bind(1, std::string_view(write.key)).bind(2, revision).run();
  }
  if (!done) return done;
  if (superseded > 0 && (thin || superseded <= compacted)) done = forget_.bind(1, superseded).run();
  return done;
}

Result<void> Transactions::set_meta(std::string_view name, std::int64_t value) {
  return meta_.bind(1, name).bind(2, value).run();
}

}  // namespace muster::store
