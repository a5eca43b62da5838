/// Topic `gantt`: who was where when, and until when they stay where that is known.
#include <fmt/core.h>

#include <algorithm>

#include "answers/visitor.h"
#include "base/strings.h"
#include "portal/api/timeline.h"
#include "portal/topics/topics.h"
#include "portal/topics/waiting.h"

namespace muster::portal {
namespace {

struct GanttQuery {
  std::string by = "node";
  Millis from = 0, to = 0;
  std::vector<std::string> jobs;
  std::size_t limit = 200;
};

/// By id of the job.
using FormerRuns = std::map<std::string, std::vector<Former>>;

struct Lane {
  std::int64_t gpus = 0;
  std::map<std::string, json::Object> bars;  // by job and start
};

class GanttSource final : public Source {
 public:
  GanttSource(World& world, VisiblePtr visible, GanttQuery query, FormerRuns formers)
      : world_(world),
        visible_(std::move(visible)),
        query_(std::move(query)),
        formers_(std::move(formers)) {}
  std::uint64_t version() override {
    world_.forecasts.want();
    const std::uint64_t held = world_.options.reservations ? reservations().version : 0;
    return world_.jobs.version() + world_.forecasts.version() + held;
  }
  [[nodiscard]] bool windowed() const override { return false; }

  std::string value() override {
    const Millis now = world_.now() / 1000 * 1000;
    const Millis to = query_.to != 0 ? query_.to : now + 6 * 3600 * 1000LL;
    const Millis from = query_.from != 0 ? query_.from : now - 24 * 3600 * 1000LL;
    std::map<std::string, Lane> lanes;
    if (query_.by == "node") {
      for (const auto& [name, node] : world_.nodes.all()) lanes[name].gpus = node.gpus;
    }
    const Table& table = world_.jobs.table();
    for (Slot slot = 0; slot < table.slots(); ++slot) {
      const JobIndex::Entry* entry = world_.jobs.at(slot);
      if (entry == nullptr || !entry->shown || !sees(*visible_, *entry)) continue;
      if (!query_.jobs.empty() &&
          std::find(query_.jobs.begin(), query_.jobs.end(), entry->facts.id) == query_.jobs.end())
        continue;
      add_job(lanes, *entry, from, to, now);
      if (world_.jobs.table().keys(slot).state == State::kWaiting)
        add_expected(lanes, *entry, to, now);
    }
    if (query_.by == "node") add_reservations(lanes, to, now);
    json::Array list;
    std::size_t more = 0;
    for (auto& [name, lane] : lanes) {
      if (!query_.jobs.empty() && lane.bars.empty()) continue;
      if (list.size() >= query_.limit) {
        ++more;
        continue;
      }
      json::Array bars;
      for (auto& [key, bar] : lane.bars) bars.push_back(std::move(bar));
      list.push_back({{"name", name}, {"gpus", lane.gpus}, {"bars", std::move(bars)}});
    }
    return json::dump(json::Value{
        {"now", now}, {"from", from}, {"to", to}, {"lanes", std::move(list)}, {"more", more}});
  }

