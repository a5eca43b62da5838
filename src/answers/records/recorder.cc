// One piece: what is due, what is under way and what is kept are one state, and each write moves
// records from one to the next.
#include "answers/records/recorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include "base/log.h"
#include "base/pace.h"
#include "base/strings.h"
#include "kube/meta.h"

namespace muster::answers {
namespace {

namespace r = kube::resources;

/// How long one step may hold the loop.
constexpr Duration kStep = std::chrono::milliseconds(4);
constexpr Duration kPause = std::chrono::milliseconds(1);
/// The tasks of a gang are bound one after another: its record is written once for all of them.
constexpr Duration kGather = std::chrono::milliseconds(200);
constexpr Duration kSoon = std::chrono::milliseconds(2);
constexpr int kInFlight = 8;
/// However busy the cluster, records wait no longer than this for bindings.
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr Duration kRetry = std::chrono::seconds(1), kRetryMax = std::chrono::seconds(60);
constexpr Duration kHouse = std::chrono::seconds(20);
constexpr std::size_t kPendingMax = 50'000;
constexpr int kListPage = 500;

/// Names of objects may be at most 253 long and uids are theirs to choose.
std::string object_name(const Record& record) {
  return record.uid.empty() ? "record-" + record.ns + "-" + record.job : to_lower(record.uid);
}

}  // namespace

Result<HistoryLimits> parse_history(std::string_view text) {
  HistoryLimits limits;
  for (const std::string& part : split_nonempty(text, ',')) {
    const std::string_view word = trim(part);
    if (word.ends_with('d')) {
      const auto days = parse_int(word.substr(0, word.size() - 1));
      if (days && *days >= 1 && *days <= 36'500) {
        limits.age = std::chrono::hours(24 * *days);
        continue;
      }
    } else if (const auto jobs = parse_int(word); jobs && *jobs >= 1 && *jobs <= 10'000'000) {
      limits.jobs = static_cast<std::size_t>(*jobs);
      continue;
    }
    return fail(Code::kBadRequest,
                fmt::format("--history {}: wanted days, a number of jobs, or both: 90d,200000",
                            quoted(text)));
  }
  limits.fresh_jobs = std::clamp<std::size_t>(limits.jobs / 2, 1, limits.fresh_jobs);
  limits.page = std::min(limits.page, limits.fresh_jobs);
  return limits;
}

Recorder::Recorder(Env& env,
                   client::Client& client,
                   client::Informers& informers,
                   RecorderOptions options)
    : env_(env),
      client_(client),
      informers_(informers),
      options_(std::move(options)),
      tracker_(
          {[this](Tracked& job) { due(job); },
           [this](const Tracked& job) {
             if (options_.turned)
               options_.turned(job.record.uid.empty() ? job.uid : job.record.uid);
           },
           [this](const std::string& node) {
             const client::ObjectPtr found = informers_.get(r::kNodes).find(node);
             return found ? std::string(kube::label(*found, "nvidia.com/gpu.product"))
                          : std::string();
           },
           [this](const std::string& uid) { return archive_.holds(uid) || fresh_.contains(uid); }}),
      gate_(env),
      stopping_(env.make_signal()) {}

Recorder::~Recorder() = default;

void Recorder::start() { env_.spawn(begin()); }

Task<void> Recorder::stop() {
  stopped_ = true;
  pump_timer_.reset();
  gate_.close();
  stopping_->notify();
  (void)co_await gate_.wait_empty(std::chrono::seconds(5));
}

// ----------------------------------------------------------------------------- the first picture

Task<void> Recorder::begin() {
  const Gate::Pass pass(gate_);
  const Gate::Sleeper sleeper(gate_, *stopping_);
  Duration wait = kRetry;
  while (!stopped_) {
    const auto loaded = co_await load();
    if (loaded) break;
    // A real cluster that has not been given the kinds yet; they may come.
    if (wait == kRetry)
      log::warn("answers", "records are not kept yet: {}", loaded.error().message);
    (void)co_await stopping_->wait(wait);
    wait = std::min(wait * 2, kRetryMax);
  }
  if (stopped_) co_return;
  co_await follow_all();
  if (stopped_) co_return;
  tracker_.settled(env_.now());
  ready_ = true;
  co_await tell_of_fresh();
  while (!stopped_) {
    co_await keep_house();
    if (!stopped_) (void)co_await stopping_->wait(kHouse);
  }
}

Task<Result<void>> Recorder::load() {
  client::ListOptions pages;
  pages.limit = 50;
  const auto days = co_await client_.list(r::kUsageDays, {});
  if (!days) co_return fail(days.error());
  const auto sealed = co_await client_.list(r::kHistoryPages, pages);
  if (!sealed) co_return fail(sealed.error());
  client::ListOptions fresh;
  fresh.limit = kListPage;
  const auto records = co_await client_.list(r::kJobRecords, fresh);
  if (!records) co_return fail(records.error());
  for (const json::Value& day : days->items)
    days_[std::string(kube::name_of(day))] = {
        json::int_at(day, "through"),
        std::make_shared<const UsageRows>(parse_usage(json::at(day, "rows")))};
  std::map<std::int64_t, Page> in_order;
  for (const json::Value& object : sealed->items) {
    auto page = parse_page(object);
    if (page)
      in_order[page->head.number] = std::move(*page);
    else
      log::warn("answers", "{}: {}", kube::name_of(object), page.error().message);
  }
  for (auto& [number, page] : in_order) {
    auto held = unpack_page(page);
    if (!held) {
      log::warn("answers", "{}", held.error().message);
      continue;
    }
    // What a crash kept from being counted.
    const bool uncounted =
        std::any_of(page.head.days.begin(), page.head.days.end(), [&](const std::string& day) {
          const auto known = days_.find(day);
          return known == days_.end() || known->second.through < number;
        });
    archive_.add(std::move(page), *held);
    for (const Record& record : *held) {
      if (options_.found) options_.found(record);
    }
    if (uncounted) {
      const auto counted = co_await count_page(number, std::move(*held));
      if (!counted) co_return counted;
    }
    co_await env_.sleep(kPause);
  }
  for (const json::Value& object : records->items) {
    Record record = parse_record(json::at(object, "record"));
    if (record.uid.empty()) continue;
    if (archive_.holds(record.uid)) {
      const auto removed = co_await remove_fresh(record.ns, object_name(record));
      if (!removed) log::warn("answers", "{}", removed.error().message);
      continue;
    }
    if (record.over()) fresh_[record.uid] = std::make_shared<const Record>(record);
    tracker_.restore(std::move(record));
  }
  co_return Result<void>();
}

Task<void> Recorder::follow_all() {
  for (const Followed& kind : followed_kinds()) {
    follow(kind);
    co_await env_.sleep(kPause);
  }
  while (!stopped_ && !std::all_of(awaited_.begin(),
                                   awaited_.end(),
                                   [](const client::Informer* one) { return one->synced(); }))
    (void)co_await stopping_->wait(std::chrono::milliseconds(20));
  // Jobs, then groups, then pods: each finds what it belongs to.
  std::stable_sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    const auto turn = [](JobKind kind) {
      return kind == JobKind::kPod ? 2 : kind == JobKind::kPodGroup ? 1 : 0;
    };
    return turn(a.kind) < turn(b.kind);
  });
  co_await drain();
  followed_ = true;
  co_await drain();
}

