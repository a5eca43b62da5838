#include "store/backup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "store/sqlite.h"
#include "store/transactions.h"

namespace muster::store {
namespace {

namespace fs = std::filesystem;

/// "Mstr", in the header of the file: what `file` shows and restore() looks for.
constexpr std::int64_t kMark = 0x4d737472;
constexpr std::int64_t kBackupFormat = 1;

constexpr const char* kTables = R"(
CREATE TABLE meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE record(key TEXT PRIMARY KEY, revision INTEGER NOT NULL, value BLOB NOT NULL);
CREATE TABLE file(name TEXT PRIMARY KEY, bytes BLOB NOT NULL);
)";

Result<void> run_all(Database& database, const std::vector<std::string>& steps) {
  for (const std::string& sql : steps) {
    auto done = database.run(sql);
    if (!done) return done;
  }
  return {};
}

/// Rows of one query become rows of one insert, of text, integer and blob columns as named by
/// `columns`: "tib". How many there were.
Result<std::size_t> copy_rows(Statement& from, Statement& to, std::string_view columns) {
  for (std::size_t count = 0;; ++count) {
    auto row = from.step();
    if (!row) return fail(row.error());
    if (!*row) return count;
    for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
      if (columns[static_cast<std::size_t>(i)] == 'i')
        to.bind(i + 1, from.integer(i));
      else if (columns[static_cast<std::size_t>(i)] == 't')
        to.bind(i + 1, from.bytes(i));
      else
        to.bind_blob(i + 1, from.bytes(i));
    }
    const auto done = to.run();
    if (!done) return fail(done.error());
  }
}

Result<std::size_t> copy_rows(Database& from,
                              std::string_view query,
                              Database& to,
                              std::string_view insert,
                              std::string_view columns) {
  auto source = from.prepare(query);
  if (!source) return fail(source.error());
  auto target = to.prepare(insert);
  if (!target) return fail(target.error());
  return copy_rows(*source, *target, columns);
}

Result<void> make_durable(const std::string& path) {
  for (const fs::path& each : {fs::path(path), fs::absolute(path).parent_path()}) {
    const int file = ::open(each.c_str(), O_RDONLY | O_CLOEXEC);
    const bool done = file >= 0 && ::fsync(file) == 0;
    const int error = errno;
    if (file >= 0) ::close(file);
    if (!done)
      return fail(Code::kInternal,
                  fmt::format("cannot write \"{}\": {}", each.string(), std::strerror(error)));
  }
  return {};
}

/// A file under another name until it is whole; removed with what SQLite puts beside it if it never
/// becomes so.
class Partial {
 public:
  explicit Partial(std::string path) : path_(std::move(path)), name_(path_ + ".partial") {
    remove();
  }
  ~Partial() { remove(); }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// The database is closed.
  Result<void> finish() {
    auto kept = make_durable(name_);
    if (!kept) return kept;
    if (::link(name_.c_str(), path_.c_str()) != 0)
      return fail(Code::kInternal,
                  fmt::format("cannot make \"{}\": {}", path_, std::strerror(errno)));
    return make_durable(path_);
  }

 private:
  void remove() const {
    for (const char* suffix : {"", "-journal", "-wal", "-shm"}) ::unlink((name_ + suffix).c_str());
  }
  std::string path_, name_;
};

Result<Database> open_store(const std::string& path) {
  if (!fs::exists(path))
    return fail(Code::kNotFound, fmt::format("there is no cluster: \"{}\" does not exist", path));
  auto database = Database::open(path, /*read_only=*/false);
  if (!database) return database;
  const auto format = database->query_integer("PRAGMA user_version", 0);
  if (!format) return fail(format.error());
  if (*format < 1 || *format > kFormat)
    return fail(Code::kInvalid,
                fmt::format("\"{}\" has format {}, and this program knows formats 1 to {}",
                            path,
                            *format,
                            kFormat));
  return database;
}

Result<Backup> copy_out(Database& from, Database& to, std::vector<SmallFile> files) {
  // One read transaction: what is written meanwhile is not seen.
  auto begun = from.run("BEGIN");
  if (begun)
    begun = run_all(to,
                    {fmt::format("PRAGMA application_id = {}", kMark),
                     fmt::format("PRAGMA user_version = {}", kBackupFormat),
                     "BEGIN",
                     kTables});
  if (!begun) return fail(begun.error());
  Backup made;
  const auto records = copy_rows(
      from,
      "SELECT live.key, live.revision, history.value FROM live JOIN history ON history.revision = live.revision ORDER BY live.key",
      to,
      "INSERT INTO record(key, revision, value) VALUES(?1, ?2, ?3)",
      "tib");
  if (!records) return fail(records.error());
  const auto revision = from.query_integer("SELECT value FROM meta WHERE name = 'revision'", 0);
  if (!revision) return fail(revision.error());
  auto insert = to.prepare("INSERT INTO file(name, bytes) VALUES(?1, ?2)");
  if (!insert) return fail(insert.error());
  for (const SmallFile& file : files) {
    const auto done = insert->bind(1, std::string_view(file.name)).bind_blob(2, file.bytes).run();
    if (!done) return fail(done.error());
  }
  const auto ended =
      run_all(to, {fmt::format("INSERT INTO meta VALUES('revision', {})", *revision), "COMMIT"});
  if (!ended) return fail(ended.error());
  made.records = *records;
  made.revision = static_cast<Revision>(*revision);
  made.files = std::move(files);
  return made;
}

