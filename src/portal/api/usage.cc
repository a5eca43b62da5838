/// GET usage: samples of tenants as columns.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "portal/api/api.h"

namespace muster::portal {

Task<void> serve_usage(ApiWorld api, ApiCall call) {
  const Millis now = api.world.now();
  const Millis to = parse_int(call.target.get("to")).value_or(now + 1);
  const Millis from = parse_int(call.target.get("from")).value_or(now - 6 * 3600 * 1000LL);
  Millis step = parse_int(call.target.get("step")).value_or(0);
  // An answer has at most some thousand points.
  step = std::max({step, SampleShelf::kFineMs, (to - from) / 2000});
  const auto rows = api.samples.shelf().between(from, to, step);
  std::set<std::string> names;
  for (const std::string& one : split_nonempty(call.target.get("tenant"), ',')) names.insert(one);
  if (names.empty()) {
    for (const SampleRow* row : rows) {
      for (const auto& [name, sample] : row->tenants) names.insert(name);
    }
  }
  json::Array tenants, times, columns;
  for (const SampleRow* row : rows) times.push_back(json::Value(row->at));
  for (const std::string& name : names) {
    tenants.push_back(json::Value(name));
    json::Array used, oppo, guarantee, deserved, capability, waiting;
    for (const SampleRow* row : rows) {
      const auto found = row->tenants.find(name);
      const bool known = found != row->tenants.end();
      const auto add = [&](json::Array& column, float value, bool there) {
        column.push_back(known && there ? json::Value(value) : json::Value(nullptr));
      };
      const Sample sample = known ? found->second : Sample{};
      add(used, sample.used, true);
      add(oppo, sample.oppo, true);
      add(guarantee, sample.guarantee, true);
      add(deserved, sample.deserved, true);
      add(capability, sample.capability, sample.capability >= 0);
      add(waiting, sample.waiting, true);
    }
    columns.push_back({{"used", std::move(used)},
                       {"oppo", std::move(oppo)},
                       {"guarantee", std::move(guarantee)},
                       {"deserved", std::move(deserved)},
                       {"capability", std::move(capability)},
                       {"waiting", std::move(waiting)}});
  }
  co_await answer_json(call.writer,
                       {{"step", step},
                        {"tenants", std::move(tenants)},
                        {"at", std::move(times)},
                        {"columns", std::move(columns)}});
}

}  // namespace muster::portal