/// What is in no page yet: ended jobs, also those that ended while nobody was there, and earlier runs
/// of those that live.
Task<void> Recorder::tell_of_fresh() {
  if (!options_.found) co_return;
  std::vector<std::shared_ptr<const Record>> records;
  for (const auto& [uid, record] : fresh_) records.push_back(record);
  tracker_.each([&](const Tracked& job) {
    if (!job.record.over() && !job.record.runs.empty())
      records.push_back(std::make_shared<const Record>(job.record));
  });
  std::sort(records.begin(), records.end(), [](const auto& a, const auto& b) {
    const auto order = [](const Record& r) { return std::tuple(!r.over(), r.ended.us, r.uid); };
    return order(*a) < order(*b);
  });
  Pace pace(env_);
  for (const auto& record : records) {
    if (pace.over()) co_await pace.rest();
    if (stopped_) co_return;
    options_.found(*record);
  }
}

Task<void> Recorder::drain() {
  Duration begun = env_.monotonic();
  while (!changes_.empty() && !stopped_) {
    apply(changes_.front());
    changes_.pop_front();
    if (changes_.size() % 16 != 0 || env_.monotonic() - begun < kStep) continue;
    co_await env_.sleep(kPause);
    begun = env_.monotonic();
  }
}

void Recorder::follow(const Followed& kind) {
  client::Informer& informer = informers_.get(kind.resource);
  awaited_.push_back(&informer);
  informer.add_handlers(
      {[this, what = kind.kind](const client::ObjectPtr& before, const client::ObjectPtr& after) {
         if (stopped_) return;
         if (followed_ && changes_.empty())
           apply({what, before, after});
         else
           changes_.push_back({what, before, after});
       },
       [] {}});
  informer.start();
}