/// A copy that is what it says and whole.
Result<Database> open_backup(const std::string& path) {
  if (!fs::exists(path)) return fail(Code::kNotFound, fmt::format("\"{}\" does not exist", path));
  const auto no_backup = [&](std::string_view why) {
    return fail(
        Code::kInvalid,
        fmt::format("\"{}\" is not a complete backup: {}; expected a file made by 'muster backup'",
                    path,
                    why));
  };
  auto database = Database::open(path, /*read_only=*/true);
  if (!database) return no_backup(database.error().message);
  const auto mark = database->query_integer("PRAGMA application_id", 0);
  if (!mark) return no_backup(mark.error().message);
  if (*mark != kMark) return no_backup("it is another kind of file");
  const auto format = database->query_integer("PRAGMA user_version", 0);
  if (!format) return no_backup(format.error().message);
  if (*format > kBackupFormat)
    return fail(
        Code::kInvalid,
        fmt::format("the backup \"{}\" has format {}, and this program knows formats up to {}: "
                    "restore it with the newer muster that made it",
                    path,
                    *format,
                    kBackupFormat));
  auto check = database->prepare("PRAGMA integrity_check(1)");
  if (!check) return no_backup(check.error().message);
  const auto row = check->step();
  if (!row || !*row) return no_backup(row ? "it cannot be checked" : row.error().message);
  if (check->bytes(0) != "ok") return no_backup(check->bytes(0));
  return database;
}

Result<void> copy_in(Database& from, Database& to, Backup& made) {
  auto begun = to.run("BEGIN IMMEDIATE");
  if (!begun) return begun;
  const auto records =
      copy_rows(from,
                "SELECT key, revision, value FROM record ORDER BY key",
                to,
                "INSERT INTO history(key, revision, value, deleted) VALUES(?1, ?2, ?3, 0)",
                "tib");
  if (!records) return fail(records.error());
  made.records = *records;
  return run_all(to,
                 {"INSERT INTO live(key, revision) SELECT key, revision FROM history",
                  fmt::format("UPDATE meta SET value = {} WHERE name IN ('revision', 'compacted')",
                              made.revision),
                  "COMMIT",
                  "PRAGMA wal_checkpoint(TRUNCATE)",
                  // One file, to be given its name in one step; opening it makes it WAL again.
                  "PRAGMA journal_mode = DELETE"});
}

Result<std::vector<SmallFile>> read_files(Database& database) {
  auto select = database.prepare("SELECT name, bytes FROM file ORDER BY name");
  if (!select) return fail(select.error());
  std::vector<SmallFile> files;
  while (true) {
    const auto row = select->step();
    if (!row) return fail(row.error());
    if (!*row) return files;
    files.push_back({std::string(select->bytes(0)), std::string(select->bytes(1))});
  }
}

}  // namespace

Result<Backup> back_up(const std::string& from,
                       const std::string& to,
                       std::vector<SmallFile> files) {
  Partial partial(fs::absolute(to).string());
  Result<Backup> made = fail(Error{});
  {
    auto source = open_store(from);
    if (!source) return fail(source.error());
    auto target = Database::open(partial.name(), /*read_only=*/false);
    if (!target) return fail(target.error());
    made = copy_out(*source, *target, std::move(files));
  }
  if (!made) return made;
  const auto finished = partial.finish();
  if (!finished) return fail(finished.error());
  return made;
}

Result<Backup> restore(const std::string& from, const std::string& to, Time now) {
  auto source = open_backup(from);
  if (!source) return fail(source.error());
  const auto revision = source->query_integer("SELECT value FROM meta WHERE name = 'revision'", 0);
  if (!revision) return fail(revision.error());
  auto files = read_files(*source);
  if (!files) return fail(files.error());
  Backup made;
  made.files = std::move(*files);
  // No cluster writes a million objects a second, so nothing written until now has this number.
  made.revision = static_cast<Revision>(std::max<std::int64_t>(*revision + 1'000'000, now.us));
  Partial partial(fs::absolute(to).string());
  {
    auto target = Database::open(partial.name(), /*read_only=*/false);
    if (!target) return fail(target.error());
    auto done = prepare_schema(*target, to);
    if (done) done = copy_in(*source, *target, made);
    if (!done) return fail(done.error());
  }
  const auto finished = partial.finish();
  if (!finished) return fail(finished.error());
  return made;
}

}  // namespace muster::store
