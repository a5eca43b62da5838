// One piece: the writer's thread, what waits for it and what is told afterwards share one lock, and
// the order in which they do is what "durable" means.
#include "store/store.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "store/file_lock.h"
#include "store/reserve.h"
#include "store/sqlite.h"
#include "store/transactions.h"

namespace muster::store {
namespace {

/// Writes queued at once; more are refused. Also how far revisions jump after a crash: so many may
/// have been handed out without reaching the disk, and none may be handed out twice.
constexpr std::size_t kQueueMax = 65'536;
/// One transaction holds at most so many writes, so that the first of them does not wait for ever.
constexpr std::size_t kBatchMax = 4'096;
constexpr std::int64_t kCompactStep = 1'000;
/// On a full disk one transaction touches no more than fits the room kept back: what is deleted is
/// overwritten, and an object may have 1.5 MiB.
constexpr std::size_t kBatchMaxFull = 4;
constexpr std::int64_t kCompactStepFull = 4;
/// A transaction begins once the loop has done all it had to do, or with so many writes: a commit
/// costs the same for one write as for many, so a writer that began with the first would spend
/// itself on small ones whenever the loop is busy.
constexpr std::size_t kGather = 16;
/// Free pages stay in the file for the next writes until they are many and a quarter of it; then
/// half of them are given back to the disk, a step at a time.
constexpr std::int64_t kFreePagesMin = 4'096;
constexpr std::int64_t kGiveBackStep = 512;
/// How often a full disk is looked at.
constexpr auto kLookAgain = std::chrono::seconds(1);

Error queue_is_full() {
  Error error;
  error.code = Code::kTooManyRequests;
  error.message = fmt::format("store: {} writes are queued already, try again later", kQueueMax);
  return error;
}

/// What the loop's thread and the writer thread share.
struct Core {
  explicit Core(Env& e) : env(e) {}

  Env& env;
  std::string path;
  OpenOptions options;
  FileLock lock;
  Database database;  // the writer thread's
  /// The loop's; none where both use `database` under `sql`.
  std::optional<Database> reader;
  Transactions transactions;
  std::mutex sql;

  // Written on the loop only.
  Revision next = 1;
  Revision durable = 0;
  Revision compacted = 0;
  std::size_t outstanding = 0;
  std::string trouble;
  std::optional<Error> failed;  // what the writer's `failure` is, once the loop was told
  bool closed = false;
  bool release_posted = false;  // at the end of what the loop has to do now
  std::unique_ptr<Signal> drained;
  bool ended = false;
  // Without a thread of its own the writer takes its turns on the loop.
  bool turn_posted = false;
  std::unique_ptr<Timer> next_look;

  // Under `mutex`.
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Write> queue;
  bool released = false;  // what is queued may be written; true until all of it was taken
  std::int64_t compact_target = 0;
  bool stop = false;

