#include "store/sqlite.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/store.h"

namespace muster::store {
namespace {

/// No room is left, whoever says so: the disk, a quota, the memory that connections share.
bool is_full(sqlite3* database) {
  if (database == nullptr) return false;
  const int code = sqlite3_extended_errcode(database);
  return (code & 0xff) == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE ||
         (code == SQLITE_IOERR_WRITE && sqlite3_system_errno(database) == EDQUOT);
}

tl::unexpected<Error> sqlite_failed(sqlite3* database, std::string_view what) {
  Error error;
  error.message = fmt::format(
      "store: {}: {}", what, database == nullptr ? "out of memory" : sqlite3_errmsg(database));
  if (is_full(database)) {
    error.code = Code::kUnavailable;
    error.causes.push_back({std::string(kInsufficientStorage), error.message, ""});
  }
  return fail(std::move(error));
}

}  // namespace

Statement& Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(
      statement_.get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  // A null pointer would bind NULL instead of an empty blob.
  sqlite3_bind_blob64(
      statement_.get(), index, bytes.empty() ? "" : bytes.data(), bytes.size(), SQLITE_STATIC);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return sqlite_failed(sqlite3_db_handle(statement_.get()), sqlite3_errstr(code));
}

Result<void> Statement::run() {
  auto stepped = step();
  reset();
  if (!stepped) return tl::unexpected(std::move(stepped.error()));
  return {};
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const auto size = sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string_view()
                         : std::string_view(data, static_cast<std::size_t>(size));
}

namespace {

/// Every secret of a cluster is in it. SQLite gives its journal files the mode of the database.
Result<void> make_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const bool done = file >= 0 && ::fchmod(file, 0600) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!done)
    return fail(Code::kInternal, fmt::format("cannot open \"{}\": {}", path, std::strerror(error)));
  for (const char* journal : {"-wal", "-shm"}) ::chmod((path + journal).c_str(), 0600);
  return {};
}

}  // namespace

Result<Database> Database::open(const std::string& path, bool read_only, const std::string& vfs) {
  if (!read_only && vfs.empty() && path.starts_with('/')) {
    const auto done = make_private(path);
    if (!done) return fail(done.error());
  }
  sqlite3* raw = nullptr;
  const int flags =
      (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
      SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, vfs.empty() ? nullptr : vfs.c_str());
  Database database;
  database.database_.reset(raw);
  if (code != SQLITE_OK) return sqlite_failed(raw, fmt::format("cannot open \"{}\"", path));
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, 10'000);
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v3(database_.get(),
                         sql.data(),
                         static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT,
                         &raw,
                         nullptr) != SQLITE_OK) {
    return sqlite_failed(database_.get(), fmt::format("prepare \"{}\"", sql));
  }
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

Result<void> Database::run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return sqlite_failed(database_.get(), sql);
  return {};
}

Result<std::int64_t> Database::query_integer(std::string_view sql, std::int64_t otherwise) {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement.error()));
  auto row = statement->step();
  if (!row) return tl::unexpected(std::move(row.error()));
  return *row ? statement->integer(0) : otherwise;
}

}  // namespace muster::store
