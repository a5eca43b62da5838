#include "apiserver/rest/convert.h"

#include <array>
#include <utility>

#include "kube/apply/managed.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

/// events.k8s.io/v1 name -> core/v1 name.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kEventFields = {{
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"deprecatedSource", "source"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedCount", "count"},
    {"reportingController", "reportingComponent"},
    {"reportingInstance", "reportingInstance"},
}};

json::Value rename_event(const json::Value& event, bool to_core) {
  json::Object result;
  for (const auto& member : json::as_object(event)) {
    std::string_view key = member.key();
    for (const auto& [modern, core] : kEventFields) {
      if (key == (to_core ? modern : core)) {
        key = to_core ? core : modern;
        break;
      }
    }
    result[key] = member.value();
  }
  return json::Value(std::move(result));
}

void hpa_to_v1(json::Value& object) {
  const json::Array metrics = json::array_at(object, "spec", "metrics");
  if (metrics.size() == 1 && json::string_at(metrics[0], "resource", "name") == "cpu") {
    const json::Value utilization =
        json::at(metrics[0], "resource", "target", "averageUtilization");
    if (utilization.is_number())
      json::make(object, {"spec", "targetCPUUtilizationPercentage"}) = utilization;
  }
  json::remove(object, {"spec", "metrics"});
  json::remove(object, {"spec", "behavior"});
  json::remove(object, {"status", "conditions"});
  json::remove(object, {"status", "currentMetrics"});
}

void hpa_to_v2(json::Value& object) {
  const json::Value percent = json::at(object, "spec", "targetCPUUtilizationPercentage");
  if (percent.is_number()) {
    json::Value metric = {
        {"type", "Resource"},
        {"resource",
         {{"name", "cpu"},
          {"target", {{"type", "Utilization"}, {"averageUtilization", percent}}}}}};
    json::make(object, {"spec", "metrics"}) = json::Array{std::move(metric)};
    json::remove(object, {"spec", "targetCPUUtilizationPercentage"});
  }
}

/// Where `"metadata":` begins in the stored bytes: after {"kind":"…","apiVersion":"…",
std::size_t head_length(std::string_view bytes) {
  const auto found = bytes.find("\"metadata\":");
  return found == std::string_view::npos ? 1 : found;
}

/// Where the tree would have to be made first, the text tells: it begins with
/// {"kind":"…","apiVersion":"…",
bool stored_as_served(const Resource& resource, const Stored& stored) {
  if (!resource.same_as_storage()) return false;
  constexpr std::string_view kMember = R"("apiVersion":")";
  const Bytes text = stored.object.has_tree() ? nullptr : stored.object.find_text();
  const std::string_view head =
      text ? std::string_view(*text).substr(0, head_length(*text)) : std::string_view();
  const auto found = head.find(kMember);
  if (found == std::string_view::npos)
    return json::string_at(stored.object, "apiVersion") == resource.storage_api_version;
  const std::string_view version = head.substr(found + kMember.size());
  return version.substr(0, version.find('"')) == resource.storage_api_version;
}

}  // namespace

json::Value to_served(const Resource& resource, const json::Value& stored) {
  if (resource.same_as_storage()) return stored;
  json::Value result =
      resource.info.group == kube::groups::kEvents ? rename_event(stored, false) : stored;
  result.get_object()["apiVersion"] = resource.api_version();
  if (resource.info.group == "autoscaling") hpa_to_v1(result);
  return result;
}

json::Value to_stored(const Resource& resource, json::Value served) {
  if (resource.same_as_storage()) return served;
  json::Value result =
      resource.info.group == kube::groups::kEvents ? rename_event(served, true) : std::move(served);
  result.get_object()["apiVersion"] = resource.storage_api_version;
  if (resource.info.group == "autoscaling") hpa_to_v2(result);
  return result;
}

kube::ObjectPtr served_object(const Resource& resource, const StoredPtr& stored) {
  // The image's own tree, kept alive by the record around it.
  if (stored_as_served(resource, *stored)) return {stored, &stored->object.value()};
  json::Value object = to_served(resource, stored->object);
  object.get_object()["apiVersion"] = resource.api_version();
  return std::make_shared<const json::Value>(std::move(object));
}

Bytes served_bytes(const Resource& resource, const Stored& stored) {
  if (stored_as_served(resource, stored)) return stored.object.text();
  json::Value object = to_served(resource, stored.object);
  object.get_object()["apiVersion"] = resource.api_version();
  return std::make_shared<const std::string>(kube::object_text(object));
}

void append_list_item(const Resource& resource, const Stored& stored, std::string& out) {
  const Bytes bytes = served_bytes(resource, stored);
  if (resource.custom()) {
    out += *bytes;
    return;
  }
  out += '{';
  out.append(*bytes, head_length(*bytes));
}

std::string partial_metadata(const json::Value& object) {
  return R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":)" +
         kube::metadata_text(json::at(object, "metadata")) + "}";
}

}  // namespace muster::apiserver
