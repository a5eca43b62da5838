#include "portal/topics/waiting.h"

#include "kube/meta.h"

namespace muster::portal {

std::vector<std::string> gang_keys(const JobIndex::Entry& entry) {
  const std::string ns = entry.facts.ns + "/";
  std::vector<std::string> keys;
  if (entry.group) keys.push_back(ns + std::string(kube::name_of(*entry.group)));
  for (const auto& [name, task] : entry.tasks) {
    if (task.state != TaskState::kWaiting) continue;
    if (!task.group.empty()) keys.push_back(ns + task.group);
    keys.push_back(ns + name);
    break;
  }
  return keys;
}

const answers::Forecast* forecast_of(Forecasts& forecasts, const JobIndex::Entry& entry) {
  if (!forecasts.offered()) return nullptr;
  const auto look = [&]() -> const answers::Forecast* {
    for (const std::string& key : gang_keys(entry)) {
      if (const answers::Forecast* found = forecasts.find(key); found != nullptr) return found;
    }
    return nullptr;
  };
  return forecasts.remembered(entry.slot, entry.version, look);
}

const answers::Forecast* forecast_of(const World& world, const JobIndex::Entry& entry) {
  return forecast_of(world.forecasts, entry);
}

const JobIndex::Entry* job_of_gang(const World& world, const Visible& visible, std::string key) {
  if (const auto colon = key.find(':'); colon != std::string::npos) key.erase(0, colon + 1);
  const auto slash = key.find('/');
  if (slash == std::string::npos) return nullptr;
  const JobIndex::Entry* entry =
      world.jobs.find(job_id(key.substr(0, slash), JobKind::kPodGroup, key.substr(slash + 1)));
  if (entry == nullptr) entry = world.jobs.of_group(key);
  if (entry == nullptr) entry = world.jobs.of_pod(key);
  return entry != nullptr && entry->shown && sees(visible, *entry) ? entry : nullptr;
}

}  // namespace muster::portal