  // The writer thread's own.
  std::unique_ptr<Reserve> reserve;  // none where there is no disk
  std::int64_t compacted_on_disk = 0;
  std::int64_t pages_to_give_back = 0;
  bool full = false;             // the disk; only deletions are written
  Duration look_due{};           // when it is looked at again
  bool resting = false;          // nothing more can be tidied until the disk is looked at again
  std::optional<Error> failure;  // the first other error; afterwards nothing is written any more
};

// ---------------------------------------------------------------------- What the loop is told

void answer(const std::shared_ptr<Core>& core, std::vector<Write> writes) {
  core->env.post([core, writes = std::make_shared<std::vector<Write>>(std::move(writes))] {
    for (auto& write : *writes) {
      --core->outstanding;
      if (!write.failure) core->durable = write.revision;
      if (write.done)
        write.done(write.failure ? Result<void>(fail(*write.failure)) : Result<void>());
    }
  });
}

void tell_trouble(const std::shared_ptr<Core>& core, std::string trouble) {
  core->env.post([core, trouble = std::move(trouble)] { core->trouble = trouble; });
}

void take_turn_on_loop(const std::shared_ptr<Core>& core, bool look_at_disk);

/// The writer looks for something to do.
void wake(const std::shared_ptr<Core>& core) {
  if (core->options.own_thread) {
    core->wake.notify_one();
  } else if (!std::exchange(core->turn_posted, true)) {
    core->env.post([core] {
      core->turn_posted = false;
      take_turn_on_loop(core, false);
    });
  }
}

void forget_until(const std::shared_ptr<Core>& core, Revision revision) {
  const auto upto = std::min(revision, core->durable);
  if (upto <= core->compacted) return;
  core->compacted = upto;
  {
    const std::lock_guard guard(core->mutex);
    core->compact_target = static_cast<std::int64_t>(upto);
  }
  wake(core);
}

// ---------------------------------------------------------------------- What can go wrong

void note_failure(const std::shared_ptr<Core>& core, const Error& error) {
  if (core->failure) return;
  core->failure = error;
  // What was being written may be there after a restart, so nobody may take this for a refusal.
  core->failure->code = Code::kUnavailable;
  log::error(
      "store", "write failed, the store refuses all further writes error=\"{}\"", error.message);
  tell_trouble(core,
               fmt::format("{}; writes are refused until muster is started again", error.message));
  core->env.post([core, told = *core->failure] { core->failed = told; });
}

std::string full_text(const Core& core) {
  return fmt::format(
      "no room is left on the disk of \"{}\": free some there, or delete objects; reads and "
      "deletions still work, and writes go on by themselves once there is room",
      std::filesystem::path(core.path).parent_path().string());
}

/// The room that the log takes comes back when it has been carried over into the database.
void make_log_empty(Core& core) {
  const auto done = core.database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  if (!done) log::warn("store", "{}", done.error().message);
}

void note_full(const std::shared_ptr<Core>& core) {
  if (core->full) return;
  core->full = true;
  core->look_due = core->env.monotonic() + kLookAgain;
  if (core->reserve) {
    core->reserve->release();
    make_log_empty(*core);
  }
  log::error("store", "{}", full_text(*core));
  tell_trouble(core, full_text(*core));
}

void refuse(std::vector<Write>& writes, const Error& error, bool deletions_too) {
  for (Write& write : writes) {
    if (!write.failure && (deletions_too || write.kind == Kind::kPut)) write.failure = error;
  }
}

void refuse_for_room(const Core& core, std::vector<Write>& writes, bool deletions_too) {
  Error error;
  error.code = Code::kUnavailable;
  error.message = full_text(core);
  error.causes.push_back({std::string(kInsufficientStorage), error.message, ""});
  refuse(writes, error, deletions_too);
}

// ---------------------------------------------------------------------- What the writer does

bool any_left(const std::vector<Write>& writes) {
  return std::any_of(
      writes.begin(), writes.end(), [](const Write& write) { return !write.failure; });
}

Result<void> commit(Core& core, std::vector<Write>& writes) {
  if (!any_left(writes)) return {};
  for (Write& write : writes) {
    if (write.failure || !write.make) continue;
    write.value = std::exchange(write.make, nullptr)();
    MUSTER_CHECK(write.value != nullptr, "a write without a value");
  }
  const std::lock_guard guard(core.sql);
  return core.transactions.commit(writes, core.compacted_on_disk, core.full);
}

/// Writes what may be written, and notes in each write why it was not.
void commit_or_refuse(const std::shared_ptr<Core>& core, std::vector<Write>& writes) {
  if (core->failure) return refuse(writes, *core->failure, true);
  if (core->full) refuse_for_room(*core, writes, false);
  auto done = commit(*core, writes);
  if (!done && is_full_disk(done.error()) && !core->full) {
    note_full(core);
    refuse_for_room(*core, writes, false);
    done = commit(*core, writes);
  }
  if (done) return;
  if (is_full_disk(done.error())) return refuse_for_room(*core, writes, true);
  note_failure(core, done.error());
  refuse(writes, *core->failure, true);
}

/// Tidying that found no room is tried again when the disk is looked at.
void note_tidied(const std::shared_ptr<Core>& core, const Result<void>& done) {
  if (done) return;
  if (!is_full_disk(done.error())) return note_failure(core, done.error());
  note_full(core);
  core->resting = true;
}

/// How much of the file is free and worth giving back: all of it on a full disk.
Result<std::int64_t> count_free_pages(Core& core) {
  auto free = core.database.query_integer("PRAGMA freelist_count", 0);
  if (!free || core.full) return free;
  auto pages = core.database.query_integer("PRAGMA page_count", 0);
  if (!pages) return pages;
  return *free > std::max(kFreePagesMin, *pages / 4) ? *free / 2 : 0;
}

/// One step towards the target, so that writes that come meanwhile wait for no more than a step.
void compact_some(const std::shared_ptr<Core>& core, std::int64_t target) {
  const auto step = core->full ? kCompactStepFull : kCompactStep;
  const auto upto = std::min(core->compacted_on_disk + step, target);
  const std::lock_guard guard(core->sql);
  const auto done = core->transactions.compact(core->compacted_on_disk, upto);
  if (!done) return note_tidied(core, done);
  core->compacted_on_disk = upto;
  if (upto < target || !core->reserve) return;
  const auto free = count_free_pages(*core);
  if (free) core->pages_to_give_back = *free;
}

void give_back_some(const std::shared_ptr<Core>& core) {
  const std::lock_guard guard(core->sql);
  const auto done = core->database.run(fmt::format("PRAGMA incremental_vacuum({})", kGiveBackStep));
  core->pages_to_give_back -= kGiveBackStep;
  // The file shrinks when the log is carried over into it.
  if (done && core->full && core->pages_to_give_back <= 0) make_log_empty(*core);
  note_tidied(core, done);
}

/// A full disk: history goes first, then what that freed is given back, and when the disk has room,
/// from here or from elsewhere, everything is as before.
void look_at_disk(const std::shared_ptr<Core>& core) {
  core->resting = false;
  core->look_due = core->env.monotonic() + kLookAgain;
  if (core->failure) {  // room would not mend that
    core->full = false;
    return;
  }
  if (!core->reserve || core->reserve->hold()) {
    core->full = false;
    log::info("store", "there is room on the disk again, writes go on");
    tell_trouble(core, "");
    return;
  }
  core->env.post([core] { forget_until(core, core->durable); });
  const std::lock_guard guard(core->sql);
  make_log_empty(*core);
  const auto free = count_free_pages(*core);
  if (free) core->pages_to_give_back = *free;
}

/// What the writer finds to do.
struct Turn {
  std::vector<Write> writes;
  std::int64_t compact_target = 0;
  bool look_at_disk = false;
  bool end = false;
};

bool can_tidy(const Core& core) { return !core.failure && !core.resting; }

/// Under `mutex`.
bool has_work(const Core& core) {
  return core.stop || (core.released && !core.queue.empty()) ||
         (can_tidy(core) &&
          (core.compact_target > core.compacted_on_disk || core.pages_to_give_back > 0));
}

/// Under `mutex`.
Turn find_turn(Core& core) {
  Turn turn;
  turn.compact_target = core.compact_target;
  turn.end = core.queue.empty() && core.stop;
  if (core.released || core.stop) {
    const std::size_t most = core.full ? kBatchMaxFull : kBatchMax;
    while (!core.queue.empty() && turn.writes.size() < most) {
      turn.writes.push_back(std::move(core.queue.front()));
      core.queue.pop_front();
    }
    core.released = !core.queue.empty();
  }
  return turn;
}

Turn wait_for_turn(Core& core) {
  std::unique_lock lock(core.mutex);
  bool look = false;
  if (core.full) {
    // Also when there is always something to do.
    const Duration left = core.look_due - core.env.monotonic();
    if (left > Duration::zero()) core.wake.wait_for(lock, left, [&] { return has_work(core); });
    look = core.env.monotonic() >= core.look_due;
  } else {
    core.wake.wait(lock, [&] { return has_work(core); });
  }
  Turn turn = find_turn(core);
  turn.look_at_disk = look;
  return turn;
}

void take_turn(const std::shared_ptr<Core>& core, Turn turn) {
  if (turn.look_at_disk) look_at_disk(core);
  const bool wrote = !turn.writes.empty();
  if (wrote) {
    commit_or_refuse(core, turn.writes);
    answer(core, std::move(turn.writes));
  }
  if (!can_tidy(*core)) return;
  if (turn.compact_target > core->compacted_on_disk)
    compact_some(core, turn.compact_target);
  else if (core->pages_to_give_back > 0 && !wrote)
    give_back_some(core);
}

void end(const std::shared_ptr<Core>& core) {
  if (!core->failure) {
    const std::lock_guard guard(core->sql);
    const auto done = core->transactions.set_open(false);
    if (!done) log::error("store", "closed without a mark: {}", done.error().message);
  }
  core->env.post([core] {
    core->ended = true;
    core->drained->notify();
  });
}

void write_all(const std::shared_ptr<Core>& core) {
  while (true) {
    Turn turn = wait_for_turn(*core);
    if (turn.end) return end(core);
    take_turn(core, std::move(turn));
  }
}

void take_turn_on_loop(const std::shared_ptr<Core>& core, bool look_at_disk) {
  if (core->ended || (!look_at_disk && !has_work(*core))) return;
  Turn turn = find_turn(*core);
  turn.look_at_disk = look_at_disk;
  if (turn.end) return end(core);
  take_turn(core, std::move(turn));
  if (core->full && !core->next_look) {
    const std::weak_ptr<Core> known = core;
    core->next_look = core->env.after(kLookAgain, [known] {
      const auto still = known.lock();
      if (!still) return;
      still->next_look.reset();
      take_turn_on_loop(still, true);
    });
  }
  if (has_work(*core)) wake(core);
}

/// Lets the writer have what is queued.
void release(const std::shared_ptr<Core>& core) {
  {
    const std::lock_guard guard(core->mutex);
    if (core->released || core->queue.empty()) return;
    core->released = true;
  }
  wake(core);
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::shared_ptr<Core> core) : core_(std::move(core)) {
    if (core_->options.own_thread) thread_ = std::thread([c = core_] { write_all(c); });
  }
  ~SqliteStore() override {
    begin_stop();
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] std::string trouble() const override { return core_->trouble; }
  [[nodiscard]] const Error* failure() const override {
    return core_->failed ? &*core_->failed : nullptr;
  }
  [[nodiscard]] Revision revision() const override { return core_->durable; }
  [[nodiscard]] Revision compacted() const override { return core_->compacted; }
  [[nodiscard]] Revision next_revision() const override { return core_->next; }

