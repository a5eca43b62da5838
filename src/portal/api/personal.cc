/// What belongs to one person: saved views, own sessions; and small look-ups for the pages.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"
#include "net/tls/tls.h"
#include "portal/api/api.h"
#include "portal/jobs/rows.h"
#include "portal/topics/node_row.h"

namespace muster::portal {
namespace {

constexpr const char* kNamespace = "kube-system";
constexpr std::size_t kViewsMax = 100;

/// One ConfigMap a person; names of people may hold what names of objects may not.
std::string views_name(const std::string& user) {
  std::string hex;
  for (const char byte : net::sha256(user).substr(0, 10))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return "muster-views-" + hex;
}

Task<Result<json::Array>> read_views(World& world, const std::string& user) {
  const auto kept = co_await read_kept(world, user, "views");
  if (!kept) co_return fail(kept.error());
  co_return json::as_array(*kept);
}

}  // namespace

Task<Result<json::Value>> read_kept(World& world, std::string user, std::string what) {
  const auto map =
      co_await world.kube.own().get(client::resources::kConfigMaps, kNamespace, views_name(user));
  if (!map && map.error().code != Code::kNotFound) co_return fail(map.error());
  if (!map) co_return json::Value();
  auto kept = json::parse(json::string_at(*map, "data", what));
  co_return kept ? std::move(*kept) : json::Value();
}

Task<Result<void>> write_kept(World& world, std::string user, std::string what, json::Value value) {
  json::Value map = json::Object{};
  json::make(map, {"apiVersion"}) = "v1";
  json::make(map, {"kind"}) = "ConfigMap";
  json::make(map, {"metadata", "name"}) = views_name(user);
  json::make(map, {"metadata", "namespace"}) = kNamespace;
  json::make_object(map, {"metadata", "labels"})[kube::names::portal::kPart] = "views";
  json::make(map, {"data", "user"}) = user;
  json::make(map, {"data", what}) = json::dump(value);
  auto done = co_await world.kube.own().patch(client::resources::kConfigMaps,
                                              kNamespace,
                                              views_name(user),
                                              "",
                                              client::PatchType::kMerge,
                                              map);
  if (!done && done.error().code == Code::kNotFound)
    done = co_await world.kube.own().create(
        client::resources::kConfigMaps, kNamespace, std::move(map));
  if (!done) co_return fail(done.error());
  co_return Result<void>();
}

Task<void> serve_views(ApiWorld api, ApiCall call) {
  const std::string user = call.visitor.user.name;
  auto views = co_await read_views(api.world, user);
  if (!views) {
    co_await answer_error(call.writer, views.error());
    co_return;
  }
  if (call.path.size() == 1 && call.request.method == "GET") {
    co_await answer_json(call.writer, std::move(*views));
    co_return;
  }
  if (call.path.size() != 2 || (call.request.method != "PUT" && call.request.method != "DELETE")) {
    co_await answer(
        call.writer,
        error_answer(404, "NotFound", "there are GET views, PUT and DELETE views/NAME"));
    co_return;
  }
  const std::string name = call.path[1];
  const auto found = std::find_if(views->begin(), views->end(), [&](const json::Value& one) {
    return json::string_at(one, "name") == name;
  });
  if (call.request.method == "DELETE") {
    if (found != views->end()) views->erase(found);
  } else {
    const auto body = json::parse(call.request.body);
    if (!body || !body->is_object() || call.request.body.size() > 8192 || name.size() > 100 ||
        name.empty()) {
      co_await answer(
          call.writer,
          error_answer(400,
                       "BadRequest",
                       "wanted {page, query} of at most 8 KiB, and a name of at most 100 bytes"));
      co_return;
    }
    json::Value view{{"name", name},
                     {"page", json::text_at(*body, "page")},
                     {"query", json::text_at(*body, "query")}};
    if (found != views->end())
      *found = std::move(view);
    else if (views->size() >= kViewsMax) {
      co_await answer(
          call.writer,
          error_answer(400, "BadRequest", fmt::format("at most {} views are kept", kViewsMax)));
      co_return;
    } else
      views->push_back(std::move(view));
  }
  const auto written = co_await write_kept(api.world, user, "views", *views);
  if (!written)
    co_await answer_error(call.writer, written.error());
  else
    co_await answer_json(call.writer, std::move(*views));
}

Task<void> serve_sessions(ApiWorld api, ApiCall call) {
  const std::string& user = call.visitor.user.name;
  if (call.path.size() == 1 && call.request.method == "GET") {
    json::Array rows;
    for (const Session* session : api.sessions.of_user(user))
      rows.push_back({{"id", session->id},
                      {"here", session->id == call.visitor.session},
                      {"from", session->from},
                      {"agent", session->agent},
                      {"began", session->began.us / 1000},
                      {"seen", session->seen.us / 1000}});
    co_await answer_json(call.writer, std::move(rows));
    co_return;
  }
  if (call.path.size() == 2 && call.path[1] == "seen" && call.request.method == "GET") {
    if (!call.visitor.user.admin) {
      co_await answer(call.writer,
                      error_answer(403, "Forbidden", "who was here when is for administrators"));
      co_return;
    }
    json::Object seen;
    for (const auto& [name, last] : api.sessions.last_seen()) seen[name] = last.us / 1000;
    co_await answer_json(call.writer, std::move(seen));
    co_return;
  }
  if (call.path.size() == 2 && call.request.method == "DELETE") {
    const Session* session = api.sessions.by_id(call.path[1]);
    if (session != nullptr && (session->user.name == user || call.visitor.user.admin)) {
      co_await api.sessions.end(session->id);
      co_await answer_json(call.writer, json::Object{});
      co_return;
    }
  }
  co_await answer(call.writer, error_answer(404, "NotFound", "there is no such session of yours"));
}

namespace {

json::Value search(World& world,
                   const Visible& visible,
                   const User& user,
                   const std::string& text) {
  JobQuery query;
  query.text = to_lower(text);
  const ViewPtr view = world.jobs.table().view(query, visible);
  const Table& table = world.jobs.table();
  json::Array jobs, nodes, users;
  for (const Slot slot : table.page(*view, query, {0, 10}).rows)
    jobs.push_back({{"id", table.texts(slot).id},
                    {"name", table.texts(slot).name},
                    {"user", table.words().text(table.keys(slot).user)},
                    {"state", state_name(table.keys(slot).state)}});
  for (const auto& [name, node] : world.nodes.all()) {
    if (nodes.size() < 10 && to_lower(name).find(query.text) != std::string::npos)
      nodes.push_back(json::Value(name));
  }
  std::set<std::string> names;
  for (const Slot slot : view->order()) {
    if (names.size() >= 200) break;
    names.insert(table.words().text(table.keys(slot).user));
  }
  names.insert(user.name);
  for (const std::string& name : names) {
    if (users.size() < 10 && !name.empty() && to_lower(name).find(query.text) != std::string::npos)
      users.push_back(json::Value(name));
  }
  return {{"jobs", std::move(jobs)}, {"nodes", std::move(nodes)}, {"users", std::move(users)}};
}

json::Value suggest(World& world,
                    const Visible& visible,
                    const std::string& field,
                    const std::string& text) {
  std::set<std::string> values;
  const auto add_all = [&](const client::Resource& resource) {
    for (const auto& [key, object] : world.informers.get(resource).objects()) values.insert(key);
  };
  if (field == "queue") add_all(client::resources::kQueues);
  if (field == "priority") add_all(client::resources::kPriorityClasses);
  if (field == "namespace") {
    for (const auto& [key, object] :
         world.informers.get(client::resources::kNamespaces).objects()) {
      if (visible.sees(key)) values.insert(key);
    }
  }
  if (field == "node") {
    for (const auto& [name, node] : world.nodes.all()) values.insert(name);
  }
  const Table& table = world.jobs.table();
  if (field == "user" || field == "vc") {
    const ViewPtr view = world.jobs.table().view({}, visible);
    for (const Slot slot : view->order())
      values.insert(
          table.words().text(field == "user" ? table.keys(slot).user : table.keys(slot).vc));
  }
  json::Array list;
  for (const std::string& value : values) {
    if (list.size() >= 50) break;
    if (!value.empty() && to_lower(value).find(to_lower(text)) != std::string::npos)
      list.push_back({{"value", value}, {"text", ""}});
  }
  return {{"values", std::move(list)}};
}

}  // namespace

Task<void> serve_lookup(ApiWorld api, ApiCall call) {
  co_await api.world.jobs.wait_ready();
  const VisiblePtr visible = co_await api.world.rights.visible(call.visitor.user);
  const std::string text(call.target.get("q").substr(0, 200));
  if (call.path[0] == "search") {
    co_await answer_json(call.writer, search(api.world, *visible, call.visitor.user, text));
  } else if (call.path[0] == "suggest") {
    co_await answer_json(call.writer,
                         suggest(api.world, *visible, std::string(call.target.get("field")), text));
  } else {
    json::Array components;
    components.push_back({{"name", "portal"},
                          {"state", "ok"},
                          {"version", api.world.options.version},
                          {"leader", ""},
                          {"text", fmt::format("open tabs: {}", api.hub.sockets())},
                          {"since", nullptr}});
    components.push_back(
        {{"name", "scheduler"},
         {"state", api.world.options.queues ? "ok" : "degraded"},
         {"version", api.world.options.version},
         {"leader", ""},
         {"text", api.world.options.queues ? "in this process" : "not in this process"},
         {"since", nullptr}});
    co_await answer_json(call.writer,
                         {{"components", std::move(components)},
                          {"queues", json::Array{}},
                          {"errors", json::Array{}}});
  }
}

Task<void> serve_node(ApiWorld api, ApiCall call) {
  co_await api.world.jobs.wait_ready();
  const VisiblePtr visible = co_await api.world.rights.visible(call.visitor.user);
  const NodeFacts* node = api.world.nodes.find(call.path[1]);
  const client::ObjectPtr object = api.world.nodes.object(call.path[1]);
  if (node == nullptr || !object) {
    co_await answer(
        call.writer,
        error_answer(
            404, "NotFound", fmt::format("there is no node \"{}\"", call.path[1].substr(0, 100))));
    co_return;
  }
  json::Array tasks, conditions, addresses;
  for (const auto& [pod, on] : api.world.jobs.on_node(node->name)) {
    if (!sees(*visible, *on.entry)) continue;
    const std::string_view state =
        on.task->state == TaskState::kStarting ? "WAITING" : task_state_name(on.task->state);
    tasks.push_back(
        {{"job", on.entry->facts.id},
         {"task", task_id(*on.task)},
         {"user", on.entry->facts.user},
         {"state", state},
         {"gpus", on.task->gpus},
         {"started",
          on.task->started == 0 ? json::Value(nullptr) : json::Value(on.task->started)}});
  }
  for (const json::Value& one : json::array_at(*object, "status", "conditions"))
    conditions.push_back({{"type", json::text_at(one, "type")},
                          {"status", json::text_at(one, "status")},
                          {"reason", json::text_at(one, "reason")},
                          {"message", json::text_at(one, "message")},
                          {"since", millis_at(json::at(one, "lastTransitionTime"))}});
  for (const json::Value& one : json::array_at(*object, "status", "addresses"))
    addresses.push_back(json::at(one, "address"));
  json::Value labels = json::at(*object, "metadata", "labels");
  json::Value row = node_row(api.world, *visible, *node);
  const std::string name = node->name;
  const bool may = co_await api.world.kube.may(
      call.visitor.user, {.verb = "patch", .resource = "nodes", .name = name});
  co_await answer_json(call.writer,
                       {{"row", std::move(row)},
                        {"labels", std::move(labels)},
                        {"addresses", std::move(addresses)},
                        {"kubelet", json::text_at(*object, "status", "nodeInfo", "kubeletVersion")},
                        {"tasks", std::move(tasks)},
                        {"conditions", std::move(conditions)},
                        {"may", {{"cordon", may}, {"drain", may}}}});
}

}  // namespace muster::portal