 private:
  void add_job(std::map<std::string, Lane>& lanes,
               const JobIndex::Entry& entry,
               Millis from,
               Millis to,
               Millis now) {
    const Keys& keys = world_.jobs.table().keys(entry.slot);
    const auto bar = [&](const std::string& lane,
                         Millis begin,
                         Millis end,
                         const char* kind,
                         std::int64_t gpus,
                         Millis expected) {
      if (begin == 0 || begin > to || (end != 0 && end < from)) return;
      json::Object& made = lanes[lane].bars[fmt::format("{:020}{}{}", begin, entry.facts.id, kind)];
      const std::int64_t before = made.empty() ? 0 : json::int_at(json::Value(made), "gpus");
      const Millis until = end != 0 ? end : expected;
      made = {
          {"job", entry.facts.id},
          {"name", entry.facts.name},
          {"user", entry.facts.user},
          {"vc", entry.facts.vc},
          {"kind", kind},
          {"from", begin},
          {"to",
           until == 0 ? json::Value(nullptr) : json::Value(std::max(until, end != 0 ? end : now))},
          {"forecast", end == 0 && expected != 0},
          {"gpus", before + gpus},
          {"attempt", keys.retries_platform},
          {"text", ""}};
    };
    if (query_.by == "job" || query_.by == "vc") {
      const std::string lane = query_.by == "job" ? entry.facts.id
                               : !entry.facts.vc.empty()
                                   ? entry.facts.vc
                                   : world_.jobs.table().words().text(keys.queue);
      const bool waits = keys.state == State::kWaiting;
      // All other times are whole seconds: what starts in the second of its submission did not before.
      Millis since = keys.submitted / 1000 * 1000;
      if (const auto runs = formers_.find(entry.facts.id); runs != formers_.end()) {
        for (const Former& run : runs->second) {
          bar(lane, since, run.launched != 0 ? run.launched : run.completed, "queued", 0, 0);
          if (run.launched != 0) bar(lane, run.launched, run.completed, "running", keys.gpus, 0);
          since = run.completed;
        }
      }
      if (query_.by == "job") bar(lane, since, waits ? 0 : keys.started, "queued", 0, 0);
      Millis expected = 0;
      for (const auto& [name, task] : entry.tasks) expected = std::max(expected, task.expected_end);
      const Millis ended =
          keys.ended != 0 && entry.facts.run_ended != 0 ? entry.facts.run_ended : keys.ended;
      if (keys.started != 0) bar(lane, keys.started, ended, "running", keys.gpus, expected);
      return;
    }
    for (const auto& [name, task] : entry.tasks) {
      if (task.node.empty() || task.started == 0) continue;
      bar(task.node, task.started, task.ended, "running", task.gpus, task.expected_end);
    }
  }

  [[nodiscard]] ReservationBook reservations() const { return world_.options.reservations(); }

  /// A bar of the future.
  struct Ahead {
    Millis from = 0, to = 0;  // to 0: not known
    const char* kind = "forecast";
    std::int64_t gpus = 0;
    std::string text;
  };
  static void add_ahead(Lane& lane, const JobIndex::Entry* entry, const Ahead& ahead) {
    const std::string id = entry == nullptr ? "" : entry->facts.id;
    lane.bars[fmt::format("{:020}{}{}", ahead.from, id, ahead.kind)] = {
        {"job", id},
        {"name", entry == nullptr ? std::string(answers::kAnothersJob) : entry->facts.name},
        {"user", entry == nullptr ? "" : entry->facts.user},
        {"vc", entry == nullptr ? "" : entry->facts.vc},
        {"kind", ahead.kind},
        {"from", ahead.from},
        {"to", ahead.to == 0 ? json::Value(nullptr) : json::Value(ahead.to)},
        {"forecast", true},
        {"gpus", ahead.gpus},
        {"attempt", 0},
        {"text", ahead.text}};
  }

  /// When a gang that is to start then will have ended, if its owner says how long it lasts.
  [[nodiscard]] Millis end_of(const JobIndex::Entry& entry, Millis start) const {
    const answers::Forecast* forecast = forecast_of(world_, entry);
    const Duration lasts = forecast ? world_.forecasts.declared(*forecast) : Duration();
    return lasts > Duration() ? start + lasts / std::chrono::milliseconds(1) : 0;
  }

  /// In lanes of jobs and tenants: when it starts, where that can be told.
  void add_expected(std::map<std::string, Lane>& lanes,
                    const JobIndex::Entry& entry,
                    Millis to,
                    Millis now) {
    const answers::Forecast* forecast = forecast_of(world_, entry);
    if (query_.by == "node" || forecast == nullptr) return;
    const Told told = told_of(*forecast);
    if (told.basis == answers::Basis::kNone || told.start > to) return;
    const Keys& keys = world_.jobs.table().keys(entry.slot);
    Ahead ahead{.from = std::max(told.start, now), .gpus = keys.gpus};
    ahead.to = end_of(entry, ahead.from);
    ahead.text = std::string(answers::basis_name(told.basis));
    const std::string lane = query_.by == "job" ? entry.facts.id
                             : !entry.facts.vc.empty()
                                 ? entry.facts.vc
                                 : world_.jobs.table().words().text(keys.queue);
    add_ahead(lanes[lane], &entry, ahead);
  }

