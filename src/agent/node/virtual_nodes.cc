#include "agent/node/virtual_nodes.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "agent/node/node_info.h"
#include "base/files.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {
namespace {

constexpr int kNodesMax = 10'000;

std::int64_t memory_kib() {
  const auto pages = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<std::int64_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

/// What a node shows until an agent reports which runtime it has.
constexpr const char* kNoRuntime = "muster://0.1.0";

json::Value virtual_node(int index, const NodesRequest& request, Time now) {
  const std::string name = fmt::format("node-{}", index);
  json::Object labels = {{kube::names::kubernetes::kHostname, name},
                         {kube::names::kubernetes::kOs, "linux"},
                         {kube::names::kubernetes::kArch, architecture()},
                         {kube::names::kVirtual, "true"}};
  json::Object capacity = {
      {"cpu", std::to_string(std::max(1U, std::thread::hardware_concurrency()))},
      {"memory", fmt::format("{}Ki", memory_kib())},
      {"ephemeral-storage", "100Gi"},
      {"pods", "110"}};
  // A real GPU is in one node only; the machine's belong to the first.
  const bool real = !request.real_gpus.empty();
  const auto gpus = !real        ? static_cast<std::size_t>(std::max(0, request.gpus))
                    : index == 0 ? request.real_gpus.size()
                                 : 0;
  if (gpus > 0) {
    labels["nvidia.com/gpu.count"] = std::to_string(gpus);
    if (real)
      labels["nvidia.com/gpu.product"] = replace_all(request.real_gpus.front(), " ", "-");
    else
      labels[kube::names::kGpuSimulated] = "true";
    capacity["nvidia.com/gpu"] = std::to_string(gpus);
  }
  return json::Value{{"kind", "Node"},
                     {"apiVersion", "v1"},
                     {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
                     {"spec", json::Object()},
                     {"status",
                      {{"capacity", capacity},
                       {"allocatable", capacity},
                       {"conditions", ready_conditions({}, now)},
                       {"addresses",
                        json::Array{json::Value{{"type", "InternalIP"}, {"address", "127.0.0.1"}},
                                    json::Value{{"type", "Hostname"}, {"address", name}}}},
                       {"nodeInfo", node_info(kNoRuntime)}}}};
}

Result<std::vector<json::Value>> nodes_of_file(const std::string& path, Time now) {
  const auto text = read_file(path);
  if (!text) {
    return fail(Code::kBadRequest,
                fmt::format("--nodes {}: {}; give a number of nodes or a file with Node objects",
                            path,
                            text.error().message));
  }
  const auto documents = json::parse_yaml(*text);
  if (!documents)
    return fail(Code::kBadRequest, fmt::format("--nodes {}: {}", path, documents.error().message));
  std::vector<json::Value> nodes;
  std::set<std::string> names;
  const auto take = [&](const json::Value& object) -> Result<void> {
    const std::size_t number = nodes.size() + 1;
    if (json::string_at(object, "kind") != "Node") {
      return fail(Code::kBadRequest,
                  fmt::format("--nodes {}: object {} is a \"{}\", wanted Node",
                              path,
                              number,
                              json::as_string(json::at(object, "kind"), "(no kind)")));
    }
    json::Value node = object;
    const std::string name(kube::name_of(node));
    if (name.empty())
      return fail(Code::kBadRequest,
                  fmt::format("--nodes {}: object {} has no metadata.name", path, number));
    if (!names.insert(name).second)
      return fail(Code::kBadRequest,
                  fmt::format("--nodes {}: the node \"{}\" is listed twice", path, name));
    node.get_object()["apiVersion"] = "v1";
    for (const std::string_view key :
         {"resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"})
      json::remove(node, {"metadata", key});
    json::Object& labels = json::make_object(node, {"metadata", "labels"});
    if (!labels.contains(kube::names::kubernetes::kHostname))
      labels[kube::names::kubernetes::kHostname] = name;
    labels[kube::names::kVirtual] = "true";
    json::Object& status = json::make_object(node, {"status"});
    if (!status.contains("capacity"))
      status["capacity"] =
          status.contains("allocatable") ? status["allocatable"] : json::Value(json::Object());
    if (!status.contains("allocatable")) status["allocatable"] = status["capacity"];
    if (json::at(node, "status", "allocatable", "pods").is_null()) {
      json::make(node, {"status", "allocatable", "pods"}) = "110";
      json::make(node, {"status", "capacity", "pods"}) = "110";
    }
    if (json::at(node, "status", "conditions").is_null())
      status["conditions"] = ready_conditions({}, now);
    if (json::at(node, "status", "addresses").is_null()) {
      status["addresses"] =
          json::Array{json::Value{{"type", "InternalIP"}, {"address", "127.0.0.1"}},
                      json::Value{{"type", "Hostname"}, {"address", name}}};
    }
    if (json::at(node, "status", "nodeInfo").is_null()) status["nodeInfo"] = node_info(kNoRuntime);
    nodes.push_back(std::move(node));
    return {};
  };
  for (const json::Value& document : *documents) {
    const bool list = json::string_at(document, "kind").ends_with("List");
    if (!list) {
      const auto taken = take(document);
      if (!taken) return fail(taken.error());
      continue;
    }
    for (json::Value item : json::array_at(document, "items")) {
      if (item.is_object() && !item.get_object().contains("kind"))
        item.get_object()["kind"] = "Node";
      const auto taken = take(item);
      if (!taken) return fail(taken.error());
    }
  }
  if (nodes.empty())
    return fail(Code::kBadRequest, fmt::format("--nodes {}: no Node objects in it", path));
  return nodes;
}

}  // namespace

Result<std::vector<json::Value>> plan_nodes(const NodesRequest& request, Time now) {
  const auto count = parse_int(request.nodes);
  if (!count) return nodes_of_file(request.nodes, now);
  if (*count < 0 || *count > kNodesMax)
    return fail(Code::kBadRequest, fmt::format("--nodes {}: wanted 0 to {}", *count, kNodesMax));
  if (request.gpus < 0 || request.gpus > 1024)
    return fail(Code::kBadRequest, fmt::format("--gpus {}: wanted 0 to 1024", request.gpus));
  std::vector<json::Value> nodes;
  for (int i = 0; i < *count; ++i) nodes.push_back(virtual_node(i, request, now));
  return nodes;
}

namespace {

/// So many at once, so that their commits share an fsync.
constexpr std::size_t kNodeWriters = 64;

struct NodeWrites {
  client::Client& client;
  std::vector<json::Value> wanted;
  std::map<std::string, json::Value> present;
  std::size_t next = 0, writers = 0;
  std::optional<Error> failure;
  std::unique_ptr<Signal> done;
};

Task<Result<void>> apply_node(NodeWrites& writes, json::Value node) {
  const client::Resource& kind = client::resources::kNodes;
  const std::string name(kube::name_of(node));
  const json::Value status = json::at(node, "status");
  json::Value live;
  if (const auto found = writes.present.find(name); found != writes.present.end()) {
    live = found->second;
  } else {
    auto made = co_await writes.client.create(kind, "", std::move(node));
    if (!made) co_return fail(made.error());
    live = std::move(*made);
  }
  json::Value patch = {{"status", status}};
  if (json::equal(json::at(live, "status", "capacity"), json::at(status, "capacity")) &&
      !json::at(live, "status", "conditions").is_null()) {
    json::remove(patch, {"status", "capacity"});
    json::remove(patch, {"status", "allocatable"});
  }
  const auto patched = co_await writes.client.patch(
      kind, "", name, "status", client::PatchType::kMerge, std::move(patch), client::Answer::kNone);
  if (!patched) co_return fail(patched.error());
  co_return Result<void>();
}

Task<void> apply_next(NodeWrites& writes) {
  while (writes.next < writes.wanted.size() && !writes.failure) {
    const auto applied = co_await apply_node(writes, std::move(writes.wanted[writes.next++]));
    if (!applied) writes.failure = applied.error();
  }
  --writes.writers;
  writes.done->notify();
}

}  // namespace

Task<Result<void>> apply_nodes(Env& env, client::Client& client, std::vector<json::Value> nodes) {
  const client::Resource& kind = client::resources::kNodes;
  const auto existing = co_await client.list(kind, {});
  if (!existing) co_return fail(existing.error());
  NodeWrites writes{.client = client,
                    .wanted = std::move(nodes),
                    .present = {},
                    .failure = {},
                    .done = env.make_signal()};
  for (const json::Value& node : existing->items)
    writes.present.emplace(std::string(kube::name_of(node)), node);
  std::map<std::string, json::Value> left_over = writes.present;
  for (const json::Value& node : writes.wanted) left_over.erase(std::string(kube::name_of(node)));
  writes.writers = std::min(kNodeWriters, writes.wanted.size());
  for (std::size_t i = writes.writers; i > 0; --i) env.spawn(apply_next(writes));
  while (writes.writers > 0) co_await writes.done->wait(Duration::zero());
  if (writes.failure) co_return fail(*writes.failure);
  for (const auto& [name, node] : left_over) {
    if (kube::label(node, kube::names::kVirtual) != "true") continue;
    const auto removed = co_await client.remove(kind, "", name, {});
    if (!removed && removed.error().code != Code::kNotFound) co_return fail(removed.error());
  }
  co_return Result<void>();
}

}  // namespace muster::agent
