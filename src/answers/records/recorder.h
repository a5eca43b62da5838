/// Keeps what became of jobs, as objects: a JobRecord for each job until a day after its end, pages
/// of a thousand ended records, a UsageDay for each day. The same in `muster up` and `muster run`;
/// whoever takes over lists them once and goes on.
///
/// A record is counted into its days with the page it is sealed into, and a day says through which
/// page it has counted: so nothing is counted twice, whenever the process ends. What is not sealed
/// yet is counted from memory. On the loop; writes wait while bindings do.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "answers/jobs/followed.h"
#include "answers/records/archive.h"
#include "answers/records/tracker.h"
#include "answers/records/usage.h"
#include "base/env.h"
#include "base/gate.h"
#include "client/client.h"
#include "client/informer.h"

namespace muster::answers {

struct HistoryLimits {
  Duration age = std::chrono::hours(24 * 90);
  std::size_t jobs = 200'000;
  std::size_t fresh_jobs = 10'000;  // ended ones with an object of their own
  Duration fresh_age = std::chrono::hours(24);
  std::size_t page = 1000;
  Duration days_age = std::chrono::hours(24 * 400);
};

/// "90d", "200000" or "90d,200000"; what is not named stays.
Result<HistoryLimits> parse_history(std::string_view text);

struct RecorderOptions {
  HistoryLimits limits;
  std::string directory;            // records as lines of JSON, a file a day; empty: none
  std::function<bool()> must_wait;  // bindings are under way; null: never
  /// Told once of every record that was there when it began, pages first, the oldest first; null or
  /// not.
  std::function<void(const Record& record)> found;
  /// Told of a job by its uid when a run of it has begun, and when it has ended; null or not.
  std::function<void(const std::string& uid)> turned;
};

/// All that is kept, as it was at one moment, for workers to look through: it never changes.
struct Shelf {
  Time now;
  Pages pages;
  std::vector<std::shared_ptr<const Record>> ended;  // in no page yet
  std::vector<Record> living;
  std::map<std::string, std::shared_ptr<const UsageRows>> days;  // through the last page
  std::set<std::string> namespaces;                              // of all of it
};
using ShelfPtr = std::shared_ptr<const Shelf>;

/// Newest first: what lives, then what has ended; of these namespaces alone, unless it is null. The
/// rows point into the shelf, and pages into the archive.
std::vector<Summary> list(const Shelf& shelf,
                          const RecordQuery& query,
                          const std::set<std::string>* visible);
/// The days that overlap [from, to).
UsageDays usage(const Shelf& shelf, Time from, Time to);
/// Calls each(record) for every record that has ended since, of pages too.
void each_ended(const Shelf& shelf, Time since, const std::function<void(const Record&)>& each);

/// One piece: what is read, written and sealed is one set of records, and each of them is in exactly
/// one place at any moment.
class Recorder {
 public:
  Recorder(Env& env, client::Client& client, client::Informers& informers, RecorderOptions options);
  ~Recorder();

  void start();
  Task<void> stop();
  /// Everything that there is has been read.
  [[nodiscard]] bool ready() const { return ready_; }
  /// Nothing waits to be written.
  [[nodiscard]] bool idle() const { return pending_.empty() && in_flight_ == 0; }

  // What the scheduler tells.
  void waits(const std::string& pod_key, const std::string& group, Waited wait);
  void evicting(const std::string& pod_key, const std::string& for_whom);

  // Questions.
  /// Made in slices: there may be ten thousand jobs that live.
  Task<ShelfPtr> shelf();
  [[nodiscard]] std::optional<Record> find(const std::string& uid);
  /// The same; its page is unpacked on a worker.
  Task<std::optional<Record>> look_up(std::string uid);
  [[nodiscard]] Tracker& tracker() { return tracker_; }
  /// "ns/kind/name" of the job behind a gang of the engine, a group's or a pod's key; empty: none.
  [[nodiscard]] std::string job_of_gang(std::string_view gang) const;
  [[nodiscard]] const Archive& archive() const { return archive_; }
  /// Those that have ended and are in no page yet, the oldest start first.
  [[nodiscard]] std::vector<const Record*> fresh() const;
  [[nodiscard]] std::int64_t writes() const { return writes_; }

 private:
  struct Change {
    JobKind kind;
    client::ObjectPtr before, after;
  };
  struct Pending {
    std::string key;
    std::optional<Record> record;  // of one that has ended; absent: as it is when written
    int tries = 0;
  };

  Task<void> begin();
  Task<Result<void>> load();
  Task<void> follow_all();
  void follow(const Followed& kind);
  void apply(const Change& change);
  Task<void> drain();
  Task<void> tell_of_fresh();

  void due(Tracked& job);
  void pump_after(Duration delay);
  void pump();
  Task<void> write(std::string uid, Pending pending);
  /// `first`: there is none yet, as far as is known.
  Task<Result<void>> store(Record record, bool first);
  Task<Result<void>> patch_record(const Record& record);
  void append_line(const Record& record);

  Task<void> keep_house();
  Task<Result<void>> seal(std::vector<Record> records);
  Task<Result<void>> count_page(std::int64_t number, std::vector<Record> records);
  Task<void> expire();
  Task<Result<void>> remove_fresh(std::string ns, std::string uid);

  Env& env_;
  client::Client& client_;
  client::Informers& informers_;
  RecorderOptions options_;
  Tracker tracker_;
  Archive archive_;
  struct Day {
    std::int64_t through = 0;
    std::shared_ptr<const UsageRows> rows;
  };
  std::map<std::string, Day> days_;
  /// Ended, in no page yet; by uid.
  std::unordered_map<std::string, std::shared_ptr<const Record>> fresh_;
  std::vector<client::Informer*> awaited_;
  std::deque<Change> changes_;
  std::unordered_map<std::string, Pending> pending_;  // by uid
  std::deque<std::string> order_;
  Gate gate_;
  std::unique_ptr<Signal> stopping_;
  std::unique_ptr<Timer> pump_timer_;
  Duration held_since_{};
  bool ready_ = false, stopped_ = false, followed_ = false;
  int in_flight_ = 0;
  std::int64_t writes_ = 0;
};

}  // namespace muster::answers