  /// In lanes of nodes: what the engine itself holds for whom, and from when on.
  void add_reservations(std::map<std::string, Lane>& lanes, Millis to, Millis now) {
    if (!world_.options.reservations) return;
    const ReservationBook book = reservations();
    for (const ReservationFacts& one : book.all) {
      const JobIndex::Entry* entry = job_of_gang(world_, *visible_, one.holder);
      const bool chosen =
          query_.jobs.empty() ||
          (entry != nullptr &&
           std::find(query_.jobs.begin(), query_.jobs.end(), entry->facts.id) != query_.jobs.end());
      Ahead ahead{.from = std::max(one.start_ms, now), .kind = "reserved"};
      if (!chosen || ahead.from > to) continue;
      if (one.start_ms == 0) ahead.text = "held; when it starts is not known";
      if (entry != nullptr && one.start_ms != 0) ahead.to = end_of(*entry, ahead.from);
      std::int64_t each = 0;
      if (entry != nullptr) {
        for (const auto& [name, task] : entry->tasks)
          each = std::max<std::int64_t>(each, task.gpus);
      }
      for (std::size_t i = 0; i < one.nodes.size(); ++i) {
        const auto lane = lanes.find(one.nodes[i]);
        if (lane == lanes.end()) continue;
        ahead.gpus = i < one.members.size() ? one.members[i] * each : 0;
        add_ahead(lane->second, entry, ahead);
      }
    }
  }

  World& world_;
  VisiblePtr visible_;
  GanttQuery query_;
  FormerRuns formers_;  // of some jobs that were asked for, when they were
};

Result<GanttQuery> parse_gantt_query(const json::Value& query) {
  GanttQuery parsed;
  const auto number = [](const json::Value& value) {
    return value.is_int64() ? value.get_int64() : parse_int(json::as_string(value)).value_or(0);
  };
  for (const auto& [key, value] : json::as_object(query)) {
    if (key == "by")
      parsed.by = json::text(value);
    else if (key == "from")
      parsed.from = number(value);
    else if (key == "to")
      parsed.to = number(value);
    else if (key == "limit")
      parsed.limit = static_cast<std::size_t>(std::clamp<std::int64_t>(number(value), 1, 500));
    else if (key == "jobs") {
      if (value.is_string()) parsed.jobs = split_nonempty(json::as_string(value), ',');
      for (const json::Value& one : json::as_array(value)) parsed.jobs.push_back(json::text(one));
    } else
      return fail(
          Code::kBadRequest,
          fmt::format("\"{}\" is not part of a Gantt query; there are by, from, to, jobs and limit",
                      std::string_view(key)));
  }
  if (parsed.by != "node" && parsed.by != "vc" && parsed.by != "job")
    return fail(Code::kBadRequest, "by: wanted node, vc or job");
  return parsed;
}

/// For whom earlier attempts are looked up: a report of an experiment has a few jobs.
constexpr std::size_t kFormersOf = 20;

}  // namespace

Task<Result<SourcePtr>> gantt_topic(World& world,
                                    User user,
                                    VisiblePtr visible,
                                    json::Value query) {
  auto parsed = parse_gantt_query(query);
  if (!parsed) co_return fail(parsed.error());
  FormerRuns formers;
  for (std::size_t i = 0; parsed->by == "job" && i < std::min(parsed->jobs.size(), kFormersOf);
       ++i) {
    const std::string id = parsed->jobs[i];
    const JobIndex::Entry* entry = world.jobs.find(id);
    if (entry == nullptr || !entry->shown || !sees(*visible, *entry)) continue;
    const Keys& keys = world.jobs.table().keys(entry->slot);
    if (keys.kind != JobKind::kOpenPai || keys.retries_platform + keys.retries_user == 0) continue;
    auto runs = co_await former_attempts(world, user, id);
    formers[id] = std::move(runs);
  }
  co_return SourcePtr(std::make_shared<GanttSource>(
      world, std::move(visible), std::move(*parsed), std::move(formers)));
}

}  // namespace muster::portal
