#include "cli/view/queue_view.h"

#include <fmt/core.h>

#include <map>
#include <set>

#include "base/strings.h"
#include "cli/view/tabwriter.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

using json::at;

std::string word(const json::Value& value) {
  return value.is_string() ? json::text(value) : value.is_null() ? "-" : json::dump(value);
}

std::string gpus(const json::Value& resources) { return word(at(resources, "nvidia.com/gpu")); }

}  // namespace

std::vector<QueueRow> make_queues(const std::vector<const json::Value*>& queues,
                                  const std::vector<const json::Value*>& groups) {
  std::map<std::string, std::map<std::string, int>> counts;
  for (const json::Value* group : groups) {
    const std::string queue(json::as_string(at(*group, "spec", "queue"), "default"));
    ++counts[queue][std::string(json::as_string(at(*group, "status", "phase"), "Pending"))];
  }
  std::vector<QueueRow> rows;
  for (const json::Value* queue : queues) {
    QueueRow row;
    row.name = kube::name_of(*queue);
    row.parent = json::as_string(at(*queue, "spec", "parent"), "-");
    row.state = json::as_string(at(*queue, "status", "state"), "Open");
    row.weight = json::as_int(at(*queue, "spec", "weight"), 1);
    row.priority = json::as_int(at(*queue, "spec", "priority"), 0);
    const std::string allocated = gpus(at(*queue, "status", "allocated"));
    row.allocated = allocated == "-" ? "0" : allocated;
    row.deserved = gpus(at(*queue, "spec", "deserved"));
    row.guarantee = gpus(at(*queue, "spec", "guarantee", "resource"));
    row.capability = gpus(at(*queue, "spec", "capability"));
    std::map<std::string, int>& phases = counts[row.name];
    row.pending = phases["Pending"] + phases[""];
    row.inqueue = phases["Inqueue"];
    row.running = phases["Running"];
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string view_queues(const std::vector<QueueRow>& rows) {
  Rows table;
  table.add({"NAME",
             "PARENT",
             "WEIGHT",
             "STATE",
             "GPU(Allocated)",
             "GPU(Guarantee)",
             "GPU(Deserved)",
             "GPU(Capability)",
             "PENDING",
             "INQUEUE",
             "RUNNING"});
  for (const QueueRow& row : rows) {
    table.add({row.name,
               row.parent,
               std::to_string(row.weight),
               row.state,
               row.allocated,
               row.guarantee,
               row.deserved,
               row.capability,
               std::to_string(row.pending),
               std::to_string(row.inqueue),
               std::to_string(row.running)});
  }
  return table.text();
}

std::string view_queue(const QueueRow& row, const json::Value& queue) {
  std::string out = tabulate(fmt::format(
      "Name:\t{}\nParent:\t{}\nState:\t{}\nWeight:\t{}\nPriority:\t{}\nReclaimable:\t{}\nJobs:\t{} pending, {} in queue, {} running\n",
      row.name,
      row.parent,
      row.state,
      row.weight,
      row.priority,
      json::as_bool(at(queue, "spec", "reclaimable"), true),
      row.pending,
      row.inqueue,
      row.running));
  std::set<std::string> names;
  const std::vector<const json::Value*> maps{&at(queue, "status", "allocated"),
                                             &at(queue, "spec", "guarantee", "resource"),
                                             &at(queue, "spec", "deserved"),
                                             &at(queue, "spec", "capability")};
  for (const json::Value* map : maps) {
    for (const auto& member : json::as_object(*map)) names.emplace(member.key());
  }
  if (names.empty()) return out;
  std::string table = "  RESOURCE\tALLOCATED\tGUARANTEE\tDESERVED\tCAPABILITY\n";
  for (const std::string& name : names) {
    std::vector<std::string> cells{"  " + name};
    for (const json::Value* map : maps) cells.push_back(word(at(*map, name)));
    table += join(cells, "\t") + "\n";
  }
  return out + "\nResources:\n" + tabulate(table);
}

}  // namespace muster::cli