void Recorder::apply(const Change& change) {
  const Time now = env_.now();
  if (change.kind == JobKind::kPod)
    tracker_.pod_changed(change.before, change.after, now);
  else if (change.kind == JobKind::kPodGroup)
    tracker_.group_changed(change.before, change.after, now);
  else
    tracker_.job_changed(change.kind, change.before, change.after, now);
}

void Recorder::waits(const std::string& pod_key, const std::string& group, Waited wait) {
  const client::ObjectPtr pod = pod_key.empty() ? nullptr : informers_.get(r::kPods).find(pod_key);
  tracker_.waits(pod, group, std::move(wait));
}

void Recorder::evicting(const std::string& pod_key, const std::string& for_whom) {
  tracker_.evicting(pod_key, for_whom);
}

// -------------------------------------------------------------------------------------- writing

void Recorder::due(Tracked& job) {
  const std::string uid = job.uid.empty() ? job.key : job.uid;
  if (job.record.over()) {
    fresh_[job.record.uid] = std::make_shared<const Record>(job.record);
    if (options_.turned) options_.turned(job.record.uid);
  } else {
    fresh_.erase(job.record.uid);
  }
  const auto [slot, isNew] = pending_.try_emplace(uid);
  slot->second.key = job.key;
  if (job.record.over()) slot->second.record = job.record;
  if (isNew) order_.push_back(uid);
  // Those that live are written again with what they do next.
  while (pending_.size() > kPendingMax && !order_.empty()) {
    const auto oldest = pending_.find(order_.front());
    order_.pop_front();
    if (oldest != pending_.end()) pending_.erase(oldest);
  }
  pump_after(job.record.over() ? kSoon : kGather);
}

void Recorder::pump_after(Duration delay) {
  if (stopped_ || (pump_timer_ && delay >= kGather)) return;
  pump_timer_ = env_.after(delay, [this] {
    pump_timer_.reset();
    pump();
  });
}

void Recorder::pump() {
  if (stopped_) return;
  const bool busy = options_.must_wait && options_.must_wait();
  if (busy && held_since_ == Duration::zero()) held_since_ = env_.monotonic();
  if (!busy) held_since_ = Duration::zero();
  const bool wait = busy && env_.monotonic() - held_since_ < kPatience;
  while (!wait && in_flight_ < (busy ? 1 : kInFlight) && !order_.empty()) {
    const std::string uid = order_.front();
    order_.pop_front();
    const auto found = pending_.find(uid);
    if (found == pending_.end()) continue;
    Pending pending = std::move(found->second);
    pending_.erase(found);
    ++in_flight_;
    env_.spawn(write(uid, std::move(pending)));
  }
  if (!order_.empty() && wait) pump_after(kGather / 4);
}

Task<void> Recorder::write(std::string uid, Pending pending) {
  const Gate::Pass pass(gate_);
  std::optional<Record> record = pending.record;
  Tracked* job = tracker_.find_live(pending.key, uid);
  if (job != nullptr) record = tracker_.now_of(*job);
  if (record && !record->ns.empty()) {
    const bool over = record->over();
    const bool first = job != nullptr && !job->stored;
    const auto done = co_await store(*record, first);
    job = tracker_.find_live(pending.key, uid);
    if (done && job != nullptr) job->stored = true;
    if (done && over) append_line(*record);
    // A namespace that goes away takes no more objects; its records stay here and go into a page.
    const bool lasting =
        !done && (done.error().code == Code::kForbidden || done.error().code == Code::kNotFound);
    if (!done && !lasting && !stopped_) {
      const int tries = pending.tries + 1;
      if (tries == 1)
        log::warn("answers", "the record of {} waits: {}", pending.key, done.error().message);
      const auto wait = std::min<Duration>(kRetry * (1 << std::min(tries, 6)), kRetryMax);
      (void)co_await stopping_->wait(wait);
      const auto [slot, isNew] = pending_.try_emplace(uid, pending);
      slot->second.tries = tries;
      if (isNew) order_.push_back(uid);
    }
  }
  --in_flight_;
  if (!order_.empty()) pump_after(Duration::zero());
}

