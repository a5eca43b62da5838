#include "cli/view/view_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "cli/view/tabwriter.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

using json::at;

std::string indented(std::string_view table) {
  std::string out;
  for (const std::string& line :
       split(table.substr(0, table.empty() ? 0 : table.size() - 1), '\n')) {
    out += line.empty() ? "\n" : "  " + line + "\n";
  }
  return out;
}

std::string header_block(const Job& job) {
  std::string text = fmt::format(
      "Name:\t{}\nStatus:\t{}\nNamespace:\t{}\nPriority:\t{}\nTrainer:\t{}\nDuration:\t{}\nCreateTime:\t{}\nEndTime:\t{}\n",
      job.name,
      job.status,
      job.ns,
      job.priority,
      job.trainer->shown(),
      short_human_duration(job.duration),
      local_time(job.created),
      job.ended ? local_time(*job.ended) : "");
  if (!job.queue.empty()) text += fmt::format("Queue:\t{}\n", job.queue);
  if (!job.model_name.empty())
    text += fmt::format("ModelName:\t{}\nModelVersion:\t{}\nModelSource:\t{}\n",
                        job.model_name,
                        job.model_version,
                        job.model_source);
  std::string out;
  for (const std::string& line : split_nonempty(tabulate(text), '\n')) {
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string tensorboard_note(const Job& job) {
  if (job.tensorboard.empty()) return "";
  std::string note = fmt::format("\nYour tensorboard will be available on:\n{}\n", job.tensorboard);
  if (!job.tensorboard_problem.empty())
    note += fmt::format("It does not run yet: {}\n", job.tensorboard_problem);
  return note;
}

std::string allocated(const Job& job) {
  const bool counts = job.status == "PENDING" || job.status == "RUNNING";
  return counts ? std::to_string(job.allocated_gpus) : "N/A";
}

std::string node_of(const Job& job) {
  for (const Instance& instance : job.instances) {
    if (instance.chief && instance.phase != "PENDING") return instance.node_ip;
  }
  return "N/A";
}

/// GPU indexes the agent gave to the pod, if it says so.
std::string device_ids(const Instance& instance) {
  for (const std::string_view key :
       {kube::names::kGpuIndices, std::string_view("scheduler.framework.gpushare.allocation")}) {
    const std::string_view ids = kube::annotation(*instance.pod, key);
    if (!ids.empty()) return std::string(ids);
  }
  return "N/A";
}

}  // namespace

std::string view_job(const Job& job, int columns) {
  std::string out =
      fmt::format("STATUS: {}\nNAMESPACE: {}\nPRIORITY: {}\nTRAINING DURATION: {}\n\n",
                  job.status,
                  job.ns,
                  job.priority,
                  short_human_duration(job.duration));
  Rows rows;
  rows.shrinkable = {0, 4, 5};
  rows.add({"NAME", "STATUS", "TRAINER", "AGE", "INSTANCE", "NODE"});
  for (const Instance& instance : job.instances) {
    rows.add({job.name,
              instance.phase,
              job.trainer->shown(),
              short_human_duration(job.age),
              instance.name,
              instance.node_ip});
  }
  rows.fit(columns);
  return out + rows.text() + tensorboard_note(job);
}

std::string view_job_wide(const Job& job) {
  std::string out = header_block(job) + "\nInstances:\n";
  std::string table =
      "NAME\tSTATUS\tAGE\tIS_CHIEF\tGPU(Requested)\tNODE\n----\t------\t---\t--------\t--------------\t----\n";
  for (const Instance& instance : job.instances) {
    table += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\n",
                         instance.name,
                         instance.status,
                         short_human_duration(instance.age),
                         instance.chief,
                         instance.gpus,
                         instance.phase == "PENDING" ? "N/A" : instance.node);
  }
  return out + indented(tabulate(table)) + tensorboard_note(job);
}

std::string view_job_gpus(const Job& job) {
  if (job.status == "SUCCEEDED" || job.requested_gpus <= 0) return "";
  std::string table =
      "INSTANCE\tNODE(IP)\tGPU(Requested)\tGPU(IndexId)\tGPU(DutyCycle)\tGPU Memory(Used/Total)\n"
      "--------\t--------\t--------------\t------------\t--------------\t----------------------\n";
  for (const Instance& instance : job.instances) {
    if (instance.gpus <= 0) continue;
    table += fmt::format("{}\t{}\t{}\t{}\tN/A\tN/A\n",
                         instance.name,
                         instance.node_ip,
                         instance.gpus,
                         device_ids(instance));
  }
  return fmt::format("\nGPUs:\n{}\n  Allocated/Requested GPUs of Job: {}/{}\n",
                     indented(tabulate(table)),
                     job.allocated_gpus,
                     job.requested_gpus);
}

