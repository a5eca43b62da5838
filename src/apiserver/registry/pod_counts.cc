#include "apiserver/registry/pod_counts.h"

#include <algorithm>
#include <string_view>

namespace muster::apiserver {
namespace {

constexpr int kDepthMax = 8;

bool is_count(std::string_view field) {
  return field == "replicas" || field == "minReplicas" || field == "maxReplicas" ||
         field == "workerReplicas" || field == "taskNumber" || field == "parallelism";
}

/// Counts stand beside the templates of pods, never in them.
// NOLINTNEXTLINE(misc-no-recursion): to kDepthMax.
void add_counts(const json::Value& value, int depth, std::int64_t& sum) {
  if (depth > kDepthMax || sum > kPodsOfOneMax) return;
  if (const json::Array* array = value.if_array()) {
    for (const json::Value& item : *array) add_counts(item, depth + 1, sum);
    return;
  }
  const json::Object* object = value.if_object();
  if (object == nullptr || object->contains("containers")) return;
  for (const auto& member : *object) {
    if (is_count(std::string_view(member.key())) && member.value().is_number())
      sum += std::clamp<std::int64_t>(json::as_int(member.value()), 0, kPodsOfOneMax + 1);
    else
      add_counts(member.value(), depth + 1, sum);
  }
}

}  // namespace

std::int64_t pods_wanted(const json::Value& object) {
  std::int64_t sum = 0;
  add_counts(json::at(object, "spec"), 0, sum);
  return sum;
}

}  // namespace muster::apiserver
