/// One kind of job as the frame drives it: its resource, its plan, and the kinds it owns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/client.h"
#include "controllers/common/plan.h"

namespace muster::controllers {

struct Kind {
  std::string name;       // for logs and events, e.g. "pytorchjob-controller"
  client::Resource resource;
  std::vector<std::string> owned;  // kind names whose changes wake the owner
  std::function<Plan(const json::Value& job, const View& view, const Settings& settings, Time now)> plan;
  /// False: another controller's job. Empty: all.
  std::function<bool(const json::Value& job)> accepts;
  /// How a change of any object of a kind (not only owned ones) wakes jobs: names in the same namespace.
  std::function<std::vector<std::string>(std::string_view kind, const json::Value& object, const View& view)> wakes;
};

/// All kinds, in a fixed order.
std::vector<Kind> job_kinds();

}  // namespace muster::controllers
