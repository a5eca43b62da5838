#include "controllers/queue/controller.h"

#include <utility>

#include "base/log.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers::queue {
namespace {

namespace r = client::resources;

std::string queue_of(const json::Value& group) {
  return std::string(json::as_string(json::at(group, "spec", "queue"), "default"));
}

std::string phase_of_group(const json::Value& group) {
  return json::text_at(group, "status", "phase");
}

}  // namespace

Controller::Controller(Env& env, client::Client& client, client::Informers& informers)
    : client_(client),
      queues_(informers.get(r::kQueues)),
      events_(client::make_event_recorder(env, client, "queue-controller", "")) {
  client::WorkQueueOptions options;
  options.workers = 1;  // A parent's word must not race its children's.
  work_ = client::make_work_queue(
      env, [this](std::string key) { return work(std::move(key)); }, options);
  client::InformerHandlers queues, groups, commands;
  queues.on_change = [this](const client::ObjectPtr& old_object,
                            const client::ObjectPtr& new_object) {
    work_->add(name_of(new_object ? *new_object : *old_object));
  };
  groups.on_change = [this](const client::ObjectPtr& old_object,
                            const client::ObjectPtr& new_object) {
    group_changed(old_object, new_object);
  };
  commands.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr& new_object) {
    if (new_object) command_seen(new_object);
  };
  queues_.add_handlers(std::move(queues));
  informers.get(r::kPodGroups).add_handlers(std::move(groups));
  informers.get(client::resources::kCommands).add_handlers(std::move(commands));
}

void Controller::group_changed(const client::ObjectPtr& old_object,
                               const client::ObjectPtr& new_object) {
  if (old_object && new_object && queue_of(*old_object) == queue_of(*new_object) &&
      phase_of_group(*old_object) == phase_of_group(*new_object))
    return;
  for (const auto& [object, n] : {std::pair{&old_object, -1}, std::pair{&new_object, 1}}) {
    if (!*object) continue;
    counts_[queue_of(**object)].add(phase_of_group(**object), n);
    work_->add(queue_of(**object));
  }
}

void Controller::command_seen(const client::ObjectPtr& command) {
  if (json::string_at(*command, "target", "kind") != "Queue") return;
  const auto name = json::text_at(*command, "target", "name");
  commands_[name] = {json::text_at(*command, "action"), client::key_of(*command)};
  work_->add(name);
}

Task<Result<void>> Controller::work(std::string name) {
  const auto command = commands_.contains(name) ? commands_[name] : Command{};
  if (!command.key.empty()) {
    // A command is said once: it goes before it is obeyed.
    const auto slash = command.key.find('/');
    client::DeleteOptions options;
    const auto gone = co_await client_.remove(client::resources::kCommands,
                                              command.key.substr(0, slash),
                                              command.key.substr(slash + 1),
                                              std::move(options));
    if (!gone && gone.error().code != Code::kNotFound) co_return fail(gone.error());
  }
  const auto queue = queues_.find(name);
  commands_.erase(name);
  if (!queue) co_return Result<void>{};
  Objects all;
  for (const auto& [key, object] : queues_.objects()) all.push_back(object.get());
  const Counts counts = counts_[name];
  Decision decision = decide(*queue, all, counts, command.action);
  if (!decision.refused.empty())
    events_->record(*queue, "Warning", command.action, "refused: " + decision.refused);
  else if (!command.action.empty())
    events_->record(
        *queue, "Normal", command.action, command.action + " is done: " + decision.state);

  json::Object status{{"state", decision.state}};
  const auto counter = [&](const char* field, int value) {
    if (value > 0)
      status[field] = value;
    else if (!json::at(*queue, "status", field).is_null())
      status[field] = nullptr;
  };
  counter("pending", counts.pending);
  counter("inqueue", counts.inqueue);
  counter("running", counts.running);
  counter("unknown", counts.unknown);
  counter("completed", counts.completed);
  json::Value merged = json::at(*queue, "status");
  json::merge_patch(merged, json::Value(status));
  if (!json::equal(merged, json::at(*queue, "status"))) {
    json::Value patch = json::Object{};
    json::make(patch, {"status"}) = std::move(status);
    const auto written = co_await client_.patch(
        r::kQueues, "", name, "status", client::PatchType::kMerge, std::move(patch));
    if (!written && written.error().code != Code::kNotFound) co_return fail(written.error());
  }
  // Whoever names no parent hangs from the root.
  if (name != "root" && json::string_at(*queue, "spec", "parent").empty()) {
    json::Value patch = json::Object{};
    json::make(patch, {"spec", "parent"}) = "root";
    const auto written = co_await client_.patch(
        r::kQueues, "", name, "", client::PatchType::kMerge, std::move(patch));
    if (!written && written.error().code != Code::kNotFound) co_return fail(written.error());
  }
  const auto obeyed = co_await obey(name, std::move(decision));
  co_return obeyed;
}

/// The queues below follow: marked and closed, or opened and unmarked.
Task<Result<void>> Controller::obey(std::string name, Decision decision) {
  for (const bool closing : {true, false}) {
    for (const std::string& child : closing ? decision.close : decision.open) {
      json::Value patch = json::Object{};
      json::Value& mark =
          json::make(patch, {"metadata", "annotations", kube::names::volcano::kClosedByParent});
      if (closing)
        mark = "true";
      else
        mark = nullptr;
      const auto written = co_await client_.patch(
          r::kQueues, "", child, "", client::PatchType::kMerge, std::move(patch));
      if (!written && written.error().code != Code::kNotFound) co_return fail(written.error());
      log::info("queues", "{} {} with its parent {}", child, closing ? "closes" : "opens", name);
      commands_[child] = {closing ? "CloseQueue" : "OpenQueue", ""};
      work_->add(child);
    }
  }
  co_return Result<void>{};
}

Task<void> Controller::stop() {
  co_await work_->stop();
  co_await events_->flush();
}

}  // namespace muster::controllers::queue
