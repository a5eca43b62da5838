/// One kind of object as the frame drives it: its resource, its plan, and the kinds whose objects
/// it looks at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/client.h"
#include "controllers/common/plan.h"

namespace muster::controllers {

struct Kind {
  std::string name;  // names the controller in events and logs, e.g. "pytorchjob-controller"
  client::Resource resource;
  std::vector<std::string_view> looks_at;  // a change of one that it controls wakes it
  std::function<Plan(const json::Value& job, const View& view, const Settings& settings, Time now)>
      plan;
  /// False: another controller's; empty: all are ours.
  std::function<bool(const json::Value& job)> accepts;
  /// A node that comes, goes or changes its labels, taints or room wakes every object.
  bool follows_nodes = false;
};

}  // namespace muster::controllers
