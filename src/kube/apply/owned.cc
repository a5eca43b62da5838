#include "kube/apply/owned.h"

#include <algorithm>

namespace muster::kube {

using json::Object;
using json::Value;

namespace {

bool server_metadata(std::string_view key) {
  static constexpr std::string_view kKeys[] = {"name",
                                               "namespace",
                                               "creationTimestamp",
                                               "selfLink",
                                               "uid",
                                               "clusterName",
                                               "generation",
                                               "managedFields",
                                               "resourceVersion",
                                               "deletionTimestamp",
                                               "deletionGracePeriodSeconds"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

}  // namespace

Value owned_part(const Value& object, const std::string& subresource) {
  Value out = Object();
  if (subresource == "status") {
    if (!json::at(object, "status").is_null())
      out.get_object()["status"] = json::at(object, "status");
    return out;
  }
  for (const auto& member : json::as_object(object)) {
    const std::string_view key = member.key();
    if (key == "apiVersion" || key == "kind" || key == "status") continue;
    out.get_object().emplace(key, member.value());
  }
  if (Value* metadata = out.get_object().if_contains("metadata");
      metadata != nullptr && metadata->is_object()) {
    Object& members = metadata->get_object();
    for (auto at = members.begin(); at != members.end();) {
      if (server_metadata(at->key()))
        at = members.stable_erase(at);
      else
        ++at;
    }
    if (members.empty()) json::remove(out, {"metadata"});
  }
  return out;
}

Value owned_metadata(const Value& object) {
  Value out = Object();
  for (const auto& member : json::object_at(object, "metadata")) {
    if (!server_metadata(member.key())) out.get_object().emplace(member.key(), member.value());
  }
  return out;
}

bool same_owned_metadata(const Value& a, const Value& b) {
  const Object& left = json::object_at(a, "metadata");
  const Object& right = json::object_at(b, "metadata");
  std::size_t owned = 0;
  for (const auto& member : left) {
    if (server_metadata(member.key())) continue;
    ++owned;
    const Value* other = right.if_contains(member.key());
    if (other == nullptr || !json::equal(member.value(), *other)) return false;
  }
  for (const auto& member : right) owned -= server_metadata(member.key()) ? 0U : 1U;
  return owned == 0;
}

bool owned_member(std::string_view key, std::string_view subresource) {
  if (key == "apiVersion" || key == "kind" || key == "metadata") return false;
  return (key == "status") == (subresource == "status");
}

}  // namespace muster::kube
