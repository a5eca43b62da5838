#include "store/rewrite.h"

#include <filesystem>
#include <vector>

#include "store/sqlite.h"

namespace muster::store {
namespace {

struct Changed {
  std::int64_t revision = 0;
  std::string value;
};

Result<std::vector<Changed>> collect(Database& database,
                                     const std::string& prefix,
                                     const Rewrite& change) {
  auto select = database.prepare(
      "SELECT revision, key, value FROM history WHERE substr(key, 1, ?1) = ?2 ORDER BY revision");
  if (!select) return fail(select.error());
  select->bind(1, static_cast<std::int64_t>(prefix.size())).bind(2, prefix);
  std::vector<Changed> out;
  while (true) {
    const auto row = select->step();
    if (!row) return fail(row.error());
    if (!*row) return out;
    auto made = change(select->bytes(1), select->bytes(2));
    if (!made) return fail(made.error());
    if (*made) out.push_back({select->integer(0), std::move(**made)});
  }
}

Result<void> apply_all(Database& database, const std::vector<Changed>& changes) {
  auto update = database.prepare("UPDATE history SET value = ?2 WHERE revision = ?1");
  if (!update) return fail(update.error());
  for (const Changed& each : changes) {
    update->bind(1, each.revision).bind_blob(2, each.value);
    const auto done = update->run();
    if (!done) return done;
  }
  return {};
}

}  // namespace

Result<std::size_t> rewrite(const std::string& path,
                            const std::string& prefix,
                            const Rewrite& change) {
  if (!std::filesystem::exists(path)) return std::size_t{0};
  auto database = Database::open(path, false);
  if (!database) return fail(database.error());
  const auto table =
      database->query_integer("SELECT 1 FROM sqlite_master WHERE name = 'history'", 0);
  if (!table) return fail(table.error());
  if (*table == 0) return std::size_t{0};
  auto begun = database->run("BEGIN IMMEDIATE");
  if (!begun) return fail(begun.error());
  auto changes = collect(*database, prefix, change);
  Result<void> done;
  if (changes) done = apply_all(*database, *changes);
  const auto ended = database->run(changes && done ? "COMMIT" : "ROLLBACK");
  if (!changes) return fail(changes.error());
  if (!done) return fail(done.error());
  if (!ended) return fail(ended.error());
  if (changes->empty()) return std::size_t{0};
  for (const char* sql : {"VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"}) {
    const auto cleaned = database->run(sql);
    if (!cleaned) return fail(cleaned.error());
  }
  return changes->size();
}

}  // namespace muster::store
