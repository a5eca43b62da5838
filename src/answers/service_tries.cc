/// Questions that are tried on a copy: what would become of a job, and of the cluster.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "answers/changes.h"
#include "answers/check.h"
#include "answers/durations.h"
#include "answers/json.h"
#include "answers/service.h"
#include "answers/whatif.h"
#include "base/pace.h"
#include "base/strings.h"

namespace muster::answers {
namespace {

/// CPU that a question may take.
constexpr double kUserCpuS = 2, kAdminCpuS = 20;
/// How long a request is held before its answer is fetched by its id.
constexpr Duration kHold = std::chrono::seconds(2);
constexpr Duration kPatience = std::chrono::seconds(1);
constexpr std::size_t kKnownMax = 16;
constexpr Duration kKnownFor = std::chrono::seconds(60);

std::function<bool()> within(double cpu_s) {
  const double until = thread_cpu_s() + cpu_s;
  return [until] { return thread_cpu_s() < until; };
}

Error nothing_decides() {
  Error error;
  error.code = Code::kNotFound;
  error.message = "no scheduler runs here (--without scheduler)";
  return error;
}

/// What a job "ns/kind/name" is called in questions: that, or "ns/name".
std::vector<std::string> names_of(const std::string& job) {
  const auto parts = split(job, '/');
  if (parts.size() != 3) return {job};
  return {job, parts[0] + "/" + parts[2]};
}

/// Of a gang "volcano:ns/name" or "ns/name".
std::string_view namespace_of_gang(std::string_view gang) {
  const std::size_t colon = gang.find(':');
  if (colon != std::string_view::npos) gang.remove_prefix(colon + 1);
  return gang.substr(0, gang.find('/'));
}

}  // namespace

Task<void> Service::stop() {
  gate_.close();
  (void)co_await gate_.wait_empty(std::chrono::seconds(30));
}

Asker Service::asker_of(const Visitor& visitor,
                        const std::string& ns,
                        const std::string& own,
                        const std::vector<engine::QueueView>& queues) const {
  Asker asker;
  asker.admin = visitor.administers();
  for (const engine::QueueView& queue : queues) {
    if (queue.name != "root" && visitor.uses && visitor.uses(queue.name, ns))
      asker.queues.push_back(queue.name);
  }
  if (cluster_.priorities) {
    for (const auto& [name, value] : cluster_.priorities()) {
      // Kubernetes' own are not for people's work.
      if (!name.starts_with("system-")) asker.priorities.emplace_back(name, value);
    }
  }
  if (recorder_ != nullptr) {
    recorder_->tracker().each([&](Tracked& job) {
      if (job.milli == 0 || job.record.user != visitor.user || job.key == own) return;
      if (asker.own_jobs.size() >= 32) return;
      for (const auto& [pod, held] : job.held) {
        const std::string_view group = group_of_pod(*held.pod);
        asker.own_jobs.push_back(group.empty()
                                     ? pod
                                     : "volcano:" + job.key.substr(0, job.key.find('/') + 1) +
                                           std::string(group));
        break;
      }
    });
  }
  return asker;
}

Task<Result<json::Value>> Service::check(Visitor visitor,
                                         std::string ns,
                                         json::Value manifest,
                                         CheckWish wish) {
  if (live_ == nullptr || !cluster_.draft) co_return fail(nothing_decides());
  const Gate::Pass pass(gate_);
  const auto slot = co_await questions_.enter(visitor.user, kPatience);
  if (!slot) co_return fail(slot.error());
  auto drafted = co_await cluster_.draft(visitor, ns, std::move(manifest));
  if (!drafted) co_return fail(drafted.error());
  const auto draft = std::make_shared<const Draft>(std::move(*drafted));
  const auto ask = std::make_shared<CheckAsk>();
  const auto decision = std::make_shared<Decision>();
  if (!wish.quick) {
    // Queues are read off the copy; who may use them is the loop's to say.
    std::vector<engine::QueueView> queues;
    if (OutlookPtr last = live_->last()) queues = last->copy->queues();
    ask->asker = asker_of(visitor, ns, draft->job(), queues);
    ask->asker.workers_min = wish.shape ? 1 : 0;
    ask->asker.other_pieces = wish.shape;
  }
  ask->forecast = ask->alternatives = ask->revision = !wish.quick;
  double most = visitor.administers() ? kAdminCpuS : kUserCpuS;
  if (wish.cpu_s > 0) most = std::min(most, wish.cpu_s);
  const auto done = co_await live_->look([=](engine::Engine& engine, Time now) {
    ask->go_on = within(most);
    *decision = answers::check(engine, now, *draft, *ask);
  });
  if (!done) co_return fail(done.error());
  const Naming naming = [&](std::string_view gang) { return name_for(visitor, gang); };
  json::Value out = decision_json(*decision, naming);
  out.as_object()["job"] = draft->job();
  if (!draft->refused_reason.empty()) out.as_object()["reason"] = draft->refused_reason;
  for (json::Value& victim : out.as_object()["victims"].as_array()) {
    const Tracked* job =
        recorder_ != nullptr ? recorder_->tracker().find(json::text_at(victim, "job")) : nullptr;
    if (job == nullptr) continue;
    json::Object& row = victim.as_object();
    row["user"] = job->record.user;
    row["gpus"] = static_cast<double>(job->milli) / 1000;
    double lost = 0;
    for (const auto& [pod, held] : job->held)
      lost = std::max(lost, static_cast<double>((env_.now() - held.since).count()) / 1e6);
    row["lostSeconds"] = static_cast<std::int64_t>(lost);
  }
  co_return out;
}

Task<Result<Service::Answered>> Service::what_if(Visitor visitor, json::Value question) {
  if (live_ == nullptr) co_return fail(nothing_decides());
  if (!question.is_object())
    co_return fail(Code::kBadRequest,
                   "wanted {\"changes\": […], \"horizon\": \"24h\", \"jobs\": […]}");
  auto slot = co_await questions_.enter(visitor.user, Duration::zero());
  if (!slot) co_return fail(slot.error());
  const std::shared_ptr<Questions::Later> later = questions_.begin(visitor.user);
  env_.spawn(work_out(later, std::move(*slot), visitor, std::move(question)));
  const Duration until = env_.monotonic() + kHold;
  while (!later->done && env_.monotonic() < until)
    (void)co_await later->ended->wait(until - env_.monotonic());
  if (!later->done) co_return Answered{202, json::Object{{"id", later->id}}};
  questions_.forget(later->id);
  if (!later->answer) co_return fail(later->answer.error());
  co_return Answered{200, *later->answer};
}

Result<Service::Answered> Service::find_what_if(const Visitor& visitor, const std::string& id) {
  const auto later = questions_.find(id, visitor.user);
  if (!later)
    return fail(
        Code::kNotFound,
        fmt::format("there is no question {}: answers are kept for 10 minutes", quoted(id)));
  if (!later->done) return Answered{202, json::Object{{"id", id}}};
  if (!later->answer) return fail(later->answer.error());
  return Answered{200, *later->answer};
}

Task<void> Service::work_out(std::shared_ptr<Questions::Later> later,
                             Questions::Slot slot,
                             Visitor visitor,
                             json::Value question) {
  const Gate::Pass pass(gate_);
  const Questions::Slot held = std::move(slot);
  later->answer = co_await try_changes(std::move(visitor), std::move(question));
  later->done = true;
  later->ended->notify();
}

Task<Result<std::map<std::string, std::vector<std::string>>>> Service::gangs_of(
    const Visitor& visitor, std::vector<std::string> jobs) {
  std::map<std::string, std::vector<std::string>> out;
  if (jobs.empty()) co_return out;
  const auto keys = std::make_shared<std::vector<std::string>>();
  const auto wanted = std::make_shared<std::set<std::string, std::less<>>>();
  for (const std::string& job : jobs) wanted->insert(job.substr(0, job.find('/')));
  const auto done = co_await live_->look([=](engine::Engine& engine, Time) {
    for (engine::GangView& gang : engine.gangs()) {
      if (wanted->contains(namespace_of_gang(gang.key))) keys->push_back(std::move(gang.key));
    }
  });
  if (!done) co_return fail(done.error());
  const std::set<std::string> asked(jobs.begin(), jobs.end());
  Pace pace(env_);
  for (const std::string& key : *keys) {
    if (pace.over()) co_await pace.rest();
    for (const std::string& name : names_of(name_for(visitor, key))) {
      if (asked.contains(name)) out[name].push_back(key);
    }
  }
  co_return out;
}

namespace {

/// How far to look, and how often.
Result<Ask> ask_of(const json::Value& question) {
  Ask ask;
  ask.horizon = std::chrono::hours(24);
  const std::string_view text = json::string_at(question, "horizon");
  if (text.empty()) return ask;
  const auto horizon = parse_duration(text);
  if (!horizon || horizon->count() <= 0 || *horizon > std::chrono::hours(24 * 30))
    return fail(Code::kBadRequest,
                fmt::format("horizon {}: wanted a duration up to 720h, such as 24h", quoted(text)));
  ask.horizon = *horizon;
  return ask;
}

/// What the jobs that changes submit become.
Task<Result<std::vector<Draft>>> drafts_of(const Service::Cluster& cluster,
                                           const Visitor& visitor,
                                           const json::Value& list) {
  const auto manifests = manifests_of(list);
  if (!manifests) co_return fail(manifests.error());
  std::vector<Draft> drafts;
  for (const ToSubmit& one : *manifests) {
    if (!cluster.draft) co_return fail(nothing_decides());
    const std::string ns(json::string_at(one.manifest, "metadata", "namespace"));
    auto drafted = co_await cluster.draft(visitor, ns.empty() ? "default" : ns, one.manifest);
    if (!drafted) co_return fail(drafted.error());
    drafts.push_back(std::move(*drafted));
  }
  co_return drafts;
}

/// What new cells do to gangs that run, a sentence each.
Task<Result<std::vector<std::string>>> effects_of(const Service::Cluster& cluster,
                                                  const Visitor& visitor,
                                                  const json::Value& list) {
  std::vector<std::string> effects;
  for (const std::string& text : cells_of(list)) {
    if (!cluster.preview_cells) break;
    auto told = co_await cluster.preview_cells(text);
    if (!told) co_return fail(Code::kInvalid, "hived: " + told.error().message);
    // Gangs of all teams are named in it.
    if (!visitor.administers() && !told->empty())
      *told = {fmt::format("the cells of {} gangs change", told->size())};
    effects.insert(effects.end(), told->begin(), told->end());
  }
  co_return effects;
}

}  // namespace

Task<Result<json::Value>> Service::try_changes(Visitor visitor, json::Value question) {
  const json::Value& list = json::at(question, "changes");
  auto made = ask_of(question);
  if (!made) co_return fail(made.error());
  Ask& ask = *made;
  std::vector<std::string> jobs = jobs_named(list);
  std::vector<std::string> shown;
  for (const json::Value& one : json::array_at(question, "jobs")) {
    shown.push_back(json::text(one));
    jobs.push_back(json::text(one));
  }
  auto gangs = co_await gangs_of(visitor, jobs);
  if (!gangs) co_return fail(gangs.error());
  for (const std::string& job : shown) {
    if (!gangs->contains(job))
      co_return fail(Code::kNotFound, fmt::format("{}: nothing of it waits or runs", quoted(job)));
    for (const std::string& gang : gangs->at(job)) ask.jobs.push_back(gang);
  }
  auto drafts = co_await drafts_of(cluster_, visitor, list);
  if (!drafts) co_return fail(drafts.error());
  const auto effects = co_await effects_of(cluster_, visitor, list);
  if (!effects) co_return fail(effects.error());
  std::map<std::string, std::int32_t> priorities;
  if (cluster_.priorities) priorities = cluster_.priorities();
  const auto result = std::make_shared<Result<WhatIf>>(fail(Code::kInternal, "not looked at"));
  const double most = visitor.administers() ? kAdminCpuS : kUserCpuS;
  const std::string asked = json::dump(question);
  std::erase_if(known_, [&](const auto& one) { return env_.now() - one.second->at > kKnownFor; });
  const auto known = known_;  // the worker's own
  std::string key;
  const auto done = co_await live_->look([&, result](engine::Engine& engine, Time now) {
    const double begun = thread_cpu_s();
    key = fmt::format("{:x} {} {}", engine.digest(), visitor.user, asked);
    if (known.contains(key)) return;
    const ChangeSources from{engine,
                             std::move(*gangs),
                             std::move(*drafts),
                             std::move(priorities),
                             cluster_.parse_policy};
    const auto changes = read_changes(list, from);
    if (!changes) {
      *result = fail(changes.error());
      return;
    }
    const SharedDraws lasting(engine, now);
    ask.go_on = within(most);
    *result = answers::what_if(engine, now, lasting, *changes, ask);
    (*result)->cpu_s = thread_cpu_s() - begun;
  });
  if (!done) co_return fail(done.error());
  if (const auto found = known.find(key); found != known.end()) co_return found->second->answer;
  if (!*result) co_return fail(result->error());
  const Naming naming = [&](std::string_view gang) { return name_for(visitor, gang); };
  (*result)->warnings.insert((*result)->warnings.end(), effects->begin(), effects->end());
  json::Value answer = whatif_json(**result, naming);
  while (known_.size() >= kKnownMax) {
    known_.erase(std::min_element(known_.begin(), known_.end(), [](const auto& a, const auto& b) {
      return a.second->at < b.second->at;
    }));
  }
  known_[key] = std::make_shared<const Known>(Known{env_.now(), answer});
  co_return answer;
}

}  // namespace muster::answers
