#include "store/store.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "store/sqlite.h"

/// Every version of every object is one row of `history`, written once; `live` points from a key to
/// its newest row. A write is one row and one pointer, so the bytes of an object go to the disk
/// once (plus WAL).
///
///   history(revision 7, "/pods/default/a", value, deleted 0)     live("/pods/default/a" -> 7)
///
/// Compaction forgets rows that no key points to. It walks forward once: a row at or before the
/// compacted revision is always live, and a write that supersedes such a row deletes it on the
/// spot.

namespace muster::store {
namespace {

constexpr std::int64_t kFormat = 1;
/// Writes queued at once; more are refused. Also how far revisions jump after a crash: so many may
/// have been handed out without reaching the disk, and none may be handed out twice.
constexpr std::size_t kQueueMax = 65'536;
/// One transaction holds at most so many writes, so that the first of them does not wait for ever.
constexpr std::size_t kBatchMax = 4'096;
constexpr std::int64_t kCompactStep = 1'000;
/// A transaction begins once the loop has done all it had to do, or with so many writes: a commit
/// costs the same for one write as for many, so a writer that began with the first would spend
/// itself on small ones whenever the loop is busy.
constexpr std::size_t kGather = 16;

constexpr const char* kSchema = R"(
CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS history(revision INTEGER PRIMARY KEY, key TEXT NOT NULL, deleted INTEGER NOT NULL, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS live(key TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO meta VALUES('revision', 0);
INSERT OR IGNORE INTO meta VALUES('compacted', 0);
INSERT OR IGNORE INTO meta VALUES('open', 0);
)";

struct Write {
  std::string key;
  Store::MakeValue make;
  Bytes value;  // what it made
  Revision revision = 0;
  bool deleted = false;
  bool refused = false;  // the queue was full; answered in its turn
  std::function<void(Result<void>)> done;
};

/// A file that only one process may hold at a time.
class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  static Result<FileLock> take(const std::string& path) {
    FileLock lock;
    lock.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock.fd_ < 0)
      return fail(Code::kInternal,
                  fmt::format("store: cannot open \"{}\": {}", path, std::strerror(errno)));
    if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
      return fail(Code::kConflict,
                  fmt::format("store: \"{}\" is held by another process, stop it first", path));
    }
    return lock;
  }

 private:
  int fd_ = -1;
};

