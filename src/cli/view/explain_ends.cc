#include "cli/view/explain_ends.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/quantity.h"
#include "kube/pod_end.h"

namespace muster::cli {
namespace {

std::int64_t gpus_of_node(const json::Value& node) {
  std::int64_t all = 0;
  for (const std::string_view resource : {"nvidia.com/gpu", "aliyun.com/gpu"}) {
    const json::Value& amount = json::at(node, "status", "allocatable", resource);
    if (amount.is_null()) continue;
    const auto parsed = parse_quantity(amount.is_string() ? std::string(json::as_string(amount))
                                                          : json::dump(amount));
    if (parsed) all = std::max(all, parsed->units());
  }
  return all;
}

std::string count(std::int64_t n, std::string_view word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

bool loops(const json::Value& status) {
  return json::int_at(status, "restartCount") > 0 &&
         (json::string_at(status, "state", "waiting", "reason") == "CrashLoopBackOff" ||
          !kube::how_container_ended(status).empty());
}

/// The sizes of all members, the largest first. A job that has no instances yet is taken as a whole.
std::vector<std::int64_t> sizes_of(const Job& job) {
  std::vector<std::int64_t> out;
  for (const Instance& instance : job.instances) out.push_back(instance.gpus);
  if (out.empty()) out.push_back(job.requested_gpus);
  std::sort(out.rbegin(), out.rend());
  return out;
}

}  // namespace

std::vector<Crash> crashes_of(const Job& job, std::size_t most) {
  std::vector<Crash> out;
  for (const Instance& instance : job.instances) {
    for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
      for (const json::Value& status : json::array_at(*instance.pod, "status", list)) {
        const bool ended = json::at(status, "state", "terminated").is_object();
        std::string how = kube::how_container_ended(status);
        if (how.empty() || (!ended && !loops(status)) || out.size() >= most) continue;
        out.push_back({.instance = &instance,
                       .container = json::text_at(status, "name"),
                       .how = std::move(how),
                       .restarts = json::int_at(status, "restartCount"),
                       .waits = !ended});
      }
    }
  }
  return out;
}

bool crash_loops(const Job& job) {
  return std::any_of(job.instances.begin(), job.instances.end(), [](const Instance& instance) {
    const json::Array& statuses = json::array_at(*instance.pod, "status", "containerStatuses");
    return std::any_of(statuses.begin(), statuses.end(), [](const json::Value& status) {
      return json::string_at(status, "state", "waiting", "reason") == "CrashLoopBackOff";
    });
  });
}

std::string crash_part(const std::vector<Crash>& crashes) {
  std::string out;
  for (const Crash& crash : crashes) {
    const std::string often =
        crash.restarts == 1 ? "once" : fmt::format("{} times", crash.restarts);
    out += fmt::format("  {}{}: {}{}\n",
                       crash.instance->name,
                       crash.container.empty() ? "" : ", container " + crash.container,
                       crash.how,
                       crash.restarts > 0 ? "; started again " + often : "");
    for (const std::string& line : crash.lines) out += fmt::format("    {}\n", line);
  }
  return out.empty() ? "" : "\nEnded badly:\n" + out;
}

Fit fit_on_empty_nodes(const Job& job,
                       std::int64_t min_member,
                       const std::vector<const json::Value*>& nodes) {
  std::vector<std::int64_t> sizes = sizes_of(job);
  const auto all = static_cast<std::int64_t>(sizes.size());
  Fit out;
  const bool whole = job.instances.empty();
  out.members = min_member > 0 && !whole ? std::min(min_member, all) : all;
  // The smallest ones are enough to start.
  sizes.erase(sizes.begin(), sizes.begin() + (all - out.members));
  std::vector<std::int64_t> room;
  for (const json::Value* node : nodes) {
    room.push_back(gpus_of_node(*node));
    out.cluster_gpus += room.back();
    out.largest_node = std::max(out.largest_node, room.back());
  }
  if (whole) room = {out.largest_node = out.cluster_gpus};
  for (const std::int64_t size : sizes) {
    out.gpus += size;
    out.largest_member = std::max(out.largest_member, size);
    const auto free =
        std::find_if(room.begin(), room.end(), [&](std::int64_t left) { return left >= size; });
    if (size > 0 && free == room.end()) continue;
    if (size > 0) *free -= size;
    ++out.fit;
  }
  return out;
}

std::string never_part(const Fit& fit) {
  if (!fit.never()) return "";
  if (fit.largest_member > fit.largest_node)
    return fmt::format(
        "\nIt can never start here: an instance needs {}, and the largest node has {}.\n"
        "  Ask for less for each, or add a larger node.\n",
        count(fit.largest_member, "GPU"),
        fit.largest_node);
  return fmt::format(
      "\nIt can never start here: it needs {} for {} instances at once, and all nodes together have {}.\n"
      "  On empty nodes {} of the {} fit: ask for no more than that, or add nodes.\n",
      count(fit.gpus, "GPU"),
      fit.members,
      fit.cluster_gpus,
      fit.fit,
      fit.members);
}

}  // namespace muster::cli
