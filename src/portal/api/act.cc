/// What people do to jobs: submit, stop, suspend, resume, tag.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"
#include "portal/api/api.h"
#include "portal/jobs/rows.h"

namespace muster::portal {
Task<Result<std::string>> collection_of(World& world,
                                        const User& user,
                                        const kube::Gvk& gvk,
                                        const std::string& ns) {
  const std::string root = gvk.group.empty() ? "/api/" + gvk.version
                                             : fmt::format("/apis/{}/{}", gvk.group, gvk.version);
  const auto list = co_await world.kube.call_as(user, "GET", root, nullptr);
  if (!list && list.error().code != Code::kNotFound) co_return fail(list.error());
  if (list) {
    for (const json::Value& resource : json::array_at(*list, "resources")) {
      const std::string_view name = json::string_at(resource, "name");
      if (json::string_at(resource, "kind") != gvk.kind || name.find('/') != std::string_view::npos)
        continue;
      const std::string place =
          json::bool_at(resource, "namespaced") ? "/namespaces/" + percent_encode(ns) : "";
      co_return fmt::format("{}{}/{}", root, place, name);
    }
  }
  co_return fail(Code::kNotFound,
                 fmt::format("this cluster has no kind {} in {}; check apiVersion and kind",
                             gvk.kind,
                             gvk.api_version()));
}

namespace {

constexpr std::size_t kIdsMax = 10'000;
constexpr std::size_t kManifestMax = 1024 * 1024;
constexpr const char* kMerge = "application/merge-patch+json";

std::string lower_plural(std::string_view kind) {
  std::string word = to_lower(kind);
  return word + (word.ends_with('s') ? "es" : "s");
}

/// The path of a job's own object.
Result<std::string> path_of(const JobIndex::Entry& entry) {
  if (!entry.object) return fail(Code::kNotFound, "the job's object is gone");
  const kube::Gvk gvk = kube::gvk_of(*entry.object);
  std::string plural = lower_plural(gvk.kind.empty() ? "Pod" : gvk.kind);
  const std::string version = gvk.version.empty() ? "v1" : gvk.version;
  const std::string root =
      gvk.group.empty() ? "/api/" + version : fmt::format("/apis/{}/{}", gvk.group, version);
  return fmt::format(
      "{}/namespaces/{}/{}/{}", root, entry.facts.ns, plural, kube::name_of(*entry.object));
}

json::Value suspend_patch(const JobIndex::Entry& entry, bool suspend) {
  json::Value patch = json::Object{};
  switch (entry.facts.kind) {
    case JobKind::kJob:
      json::make(patch, {"spec", "suspend"}) = suspend;
      break;
    case JobKind::kPyTorchJob:
    case JobKind::kTFJob:
    case JobKind::kXGBoostJob:
    case JobKind::kPaddleJob:
    case JobKind::kJAXJob:
      json::make(patch, {"spec", "runPolicy", "suspend"}) = suspend;
      break;
    case JobKind::kT9kMpiJob:
      json::make(patch, {"spec", "runMode", "pause", "enabled"}) = suspend;
      break;
    default:
      if (json::at(*entry.object, "spec", "runPolicy").is_object() &&
          json::string_at(*entry.object, "apiVersion").ends_with("v2beta1"))
        json::make(patch, {"spec", "runPolicy", "suspend"}) = suspend;
      else
        json::make_object(patch, {"metadata", "annotations"})[kube::names::kSuspend] =
            suspend ? "true" : "false";
  }
  return patch;
}

Result<json::Value> tag_patch(const JobIndex::Entry& entry, const std::string& tag, bool add) {
  if (tag.empty() || tag.size() > 63 || tag.find_first_of(",\n\r") != std::string::npos)
    return fail(Code::kBadRequest, "value: wanted a tag of 1 to 63 bytes without commas");
  std::vector<std::string> tags = entry.facts.tags;
  std::erase(tags, tag);
  if (add) tags.push_back(tag);
  if (tags.size() > 50) return fail(Code::kBadRequest, "a job has at most 50 tags");
  json::Value patch = json::Object{};
  json::make_object(patch, {"metadata", "annotations"})[kube::names::portal::kTags] =
      join(tags, ",");
  return patch;
}

struct Act {
  std::string action, value;
};

/// OpenPAI's jobs are changed through its REST API, whose rules they follow.
Task<Result<void>> act_on_pai(World& world,
                              const User& user,
                              const JobIndex::Entry& entry,
                              Act act) {
  if (!world.options.rest_call)
    co_return fail(Code::kUnavailable, "this server has no OpenPAI REST API");
  const std::string job = "/api/v2/jobs/" + percent_encode(entry.facts.id);
  std::string method = "PUT", target;
  json::Value body;
  if (act.action == "stop") {
    target = job + "/executionType";
    body = {{"value", "STOP"}};
  } else if (act.action == "tag" || act.action == "untag") {
    target = job + "/tag";
    method = act.action == "tag" ? "PUT" : "DELETE";
    body = {{"value", act.value}};
  } else {
    co_return fail(
        Code::kBadRequest,
        fmt::format("an OpenPAI job has no \"{}\"; it can be stopped and tagged", act.action));
  }
  auto done = co_await world.options.rest_call(
      user, std::move(method), std::move(target), json::dump(body), "application/json");
  if (!done) co_return fail(done.error());
  if (done->status >= 300) {
    const auto said = json::parse(done->body);
    co_return fail(code_of("", done->status),
                   said ? json::text_at(*said, "message") : done->body.substr(0, 300));
  }
  co_return Result<void>();
}

Task<Result<void>> act_on_one(World& world, const User& user, std::string id, Act act) {
  const auto found = co_await find_job(world, user, id);
  if (!found) co_return fail(found.error());
  const JobIndex::Entry& entry = **found;
  if (entry.facts.kind == JobKind::kOpenPai && entry.object &&
      json::string_at(*entry.object, "kind") == "Framework") {
    auto done = co_await act_on_pai(world, user, entry, act);
    co_return done;
  }
  const auto path = path_of(entry);
  if (!path) co_return fail(path.error());
  Result<json::Value> done = json::Value();
  if (act.action == "stop") {
    if (entry.facts.kind == JobKind::kPodGroup) {
      std::vector<std::string> pods;
      for (const auto& [name, task] : entry.tasks) pods.push_back(name);
      const std::string ns = entry.facts.ns;
      for (const std::string& pod : pods) {
        done = co_await world.kube.call_as(
            user, "DELETE", fmt::format("/api/v1/namespaces/{}/pods/{}", ns, pod), nullptr);
        if (!done && done.error().code != Code::kNotFound) co_return fail(done.error());
      }
    }
    done = co_await world.kube.call_as(
        user, "DELETE", *path + "?propagationPolicy=Background", nullptr);
  } else if (act.action == "suspend" || act.action == "resume") {
    if (entry.facts.kind == JobKind::kPod || entry.facts.kind == JobKind::kPodGroup)
      co_return fail(Code::kBadRequest, "a pod without a job cannot be suspended");
    done = co_await world.kube.call_as(
        user, "PATCH", *path, suspend_patch(entry, act.action == "suspend"), kMerge);
  } else if (act.action == "tag" || act.action == "untag") {
    auto patch = tag_patch(entry, act.value, act.action == "tag");
    if (!patch) co_return fail(patch.error());
    done = co_await world.kube.call_as(user, "PATCH", *path, std::move(*patch), kMerge);
  } else {
    co_return fail(Code::kBadRequest,
                   fmt::format("\"{}\" is not offered for this kind of job", act.action));
  }
  if (!done) co_return fail(done.error());
  co_return Result<void>();
}

/// The ids an act is about, or a complete answer that says why not.
struct Wanted {
  std::vector<std::string> ids;
  std::optional<net::Response> refused;
};

Task<Wanted> wanted_ids(ApiWorld& api, const User& user, const json::Value& body) {
  Wanted wanted;
  if (json::at(body, "ids").is_array()) {
    for (const json::Value& id : json::array_at(body, "ids")) wanted.ids.push_back(json::text(id));
  } else {
    co_await api.world.jobs.wait_ready();
    const auto query = parse_job_query(json::at(body, "query"), user.name);
    if (!query || !json::at(body, "query").is_object()) {
      wanted.refused = error_answer(
          400, "BadRequest", query ? "wanted ids, or query and expected" : query.error().message);
      co_return wanted;
    }
    const VisiblePtr visible = co_await api.world.rights.visible(user);
    const Table& table = api.world.jobs.table();
    const ViewPtr view = api.world.jobs.table().view(*query, *visible);
    const Page page = table.page(*view, *query, {0, view->order().size()});
    const std::int64_t expected = json::as_int(json::at(body, "expected"), -1);
    if (expected != static_cast<std::int64_t>(page.total)) {
      wanted.refused = json_answer(
          409,
          json::dump(json::Value{
              {"code", "Conflict"},
              {"message",
               fmt::format("{} jobs match now, not {}; check again", page.total, expected)},
              {"found", page.total}}) +
              "\n");
      co_return wanted;
    }
    for (const Slot slot : page.rows) wanted.ids.push_back(table.texts(slot).id);
  }
  if (wanted.ids.size() > kIdsMax)
    wanted.refused = error_answer(
        400, "BadRequest", fmt::format("{} jobs, at most {} at once", wanted.ids.size(), kIdsMax));
  co_return wanted;
}

}  // namespace

Task<void> act_on_jobs(ApiWorld api, ApiCall call) {
  const auto body = json::parse(call.request.body);
  const std::string action = body ? json::text_at(*body, "action") : "";
  const bool known = action == "stop" || action == "suspend" || action == "resume" ||
                     action == "tag" || action == "untag" || action == "priority";
  if (!body || !known) {
    co_await answer(
        call.writer,
        error_answer(
            400, "BadRequest", "action: wanted stop, suspend, resume, tag, untag or priority"));
    co_return;
  }
  Wanted wanted = co_await wanted_ids(api, call.visitor.user, *body);
  if (wanted.refused) {
    co_await answer(call.writer, std::move(*wanted.refused));
    co_return;
  }
  net::Response head;
  head.headers.set("Content-Type", "application/x-ndjson");
  const auto started = co_await call.writer.start(std::move(head));
  if (!started) co_return;
  std::int64_t done = 0, failed = 0;
  for (const std::string& id : wanted.ids) {
    const auto acted = co_await act_on_one(
        api.world, call.visitor.user, id, {action, json::text_at(*body, "value")});
    json::Object line{{"id", id}, {"ok", acted.has_value()}};
    if (!acted) {
      line["code"] = reason_of(acted.error().code);
      line["message"] = acted.error().message;
    }
    ++(acted ? done : failed);
    api.world.trail.note(
        {.user = call.visitor.user.name,
         .from = call.request.peer.address.substr(0, call.request.peer.address.rfind(':')),
         .verb = action,
         .object = id,
         .code = acted ? 200 : http_status_of(acted.error().code),
         .text = acted ? "" : acted.error().message});
    // What was begun is finished, whether they still listen or not.
    const auto sent =
        co_await call.writer.write(std::make_shared<const std::string>(json::dump(line) + "\n"));
    (void)sent;
  }
  const auto sent = co_await call.writer.write(std::make_shared<const std::string>(
      json::dump(json::Value{{"done", done}, {"failed", failed}}) + "\n"));
  (void)sent;
  const auto finished = co_await call.writer.finish();
  (void)finished;
}

Task<void> tell_impact(ApiWorld api, ApiCall call) {
  co_await api.world.jobs.wait_ready();
  const auto query = parse_job_query(query_of_target(call.target), call.visitor.user.name);
  if (!query) {
    co_await answer_error(call.writer, query.error());
    co_return;
  }
  const VisiblePtr visible = co_await api.world.rights.visible(call.visitor.user);
  JobQuery by_user = *query;
  by_user.group = GroupField::kUser;
  const ViewPtr view = api.world.jobs.table().view(by_user, *visible);
  json::Array users;
  std::int64_t total = 0;
  for (const GroupRow& group : api.world.jobs.table().groups(*view, by_user)) {
    const auto states = json::parse(counts_json(group.states));
    users.push_back({{"user", group.value},
                     {"states", states ? *states : json::Value(json::Object{})},
                     {"gpus", group.gpus}});
    total += group.jobs;
  }
  co_await answer_json(call.writer, {{"total", total}, {"users", std::move(users)}});
}

Task<void> submit_job(ApiWorld api, ApiCall call) {
  if (call.request.body.size() > kManifestMax) {
    co_await answer(
        call.writer,
        error_answer(413, "RequestEntityTooLarge", "a manifest may have at most 1 MiB"));
    co_return;
  }
  auto manifest = json::parse_yaml_one(call.request.body, 20'000);
  if (!manifest || !manifest->is_object()) {
    co_await answer(
        call.writer,
        error_answer(
            400, "BadRequest", manifest ? "wanted one job in YAML" : manifest.error().message));
    co_return;
  }
  World& world = api.world;
  if (!json::at(*manifest, "protocolVersion").is_null()) {
    if (!world.options.rest_call) {
      co_await answer(call.writer,
                      error_answer(501, "NotImplemented", "this server has no OpenPAI REST API"));
      co_return;
    }
    auto done = co_await world.options.rest_call(
        call.visitor.user, "POST", "/api/v2/jobs", call.request.body, "text/yaml");
    if (!done) {
      co_await answer_error(call.writer, done.error());
      co_return;
    }
    const std::string name = json::text_at(*manifest, "name");
    if (done->status < 300)
      co_await answer_json(
          call.writer, {{"id", call.visitor.user.name + "~" + name}, {"name", name}}, done->status);
    else
      co_await answer(call.writer, json_answer(done->status, done->body));
    co_return;
  }
  const kube::Gvk gvk = kube::gvk_of(*manifest);
  const std::string ns = kube::namespace_of(*manifest).empty()
                             ? "default"
                             : std::string(kube::namespace_of(*manifest));
  auto where = co_await collection_of(world, call.visitor.user, gvk, ns);
  if (!where) {
    co_await answer_error(call.writer, where.error());
    co_return;
  }
  const auto kind = kind_of_owner(gvk.api_version(), gvk.kind);
  if (kind || gvk.kind == "Pod")
    json::make_object(*manifest, {"metadata", "annotations"})[kube::names::portal::kSubmittedBy] =
        call.visitor.user.name;
  auto made = co_await world.kube.call_as(call.visitor.user, "POST", *where, std::move(*manifest));
  if (!made) {
    co_await answer_error(call.writer, made.error());
    co_return;
  }
  const std::string name(kube::name_of(*made));
  co_await answer_json(
      call.writer, {{"id", job_id(ns, kind.value_or(JobKind::kPod), name)}, {"name", name}}, 201);
}

}  // namespace muster::portal