std::string view_job_events(const std::vector<const json::Value*>& events, Time now) {
  if (events.empty()) return "\nEvents:\n  No events found\n";
  // Grouped by object in the order in which the objects first appear; oldest first inside a group.
  std::vector<std::string> order;
  std::map<std::string, std::vector<const json::Value*>> groups;
  for (const json::Value* event : events) {
    const json::Value& object = at(*event, "involvedObject");
    const std::string source = fmt::format(
        "{}/{}", to_lower(json::string_at(object, "kind")), json::string_at(object, "name"));
    if (!groups.contains(source)) order.push_back(source);
    groups[source].push_back(event);
  }
  std::string table = "SOURCE\tTYPE\tAGE\tMESSAGE\n------\t----\t---\t-------\n";
  for (const std::string& source : order) {
    for (const json::Value* event : groups[source]) {
      Time last;
      for (const char* key : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
        if (last) break;
        if (const auto parsed = parse_time(json::string_at(*event, key)); parsed) last = *parsed;
      }
      if (!last) last = kube::creation_time(*event);
      table += fmt::format("{}\t{}\t{}\t[{}] {}\n",
                           source,
                           json::string_at(*event, "type"),
                           short_human_duration(now - last),
                           json::string_at(*event, "reason"),
                           replace_all(json::string_at(*event, "message"), "\n", " "));
    }
    table += "\n";
  }
  return "\nEvents:\n" + indented(tabulate(table));
}

json::Value job_as_json(const Job& job) {
  json::Array instances;
  const auto seconds = [](Duration d) {
    return fmt::format("{}s", std::max<std::int64_t>(0, d.count() / 1'000'000));
  };
  for (const Instance& instance : job.instances) {
    instances.push_back(json::Object{{"ip", instance.ip},
                                     {"status", instance.status},
                                     {"name", instance.name},
                                     {"age", seconds(instance.age)},
                                     {"node", instance.node},
                                     {"nodeIP", instance.node_ip},
                                     {"chief", instance.chief},
                                     {"requestGPUs", instance.gpus},
                                     {"gpuMetrics", json::Object{}},
                                     {"creationTimestamp", instance.created.seconds()}});
  }
  return json::Object{{"uuid", job.uid},
                      {"name", job.name},
                      {"namespace", job.ns},
                      {"duration", seconds(job.duration)},
                      {"status", job.status},
                      {"trainer", job.trainer->type},
                      {"tensorboard", job.tensorboard},
                      {"chiefName", job.chief},
                      {"instances", std::move(instances)},
                      {"priority", job.priority},
                      {"requestGPUs", job.requested_gpus},
                      {"allocatedGPUs", job.allocated_gpus},
                      {"creationTimestamp", job.created.seconds()},
                      {"modelName", job.model_name},
                      {"modelVersion", job.model_version},
                      {"modelSource", job.model_source}};
}

json::Value job_as_yaml(const Job& job) {
  json::Object object;
  json::Value whole = job_as_json(job);
  for (auto& member : whole.as_object()) {
    const std::string_view key = member.key();
    object[key.starts_with("model") ? to_lower(key) : std::string(key)] = std::move(member.value());
  }
  return object;
}

std::string dump_arena_json(const json::Value& value) {
  std::string out;
  for (const std::string& line : split(json::dump_pretty(value), '\n')) {
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    if (!out.empty()) out += '\n';
    out.append(blanks, ' ');
    out += line;
  }
  return out;
}

