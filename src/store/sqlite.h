/// SQLite's C interface with owners and Results; seen by store's .cc files only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::store {

class Database;

/// A prepared statement, used again and again. A bound text must outlive the step.
class Statement {
 public:
  Statement() = default;
  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view text);
  Statement& bind_blob(int index, std::string_view bytes);
  /// True: a row is there; false: done. Reset it before the next use.
  Result<bool> step();
  /// Steps a statement that gives no rows, and resets it.
  Result<void> run();
  void reset();
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  /// `vfs`: SQLite's layer over files; empty for the usual one.
  static Result<Database> open(const std::string& path,
                               bool read_only,
                               const std::string& vfs = "");
  Result<Statement> prepare(std::string_view sql);
  Result<void> run(const std::string& sql);
  /// One integer, or `otherwise` when there is no row.
  Result<std::int64_t> query_integer(std::string_view sql, std::int64_t otherwise);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  };
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace muster::store