/// One may be there already of which nobody here knows, and one that was there may have gone.
Task<Result<void>> Recorder::store(Record record, bool first) {
  ++writes_;
  const std::string name = object_name(record), ns = record.ns;
  if (!first) {
    const auto patched = co_await patch_record(record);
    if (patched || patched.error().code != Code::kNotFound) co_return patched;
  }
  json::Value object = {{"apiVersion", r::kJobRecords.api_version()},
                        {"kind", r::kJobRecords.kind},
                        {"metadata", {{"name", name}, {"namespace", ns}}},
                        {"record", record_json(record)}};
  const auto made =
      co_await client_.create(r::kJobRecords, ns, std::move(object), client::Answer::kNone);
  if (made) co_return Result<void>();
  if (!first || made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  const auto patched = co_await patch_record(record);
  co_return patched;
}

Task<Result<void>> Recorder::patch_record(const Record& record) {
  json::Value body = json::Object{{"record", record_json(record)}};
  const auto patched = co_await client_.patch(r::kJobRecords,
                                              record.ns,
                                              object_name(record),
                                              "",
                                              client::PatchType::kMerge,
                                              std::move(body),
                                              client::Answer::kNone);
  if (!patched) co_return fail(patched.error());
  co_return Result<void>();
}

void Recorder::append_line(const Record& record) {
  if (options_.directory.empty()) return;
  const std::string path =
      fmt::format("{}/records-{}.jsonl", options_.directory, day_of(record.ended));
  const std::string line = json::dump(record_json(record)) + "\n";
  auto failed = std::make_shared<std::string>();
  gate_.enter();
  env_.offload(
      [path, line, failed, directory = options_.directory] {
        std::error_code none;
        std::filesystem::create_directories(directory, none);
        std::ofstream file(path, std::ios::app | std::ios::binary);
        file << line;
        file.flush();
        if (!file) *failed = "cannot write " + path;
      },
      [this, failed] {
        if (!failed->empty()) log::warn("answers", "--history-dir: {}", *failed);
        gate_.leave();
      });
}

// ---------------------------------------------------------------------------------- house keeping

Task<void> Recorder::keep_house() {
  const HistoryLimits& limits = options_.limits;
  while (!stopped_) {
    std::vector<const Record*> ended;
    for (const auto& [uid, record] : fresh_) {
      if (!pending_.contains(uid)) ended.push_back(record.get());
    }
    std::sort(ended.begin(), ended.end(), [](const Record* a, const Record* b) {
      return a->ended != b->ended ? a->ended < b->ended : a->uid < b->uid;
    });
    const Time old = env_.now() - limits.fresh_age;
    std::size_t count = 0;
    while (count < ended.size() && count < limits.page &&
           (ended[count]->ended < old || ended.size() - count > limits.fresh_jobs))
      ++count;
    // A page is filled up: what is an hour too young may come along.
    if (count == 0) break;
    if (count < limits.page && ended.size() > limits.fresh_jobs)
      count = std::min(limits.page, ended.size());
    std::vector<Record> records;
    for (std::size_t i = 0; i < count; ++i) records.push_back(*ended[i]);
    const auto sealed = co_await seal(std::move(records));
    if (sealed) continue;
    log::warn("answers", "no page was written: {}", sealed.error().message);
    break;
  }
  if (!stopped_) co_await expire();
}

Task<Result<void>> Recorder::seal(std::vector<Record> records) {
  const std::int64_t number = archive_.last_number() + 1;
  auto page = std::make_shared<Page>();
  auto shared = std::make_shared<std::vector<Record>>(std::move(records));
  co_await env_.run_on_worker([page, shared, number] { *page = pack_page(number, *shared); });
  ++writes_;
  const auto made =
      co_await client_.create(r::kHistoryPages, "", page_object(*page), client::Answer::kNone);
  if (!made) co_return fail(made.error());
  archive_.add(std::move(*page), *shared);
  for (const Record& record : *shared) fresh_.erase(record.uid);
  const auto counted = co_await count_page(number, *shared);
  if (!counted) co_return counted;
  for (const Record& record : *shared) {
    const auto removed = co_await remove_fresh(record.ns, object_name(record));
    if (!removed) log::debug("answers", "{}", removed.error().message);
    if (stopped_) break;
  }
  co_return Result<void>();
}

/// Adds a page to the days that have not counted it.
Task<Result<void>> Recorder::count_page(std::int64_t number, std::vector<Record> records) {
  UsageDays fresh;
  for (const Record& record : records) add_usage(record, record.ended, fresh);
  for (const auto& [name, rows] : fresh) {
    const auto known = days_.find(name);
    if (known != days_.end() && known->second.through >= number) continue;
    UsageRows sums = known == days_.end() ? UsageRows{} : *known->second.rows;
    for (const auto& [key, usage] : rows) sums[key] += usage;
    json::Value body = json::Object{{"through", number}, {"rows", usage_json(sums)}};
    ++writes_;
    Result<json::Value> done = json::Value();
    if (known != days_.end()) {
      done = co_await client_.patch(
          r::kUsageDays, "", name, "", client::PatchType::kMerge, body, client::Answer::kNone);
    } else {
      json::make(body, {"apiVersion"}) = r::kUsageDays.api_version();
      json::make(body, {"kind"}) = r::kUsageDays.kind;
      json::make(body, {"metadata", "name"}) = name;
      done = co_await client_.create(r::kUsageDays, "", std::move(body), client::Answer::kNone);
    }
    if (!done) co_return fail(done.error());
    days_[name] = {number, std::make_shared<const UsageRows>(std::move(sums))};
  }
  co_return Result<void>();
}

Task<void> Recorder::expire() {
  const HistoryLimits& limits = options_.limits;
  const Time old = env_.now() - limits.age;
  while (!stopped_ && !archive_.pages().empty()) {
    const PageHead& first = archive_.pages().begin()->second->page.head;
    const bool many = archive_.size() > limits.jobs &&
                      archive_.size() - static_cast<std::size_t>(first.count) >= limits.jobs;
    if (!many && first.last >= old) break;
    const std::string name = page_name(first.number);
    const auto removed = co_await client_.remove(r::kHistoryPages, "", name, {});
    if (!removed && removed.error().code != Code::kNotFound) break;
    (void)archive_.drop_oldest();
  }
  const std::string oldest_day = day_of(env_.now() - limits.days_age);
  while (!stopped_ && !days_.empty() && days_.begin()->first < oldest_day) {
    const std::string name = days_.begin()->first;
    const auto removed = co_await client_.remove(r::kUsageDays, "", name, {});
    if (!removed && removed.error().code != Code::kNotFound) break;
    days_.erase(name);
  }
}

Task<Result<void>> Recorder::remove_fresh(std::string ns, std::string uid) {
  ++writes_;
  auto removed = co_await client_.remove(r::kJobRecords, ns, uid, {});
  if (!removed && removed.error().code == Code::kNotFound) co_return Result<void>();
  co_return removed;
}

// ------------------------------------------------------------------------------------- questions

Task<ShelfPtr> Recorder::shelf() {
  // What lives first, in slices; one that ends meanwhile is taken as it ended. The rest is of the
  // moment after, so nothing is missed or twice in it.
  std::vector<std::pair<std::string, std::string>> jobs;  // keys and uids
  tracker_.each([&](const Tracked& job) {
    if (!job.record.over()) jobs.emplace_back(job.key, job.uid);
  });
  auto out = std::make_shared<Shelf>();
  Pace pace(env_);
  for (const auto& [key, uid] : jobs) {
    if (pace.over()) co_await pace.rest();
    Tracked* job = tracker_.find_live(key, uid);
    if (job != nullptr && job->noted && !job->record.over())
      out->living.push_back(tracker_.now_of(*job));
  }
  std::erase_if(out->living, [this](const Record& record) {
    return fresh_.contains(record.uid) || archive_.holds(record.uid);
  });
  out->now = env_.now();
  out->pages = archive_.pages();
  out->namespaces = archive_.namespaces();
  out->ended.reserve(fresh_.size());
  for (const auto& [uid, record] : fresh_) {
    out->ended.push_back(record);
    out->namespaces.insert(record->ns);
  }
  for (const Record& record : out->living) out->namespaces.insert(record.ns);
  for (const auto& [name, day] : days_) out->days[name] = day.rows;
  co_return out;
}

std::vector<Summary> list(const Shelf& shelf,
                          const RecordQuery& query,
                          const std::set<std::string>* visible) {
  std::vector<Summary> rows;
  const auto take = [&](const Summary& row) {
    if (query.matches(row) && (visible == nullptr || visible->contains(*row.ns)))
      rows.push_back(row);
  };
  for (const Record& record : shelf.living) take(summary_of(record, 0, shelf.now));
  for (const auto& record : shelf.ended) take(summary_of(*record, 0, shelf.now));
  // Newest first; what lives counts from its submission on.
  const auto moment = [](const Summary& row) { return row.ended ? row.ended : row.submitted; };
  std::sort(rows.begin(), rows.end(), [&](const Summary& a, const Summary& b) {
    if (a.ended.us == 0 || b.ended.us == 0) {
      if ((a.ended.us == 0) != (b.ended.us == 0)) return a.ended.us == 0;
    }
    return moment(a) != moment(b) ? moment(a) > moment(b) : a.uid < b.uid;
  });
  if (rows.size() > query.limit) rows.resize(query.limit);
  newest_first(shelf.pages, [&](const Summary& row) {
    if (rows.size() < query.limit) take(row);
    return rows.size() < query.limit;
  });
  return rows;
}

std::optional<Record> Recorder::find(const std::string& uid) {
  if (const auto found = fresh_.find(uid); found != fresh_.end()) return *found->second;
  if (Tracked* job = tracker_.find_uid(uid); job != nullptr && job->noted)
    return tracker_.now_of(*job);
  const SealedPtr sealed = archive_.page_of(uid);
  return sealed ? find_in(*sealed, uid) : std::nullopt;
}

Task<std::optional<Record>> Recorder::look_up(std::string uid) {
  const SealedPtr sealed = archive_.page_of(uid);
  if (!sealed) co_return find(uid);
  const auto found = std::make_shared<std::optional<Record>>();
  co_await env_.run_on_worker([sealed, uid, found] { *found = find_in(*sealed, uid); });
  co_return std::move(*found);
}

std::string Recorder::job_of_gang(std::string_view gang) const {
  const std::size_t colon = gang.find(':');
  if (colon != std::string_view::npos)
    return tracker_.key_of_group(std::string(gang.substr(colon + 1)));
  const client::ObjectPtr pod = informers_.get(r::kPods).find(std::string(gang));
  return pod ? tracker_.key_of_pod(*pod) : "";
}

UsageDays usage(const Shelf& shelf, Time from, Time to) {
  const auto outside = [&](const std::string& day) {
    return (from && day < day_of(from)) || (to && day > day_of(Time{to.us - 1}));
  };
  UsageDays days;
  for (const auto& [name, rows] : shelf.days) {
    if (!outside(name)) days[name] = *rows;
  }
  for (const auto& record : shelf.ended) add_usage(*record, shelf.now, days);
  for (const Record& record : shelf.living) add_usage(record, shelf.now, days);
  std::erase_if(days, [&](const auto& day) { return outside(day.first); });
  return days;
}

std::vector<const Record*> Recorder::fresh() const {
  std::vector<const Record*> out;
  for (const auto& [uid, record] : fresh_) out.push_back(record.get());
  std::sort(out.begin(), out.end(), [](const Record* a, const Record* b) {
    return a->started() != b->started() ? a->started() < b->started() : a->uid < b->uid;
  });
  return out;
}

void each_ended(const Shelf& shelf, Time since, const std::function<void(const Record&)>& each) {
  for (const auto& [number, sealed] : shelf.pages) {
    if (sealed->page.head.last < since) continue;
    const auto records = unpack_page(sealed->page);
    if (!records) continue;
    for (const Record& record : *records) {
      if (record.ended >= since) each(record);
    }
  }
  for (const auto& record : shelf.ended) {
    if (record->ended >= since) each(*record);
  }
}

}  // namespace muster::answers
