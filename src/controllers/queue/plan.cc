#include "controllers/queue/plan.h"

#include "kube/names.h"

namespace muster::controllers::queue {
namespace {

std::string state_of(const json::Value& queue) { return json::text_at(queue, "status", "state"); }

std::string parent_of(const json::Value& queue) {
  return std::string(json::as_string(json::at(queue, "spec", "parent"), "root"));
}

bool closed(const std::string& state) { return state == "Closed" || state == "Closing"; }

}  // namespace

void Counts::add(std::string_view phase, int n) {
  if (phase == "Inqueue")
    inqueue += n;
  else if (phase == "Running")
    running += n;
  else if (phase == "Unknown")
    unknown += n;
  else if (phase == "Completed")
    completed += n;
  else
    pending += n;
}

Decision decide(const json::Value& queue,
                const Objects& queues,
                const Counts& counts,
                std::string_view action) {
  Decision decision;
  const auto name = name_of(queue);
  const auto now = state_of(queue);
  decision.state = now.empty() ? "Open" : now;
  if (action == "CloseQueue" && name == "root") {
    decision.refused = "the root queue cannot be closed";
  } else if (action == "CloseQueue") {
    decision.state = counts.total() == 0 ? "Closed" : "Closing";
    for (const auto* other : queues) {
      if (parent_of(*other) == name && name_of(*other) != name && !closed(state_of(*other)))
        decision.close.push_back(name_of(*other));
    }
  } else if (action == "OpenQueue") {
    for (const auto* other : queues) {
      if (name_of(*other) == parent_of(queue) && name != "root" && closed(state_of(*other))) {
        decision.refused = "its parent " + name_of(*other) + " is " + state_of(*other);
        return decision;
      }
    }
    decision.state = "Open";
    for (const auto* other : queues) {
      if (parent_of(*other) == name && name_of(*other) != name &&
          annotation_of(*other, kube::names::volcano::kClosedByParent) == "true")
        decision.open.push_back(name_of(*other));
    }
  } else if (now == "Closing" && counts.total() == 0) {
    decision.state = "Closed";
  }
  return decision;
}

}  // namespace muster::controllers::queue