namespace {

/// A scalar as the sorted writer quotes it; the lines of a block stand `indent` to the right.
std::string scalar_text(const json::Value& value, int indent) {
  const std::string text = json::to_yaml(value);
  if (std::count(text.begin(), text.end(), '\n') < 2) return text;
  std::string out;
  for (const std::string& line : split(std::string_view(text).substr(0, text.size() - 1), '\n')) {
    if (!out.empty() && !line.empty()) out.append(static_cast<std::size_t>(indent), ' ');
    out += line + "\n";
  }
  return out;
}

void emit_ordered(std::string& out, const json::Value& value, int indent) {
  const std::string pad(static_cast<std::size_t>(indent), ' ');
  if (const json::Object* object = value.if_object(); object != nullptr && !object->empty()) {
    bool first = true;
    for (const auto& member : *object) {
      if (!first) out += pad;
      first = false;
      out += std::string(member.key()) + ":";
      const bool block = (member.value().is_object() && !member.value().get_object().empty()) ||
                         (member.value().is_array() && !member.value().get_array().empty());
      if (!block) {
        out += " " + scalar_text(member.value(), indent + 2);
      } else {
        const int inner = member.value().is_array() ? indent : indent + 2;
        out += "\n" + std::string(static_cast<std::size_t>(inner), ' ');
        emit_ordered(out, member.value(), inner);
      }
    }
  } else if (const json::Array* array = value.if_array(); array != nullptr && !array->empty()) {
    bool first = true;
    for (const json::Value& item : *array) {
      if (!first) out += pad;
      first = false;
      out += "- ";
      emit_ordered(out, item, indent + 2);
    }
  } else {
    out += scalar_text(value, indent);
  }
}

}  // namespace

std::string dump_ordered_yaml(const json::Value& value) {
  std::string out;
  emit_ordered(out, value, 0);
  return out;
}

std::string view_jobs(const std::vector<Job>& jobs, const ListView& view) {
  Rows rows;
  std::vector<std::string> head{
      "NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE"};
  if (view.all_namespaces) head.insert(head.begin(), "NAMESPACE");
  rows.shrinkable =
      view.all_namespaces ? std::vector<std::size_t>{0, 1, 7} : std::vector<std::size_t>{0, 6};
  rows.add(std::move(head));
  for (const Job& job : jobs) {
    std::vector<std::string> row{job.name,
                                 job.status,
                                 job.trainer->shown(),
                                 short_human_duration(job.duration),
                                 std::to_string(job.requested_gpus),
                                 allocated(job),
                                 node_of(job)};
    if (view.all_namespaces) row.insert(row.begin(), job.ns);
    rows.add(std::move(row));
  }
  rows.fit(view.columns);
  return rows.text();
}

std::string view_top_jobs(const std::vector<Job>& jobs, const ListView& view) {
  std::vector<const Job*> sorted;
  for (const Job& job : jobs) sorted.push_back(&job);
  // Most GPUs first; the order of the list (newest first) breaks ties, and the pointers carry it.
  std::sort(sorted.begin(), sorted.end(), [](const Job* a, const Job* b) {
    return a->requested_gpus != b->requested_gpus ? a->requested_gpus > b->requested_gpus : a < b;
  });
  Rows rows;
  std::vector<std::string> head{
      "NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE"};
  if (view.all_namespaces) head.insert(head.begin(), "NAMESPACE");
  rows.shrinkable =
      view.all_namespaces ? std::vector<std::size_t>{0, 1, 7} : std::vector<std::size_t>{0, 6};
  rows.add(std::move(head));
  std::int64_t used = 0, wanted = 0;
  for (const Job* job : sorted) {
    std::vector<std::string> row{job->name,
                                 job->status,
                                 job->trainer->shown(),
                                 short_human_duration(job->duration),
                                 std::to_string(job->requested_gpus),
                                 allocated(*job),
                                 node_of(*job)};
    if (view.all_namespaces) row.insert(row.begin(), job->ns);
    rows.add(std::move(row));
    if (job->status != "RUNNING") continue;
    used += job->allocated_gpus;
    wanted += job->requested_gpus;
  }
  rows.fit(view.columns);
  return fmt::format(
      "{}\nTotal Allocated/Requested GPUs of Training Jobs: {}/{}\n", rows.text(), used, wanted);
}

std::string view_top_job(const Job& job, const std::string& instance) {
  std::string table =
      "NAME\tSTATUS\tGPU(Request)\tNODE\tGPU(DeviceIndex)\tGPU(DutyCycle)\tGPU_MEMORY(Used/Total)\n"
      "----\t------\t------------\t----\t----------------\t--------------\t----------------------\n";
  for (const Instance& each : job.instances) {
    if (!instance.empty() && each.name != instance) continue;
    table += fmt::format("{}\t{}\t{}\t{}\t{}\tN/A\tN/A\n",
                         each.name,
                         each.status,
                         each.gpus,
                         each.node_ip,
                         device_ids(each));
  }
  return fmt::format("{}\nInstances:\n{}\nGPUs:\n  Allocated/Requested GPUs of Job: {}/{}\n",
                     header_block(job),
                     indented(tabulate(table)),
                     job.allocated_gpus,
                     job.requested_gpus);
}

}  // namespace muster::cli