/// The SQL of one writer thread.
class Writer {
 public:
  Result<void> prepare(Database& database) {
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

  /// All of them in one transaction, or none.
  Result<void> commit(const std::vector<Write>& writes, std::int64_t compacted) {
    return in_transaction([&]() -> Result<void> {
      Revision last = 0;
      for (const auto& write : writes) {
        if (write.refused) continue;
        auto written = put(write, compacted);
        if (!written) return written;
        last = write.revision;
      }
      if (last == 0) return {};
      return set_meta("revision", static_cast<std::int64_t>(last));
    });
  }

  Result<void> compact(std::int64_t after, std::int64_t upto) {
    return in_transaction([&]() -> Result<void> {
      auto deleted = compact_.bind(1, after).bind(2, upto).run();
      if (!deleted) return deleted;
      return set_meta("compacted", upto);
    });
  }

  Result<void> set_open(bool open) {
    return in_transaction([&] { return set_meta("open", open ? 1 : 0); });
  }

 private:
  template <typename Body>
  Result<void> in_transaction(Body body) {
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

  Result<void> put(const Write& write, std::int64_t compacted) {
    std::int64_t superseded = 0;
    if (compacted > 0) {  // before the first compaction no row is one to forget
      auto found = find_.bind(1, std::string_view(write.key)).step();
      superseded = found && *found ? find_.integer(0) : 0;
      find_.reset();
      if (!found) return tl::unexpected(std::move(found.error()));
    }
    const auto revision = static_cast<std::int64_t>(write.revision);
    auto done = insert_.bind(1, revision)
                    .bind(2, std::string_view(write.key))
                    .bind(3, write.deleted ? 1 : 0)
                    .bind_blob(4, *write.value)
                    .run();
    if (!done) return done;
    if (write.deleted) {
      done = unpoint_.bind(1, std::string_view(write.key)).run();
    } else {
      done = point_.bind(1, std::string_view(write.key)).bind(2, revision).run();
    }
    if (!done) return done;
    if (superseded > 0 && superseded <= compacted) done = forget_.bind(1, superseded).run();
    return done;
  }

  Result<void> set_meta(std::string_view name, std::int64_t value) {
    return meta_.bind(1, name).bind(2, value).run();
  }

  Statement begin_, commit_, rollback_, insert_, find_, point_, unpoint_, forget_, meta_, compact_;
};

/// What the loop's thread and the writer thread share.
struct Core {
  explicit Core(Env& e) : env(e) {}

  Env& env;
  FileLock lock;
  Database database;  // the writer thread's
  /// The loop's; none for ":memory:", where both use `database` under `sql`.
  std::optional<Database> reader;
  Writer writer;
  std::mutex sql;

  // Written on the loop only.
  Revision next = 1;
  Revision durable = 0;
  Revision compacted = 0;
  std::size_t outstanding = 0;
  bool closed = false;
  bool release_posted = false;  // at the end of what the loop has to do now
  std::unique_ptr<Signal> drained;
  bool thread_ended = false;

  // Under `mutex`.
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Write> queue;
  bool released = false;  // what is queued may be written; true until all of it was taken
  std::int64_t compact_target = 0;
  bool stop = false;

  // The writer thread's own.
  std::int64_t compacted_on_disk = 0;
  std::optional<Error> failure;  // the first disk error; afterwards nothing is written any more
};

void answer(const std::shared_ptr<Core>& core,
            std::vector<Write> writes,
            std::optional<Error> failure) {
  core->env.post([core,
                  writes = std::make_shared<std::vector<Write>>(std::move(writes)),
                  failure = std::move(failure)] {
    for (auto& write : *writes) {
      --core->outstanding;
      Result<void> result;
      if (write.refused) {
        result =
            fail(Code::kTooManyRequests,
                 fmt::format("store: {} writes are queued already, try again later", kQueueMax));
      } else if (failure) {
        result = fail(*failure);
      } else {
        core->durable = write.revision;
      }
      if (write.done) write.done(std::move(result));
    }
  });
}

void note_failure(Core& core, const Error& error) {
  if (core.failure) return;
  core.failure = error;
  log::error(
      "store", "write failed, the store refuses all further writes error=\"{}\"", error.message);
}

/// One step towards the target, so that writes that come meanwhile wait for no more than a step.
void compact_some(Core& core, std::int64_t target) {
  const auto upto = std::min(core.compacted_on_disk + kCompactStep, target);
  const std::lock_guard guard(core.sql);
  const auto done = core.writer.compact(core.compacted_on_disk, upto);
  if (!done) {
    note_failure(core, done.error());
    return;
  }
  core.compacted_on_disk = upto;
}

void make_value(Write& write) {
  if (write.refused) return;
  write.value = std::exchange(write.make, nullptr)();
  MUSTER_CHECK(write.value != nullptr, "a write without a value");
}

void write_all(const std::shared_ptr<Core>& core) {
  while (true) {
    std::vector<Write> batch;
    std::int64_t target = 0;
    {
      std::unique_lock lock(core->mutex);
      core->wake.wait(lock, [&] {
        return core->stop || (core->released && !core->queue.empty()) ||
               (!core->failure && core->compact_target > core->compacted_on_disk);
      });
      target = core->compact_target;
      if (core->queue.empty() && core->stop) break;
      if (core->released || core->stop) {
        while (!core->queue.empty() && batch.size() < kBatchMax) {
          batch.push_back(std::move(core->queue.front()));
          core->queue.pop_front();
        }
        core->released = !core->queue.empty();
      }
    }
    if (!batch.empty()) {
      if (!core->failure) {
        for (Write& write : batch) make_value(write);
        const std::lock_guard guard(core->sql);
        const auto done = core->writer.commit(batch, core->compacted_on_disk);
        if (!done) note_failure(*core, done.error());
      }
      answer(core, std::move(batch), core->failure);
    }
    if (!core->failure && target > core->compacted_on_disk) compact_some(*core, target);
  }
  if (!core->failure) {
    const std::lock_guard guard(core->sql);
    const auto done = core->writer.set_open(false);
    if (!done) note_failure(*core, done.error());
  }
  core->env.post([core] {
    core->thread_ended = true;
    core->drained->notify();
  });
}

/// Lets the writer have what is queued.
void release(Core& core) {
  {
    const std::lock_guard guard(core.mutex);
    if (core.released || core.queue.empty()) return;
    core.released = true;
  }
  core.wake.notify_one();
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::shared_ptr<Core> core)
      : core_(std::move(core)), thread_([c = core_] { write_all(c); }) {}
  ~SqliteStore() override {
    begin_stop();
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] Revision revision() const override { return core_->durable; }
  [[nodiscard]] Revision compacted() const override { return core_->compacted; }
  [[nodiscard]] Revision next_revision() const override { return core_->next; }

  Revision write(std::string key,
                 MakeValue make,
                 bool deleted,
                 std::function<void(Result<void>)> done) override {
    auto& core = *core_;
    Write write;
    write.revision = core.next;
    write.done = std::move(done);
    if (core.closed) {
      core.env.post([call = std::move(write.done)] {
        if (call) call(fail(Code::kUnavailable, "store: closed"));
      });
      return core.next;
    }
    ++core.next;
    write.refused = core.outstanding >= kQueueMax;
    if (!write.refused) {
      write.key = std::move(key);
      write.make = std::move(make);
      write.deleted = deleted;
    }
    ++core.outstanding;
    std::size_t queued = 0;
    {
      const std::lock_guard guard(core.mutex);
      core.queue.push_back(std::move(write));
      queued = core.queue.size();
    }
    if (queued >= kGather) {
      release(core);
    } else if (!std::exchange(core.release_posted, true)) {
      core.env.post([c = core_] {
        c->release_posted = false;
        release(*c);
      });
    }
    return core.next - 1;
  }

  Result<void> load(const std::function<void(Record)>& each) override {
    const ReadGuard guard(*core_);
    auto statement = guard.database().prepare(
        "SELECT live.key, history.value, live.revision FROM live JOIN history ON history.revision = live.revision ORDER BY live.key");
    if (!statement) return tl::unexpected(std::move(statement.error()));
    while (true) {
      auto row = statement->step();
      if (!row) return tl::unexpected(std::move(row.error()));
      if (!*row) return {};
      Record record;
      record.key = statement->bytes(0);
      record.value = std::make_shared<const std::string>(statement->bytes(1));
      record.revision = static_cast<Revision>(statement->integer(2));
      each(std::move(record));
    }
  }

  Result<std::vector<Change>> changes_after(Revision revision, std::size_t limit) override {
    if (revision < core_->compacted) {
      return fail(Code::kExpired,
                  fmt::format("too old resource version: {} ({})", revision, core_->compacted));
    }
    const ReadGuard guard(*core_);
    // What is on the disk but not yet answered for on the loop does not exist yet.
    auto statement = guard.database().prepare(
        "SELECT revision, key, deleted, value FROM history WHERE revision > ?1 AND revision <= ?2 ORDER BY revision LIMIT ?3");
    if (!statement) return tl::unexpected(std::move(statement.error()));
    statement->bind(1, static_cast<std::int64_t>(revision))
        .bind(2, static_cast<std::int64_t>(core_->durable))
        .bind(3, static_cast<std::int64_t>(limit));
    std::vector<Change> changes;
    while (true) {
      auto row = statement->step();
      if (!row) return tl::unexpected(std::move(row.error()));
      if (!*row) return changes;
      Change change;
      change.revision = static_cast<Revision>(statement->integer(0));
      change.key = statement->bytes(1);
      change.deleted = statement->integer(2) != 0;
      change.value = std::make_shared<const std::string>(statement->bytes(3));
      changes.push_back(std::move(change));
    }
  }

  void compact(Revision revision) override {
    auto& core = *core_;
    const auto upto = std::min(revision, core.durable);
    if (upto <= core.compacted) return;
    core.compacted = upto;
    {
      const std::lock_guard guard(core.mutex);
      core.compact_target = static_cast<std::int64_t>(upto);
    }
    core.wake.notify_one();
  }

  Task<void> close() override {
    const auto core = core_;
    begin_stop();
    while (!core->thread_ended) co_await core->drained->wait(Duration::zero());
    if (thread_.joinable()) thread_.join();
  }

 private:
  /// The database to read from; holds the writer off where both share one connection.
  class ReadGuard {
   public:
    explicit ReadGuard(Core& core) : database_(core.reader ? *core.reader : core.database) {
      if (!core.reader) lock_ = std::unique_lock(core.sql);
    }
    [[nodiscard]] Database& database() const { return database_; }

   private:
    Database& database_;
    std::unique_lock<std::mutex> lock_;
  };

  void begin_stop() {
    core_->closed = true;
    {
      const std::lock_guard guard(core_->mutex);
      core_->stop = true;
    }
    core_->wake.notify_one();
  }

  std::shared_ptr<Core> core_;
  std::thread thread_;
};

Result<void> set_up(Core& core, const std::string& path) {
  const bool in_memory = path == ":memory:";
  if (!in_memory) {
    auto lock = FileLock::take(path + ".lock");
    if (!lock) return tl::unexpected(std::move(lock.error()));
    std::destroy_at(&core.lock);
    std::construct_at(&core.lock, std::move(*lock));
  }
  auto database = Database::open(path, /*read_only=*/false);
  if (!database) return tl::unexpected(std::move(database.error()));
  core.database = std::move(*database);
  const auto format = core.database.query_integer("PRAGMA user_version", 0);
  if (!format) return tl::unexpected(format.error());
  if (*format > kFormat) {
    return fail(Code::kInvalid,
                fmt::format("store: \"{}\" has format {}, this program knows {}: use a newer one",
                            path,
                            *format,
                            kFormat));
  }
  for (const auto& sql : {std::string("PRAGMA journal_mode = WAL"),
                          std::string("PRAGMA synchronous = FULL"),
                          std::string("PRAGMA cache_size = -16000"),
                          std::string(kSchema),
                          fmt::format("PRAGMA user_version = {}", kFormat)}) {
    auto done = core.database.run(sql);
    if (!done) return done;
  }
  auto prepared = core.writer.prepare(core.database);
  if (!prepared) return prepared;
  if (in_memory) return {};
  auto reader = Database::open(path, /*read_only=*/true);
  if (!reader) return tl::unexpected(std::move(reader.error()));
  core.reader.emplace(std::move(*reader));
  return {};
}

Result<void> read_counters(Core& core) {
  const auto revision =
      core.database.query_integer("SELECT value FROM meta WHERE name = 'revision'", 0);
  if (!revision) return tl::unexpected(revision.error());
  const auto compacted =
      core.database.query_integer("SELECT value FROM meta WHERE name = 'compacted'", 0);
  if (!compacted) return tl::unexpected(compacted.error());
  const auto was_open =
      core.database.query_integer("SELECT value FROM meta WHERE name = 'open'", 0);
  if (!was_open) return tl::unexpected(was_open.error());
  core.durable = static_cast<Revision>(*revision);
  core.compacted = static_cast<Revision>(*compacted);
  core.compacted_on_disk = *compacted;
  core.compact_target = *compacted;
  core.next = core.durable + 1;
  if (*was_open == 0) return core.writer.set_open(true);
  // The last process did not close: revisions it handed out may have been seen. The jump itself is
  // made durable first, so that a crash right now cannot undo it.
  core.next += kQueueMax;
  return core.database.run(
      fmt::format("UPDATE meta SET value = {} WHERE name = 'revision'", core.next - 1));
}

}  // namespace

Result<std::unique_ptr<Store>> open(Env& env, const std::string& path) {
  auto core = std::make_shared<Core>(env);
  core->drained = env.make_signal();
  auto ready = set_up(*core, path);
  if (!ready) return tl::unexpected(std::move(ready.error()));
  ready = read_counters(*core);
  if (!ready) return tl::unexpected(std::move(ready.error()));
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(core)));
}

}  // namespace muster::store