  Revision write(std::string key,
                 MakeValue make,
                 Kind kind,
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
    if (core.outstanding >= kQueueMax) {
      write.failure = queue_is_full();
    } else {
      write.key = std::move(key);
      write.make = std::move(make);
      write.kind = kind;
    }
    ++core.outstanding;
    std::size_t queued = 0;
    {
      const std::lock_guard guard(core.mutex);
      core.queue.push_back(std::move(write));
      queued = core.queue.size();
    }
    if (queued >= kGather) {
      release(core_);
    } else if (!std::exchange(core.release_posted, true)) {
      core.env.post([c = core_] {
        c->release_posted = false;
        release(c);
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
      if (change.deleted && change.value->empty()) {  // there was no room to keep its last state
        return fail(Code::kExpired,
                    fmt::format("too old resource version: {} ({})", revision, change.revision));
      }
      changes.push_back(std::move(change));
    }
  }

  void compact(Revision revision) override { forget_until(core_, revision); }

  Task<void> close() override {
    const auto core = core_;
    begin_stop();
    while (!core->ended) co_await core->drained->wait(Duration::zero());
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
    wake(core_);
  }

  std::shared_ptr<Core> core_;
  std::thread thread_;
};

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
  if (*was_open == 0) return core.transactions.set_open(true);
  // The last process did not close: revisions it handed out may have been seen. The jump itself is
  // made durable first, so that a crash right now cannot undo it.
  core.next += kQueueMax;
  return core.database.run(
      fmt::format("UPDATE meta SET value = {} WHERE name = 'revision'", core.next - 1));
}

Result<void> set_up(Core& core) {
  const bool on_disk = core.reserve != nullptr;
  if (on_disk) {
    auto lock = FileLock::take(core.path + ".lock");
    if (!lock) return tl::unexpected(std::move(lock.error()));
    core.lock = std::move(*lock);
  }
  auto database = Database::open(core.path, /*read_only=*/false, core.options.vfs);
  if (!database) return tl::unexpected(std::move(database.error()));
  core.database = std::move(*database);
  auto done = prepare_schema(core.database, core.path);
  if (done) done = core.transactions.prepare(core.database);
  if (done) done = read_counters(core);
  if (!done || !on_disk) return done;
  auto reader = Database::open(core.path, /*read_only=*/true);
  if (!reader) return tl::unexpected(std::move(reader.error()));
  core.reader.emplace(std::move(*reader));
  return {};
}

Result<std::shared_ptr<Core>> make_core(Env& env,
                                        const std::string& path,
                                        const OpenOptions& options) {
  auto core = std::make_shared<Core>(env);
  core->path = path;
  core->options = options;
  core->drained = env.make_signal();
  if (path != ":memory:" && options.vfs.empty()) core->reserve = make_reserve(path + ".reserve");
  const auto ready = set_up(*core);
  if (!ready && is_full_disk(ready.error()) && core->reserve) core->reserve->release();
  if (!ready) return fail(ready.error());
  return core;
}

}  // namespace

bool is_full_disk(const Error& error) {
  return !error.causes.empty() && error.causes.front().reason == kInsufficientStorage;
}

Result<std::unique_ptr<Store>> open(Env& env, const std::string& path, OpenOptions options) {
  auto core = make_core(env, path, options);
  // Reads and deletions need a store that is open: the room that was kept back is for that, too.
  if (!core && is_full_disk(core.error())) core = make_core(env, path, options);
  if (!core) return fail(core.error());
  if ((*core)->reserve && !(*core)->reserve->hold()) {
    (*core)->full = true;
    (*core)->trouble = full_text(**core);
    log::warn("store", "{}", (*core)->trouble);
  }
  return std::unique_ptr<Store>(std::make_unique<SqliteStore>(std::move(*core)));
}

}  // namespace muster::store
