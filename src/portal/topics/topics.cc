#include "portal/topics/topics.h"

#include <fmt/core.h>

namespace muster::portal {
namespace {

Result<void> no_query(const json::Value& query) {
  if (query.is_null() || (query.is_object() && query.get_object().empty())) return {};
  return fail(Code::kBadRequest, "query: this topic has none");
}

}  // namespace

bool sees(const Visible& visible, const JobIndex::Entry& entry) {
  return visible.sees(entry.facts.ns) || (visible.openpai && entry.facts.kind == JobKind::kOpenPai);
}

Task<Result<const JobIndex::Entry*>> find_job(World& world, User user, std::string id) {
  co_await world.jobs.wait_ready();
  const VisiblePtr visible = co_await world.rights.visible(user);
  const JobIndex::Entry* entry = world.jobs.find(id);
  if (entry == nullptr || !sees(*visible, *entry))
    co_return fail(Code::kNotFound,
                   fmt::format("there is no job \"{}\", or you may not see it", id));
  co_return entry;
}

Task<Result<SourcePtr>> open_topic(World& world, User user, std::string topic, json::Value query) {
  co_await world.jobs.wait_ready();
  const VisiblePtr visible = co_await world.rights.visible(user);
  if (topic == "jobs") co_return jobs_topic(world, user, visible, query);
  if (topic == "nodes") co_return nodes_topic(world, visible, query);
  if (topic == "events") co_return events_topic(world, visible, query);
  if (topic == "gantt") {
    auto source = co_await gantt_topic(world, user, visible, query);
    co_return source;
  }
  if (topic.starts_with("job/") || topic.starts_with("tasks/")) {
    const bool tasks = topic.starts_with("tasks/");
    const std::string id = topic.substr(tasks ? 6 : 4);
    const JobIndex::Entry* entry = world.jobs.find(id);
    if (entry == nullptr || !sees(*visible, *entry))
      co_return fail(Code::kNotFound,
                     fmt::format("there is no job \"{}\", or you may not see it", id));
    if (tasks) co_return tasks_topic(world, id, query);
    co_return job_topic(world, user, visible, id);
  }
  if (const auto none = no_query(query); !none) co_return fail(none.error());
  if (topic == "counts") co_return counts_topic(world, user, visible);
  if (topic == "tenants") co_return tenants_topic(world, user);
  if (topic == "topology") co_return topology_topic(world, visible);
  co_return fail(
      Code::kNotFound,
      fmt::format(
          "there is no topic \"{}\"; there are jobs, job/ID, tasks/ID, counts, tenants, nodes, topology, events and gantt",
          topic.substr(0, 100)));
}

}  // namespace muster::portal
