// Replays what real API servers were asked: our defaults, patches and messages against theirs.
#include "lib/recorded.h"

#include <gtest/gtest.h>

#include <map>

#include "base/strings.h"
#include "kube/apply/apply.h"
#include "kube/apply/managed.h"
#include "kube/apply/strategic.h"
#include "kube/kinds/validate.h"

namespace muster::kube {
namespace {

using recorded::Exchange;

const ResourceInfo* resource_of(const std::string& path) {
  const auto parts = split_nonempty(path, '/');
  std::size_t at = 0;
  std::string group;
  if (parts.size() < 3) return nullptr;
  if (parts[0] == "apis")
    group = parts[1], at = 3;
  else
    at = 2;
  const std::string version = parts[at - 1];
  if (parts.size() > at + 2 && parts[at] == "namespaces") at += 2;
  if (at >= parts.size() || parts.size() > at + 2) return nullptr;  // subresources are not replayed
  for (const ResourceInfo& info : Schema::builtin().resources()) {
    if (info.group == group && info.version == version && info.plural == parts[at]) return &info;
  }
  return nullptr;
}

std::string namespace_in(const std::string& path) {
  const auto parts = split_nonempty(path, '/');
  for (std::size_t i = 0; i + 2 < parts.size(); ++i) {
    if (parts[i] == "namespaces") return parts[i + 1];
  }
  return "";
}

/// Server-side values that no pure function can know, and what admission plugins add.
json::Value comparable(json::Value object, const Gvk& gvk) {
  for (const std::string_view key :
       {"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace"})
    json::remove(object, {"metadata", key});
  json::remove(object, {"spec", "template", "metadata", "creationTimestamp"});
  json::remove(object, {"apiVersion"});
  json::remove(object, {"kind"});
  if (gvk.kind == "Pod") {
    if (json::Value* status = object.get_object().if_contains("status");
        status != nullptr && json::at(*status, "conditions").is_array()) {
      for (json::Value& one : status->get_object()["conditions"].get_array())
        json::remove(one, {"lastTransitionTime"});
    }
    for (const std::string_view key : {"tolerations",
                                       "priority",
                                       "preemptionPolicy",
                                       "serviceAccount",
                                       "serviceAccountName",
                                       "volumes"})
      json::remove(object, {"spec", key});
    if (json::Value* spec = object.get_object().if_contains("spec");
        spec != nullptr && spec->is_object()) {
      if (json::Value* containers = spec->get_object().if_contains("containers");
          containers != nullptr && containers->is_array()) {
        for (json::Value& container : containers->get_array())
          json::remove(container, {"volumeMounts"});
      }
    }
  }
  if (gvk.kind == "Service")
    for (const std::string_view key : {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"})
      json::remove(object, {"spec", key});
  if (gvk.kind == "Event")
    for (const std::string_view key : {"eventTime",
                                       "reportingComponent",
                                       "reportingInstance",
                                       "deprecatedSource",
                                       "deprecatedFirstTimestamp",
                                       "deprecatedLastTimestamp"})
      json::remove(object, {key});
  if (gvk.kind == "Job") {
    for (const std::string_view key : {"selector"}) json::remove(object, {"spec", key});
    json::remove(object, {"spec", "template", "metadata", "labels"});
  }
  return object;
}

json::Value prepared(const ResourceInfo& info, const Exchange& exchange) {
  json::Value object = exchange.request;
  drop_unknown_fields(*Schema::builtin().find_type(info.gvk()), object);
  if (info.namespaced) json::make(object, {"metadata", "namespace"}) = namespace_in(exchange.path);
  set_defaults(kind_of(info.gvk()), object);
  prepare_create(kind_of(info.gvk()), object, Time{1});
  return object;
}

const char* const kTranscripts[] = {"server-v1.32.4_raw-http.jsonl",
                                    "server-v1.37.0_raw-http.jsonl",
                                    "server-v1.32.4_kubectl-v1.32.jsonl",
                                    "server-v1.37.0_kubectl-v1.37.jsonl"};

TEST(Recorded, CreatedObjectsGetTheSameDefaults) {
  int compared = 0;
  for (const char* file : kTranscripts) {
    for (const Exchange& exchange : recorded::exchanges(file)) {
      const ResourceInfo* info = exchange.method == "POST" && exchange.status == 201
                                     ? resource_of(exchange.path)
                                     : nullptr;
      if (info == nullptr || !exchange.request.is_object() || !exchange.answer.is_object() ||
          info->group.starts_with("auth"))
        continue;
      if (json::string_at(exchange.answer, "kind") != info->kind ||
          !json::string_at(exchange.request, "metadata", "generateName").empty())
        continue;
      if (info->kind == "CustomResourceDefinition") continue;
      const json::Value have = comparable(prepared(*info, exchange), info->gvk());
      const json::Value want = comparable(exchange.answer, info->gvk());
      // A recorded answer may have lost nulls that our defaults never write; compare what is left.
      EXPECT_TRUE(json::equal(have, want))
          << file << " " << exchange.suite << " " << exchange.url << "\nhave " << json::dump(have)
          << "\nwant " << json::dump(want);
      ++compared;
    }
  }
  EXPECT_GT(compared, 40);
}

TEST(Recorded, RefusedObjectsGetTheSameMessages) {
  int compared = 0;
  for (const char* file : kTranscripts) {
    for (const Exchange& exchange : recorded::exchanges(file)) {
      const ResourceInfo* info = exchange.method == "POST" && exchange.status == 422
                                     ? resource_of(exchange.path)
                                     : nullptr;
      if (info == nullptr || !exchange.request.is_object()) continue;
      const std::string want = json::text_at(exchange.answer, "message");
      if (want.find("Options.meta.k8s.io") != std::string::npos) continue;
      // Values of Go structs are printed as JSON since 1.34; the rest of the text is the same.
      if (want.find("resource.Quantity{") != std::string::npos ||
          want.find("v1.OwnerReference{") != std::string::npos)
        continue;
      if (want.find("metadata.ownerReferences.") != std::string::npos)
        continue;  // each is named by its index since 1.37
      const json::Value object = prepared(*info, exchange);
      const auto causes = validate_create(kind_of(info->gvk()), info->namespaced, object);
      EXPECT_EQ(invalid(info->gvk(), name_of(object), causes).message, want) << exchange.suite;
      const json::Array& wanted = json::array_at(exchange.answer, "details", "causes");
      EXPECT_EQ(causes.size(), wanted.size()) << want;
      for (std::size_t i = 0; i < std::min(causes.size(), wanted.size()); ++i) {
        EXPECT_EQ(causes[i].reason, json::string_at(wanted[i], "reason"));
        EXPECT_EQ(causes[i].field, json::string_at(wanted[i], "field"));
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 10);
}

TEST(Recorded, PatchedObjectsAreTheSame) {
  int compared = 0;
  // The hand-made requests keep every answer, so the object before each patch is known.
  for (const char* file : {"server-v1.32.4_raw-http.jsonl", "server-v1.37.0_raw-http.jsonl"}) {
    std::map<std::string, json::Value> live;
    for (const Exchange& exchange : recorded::exchanges(file)) {
      // A subresource (resize, ephemeralcontainers) answers with the whole object.
      const auto owner = live.find(exchange.path.substr(0, exchange.path.rfind('/')));
      if (owner != live.end() && exchange.status < 300 &&
          json::equal(json::at(exchange.answer, "kind"), json::at(owner->second, "kind"))) {
        owner->second = exchange.answer;
        continue;
      }
      const ResourceInfo* info = resource_of(exchange.path);
      if (info == nullptr || exchange.status >= 300 ||
          json::string_at(exchange.answer, "kind") != info->kind)
        continue;
      std::string key = exchange.path;
      if (exchange.method == "POST") key += "/" + std::string(name_of(exchange.answer));
      const auto found = live.find(key);
      const bool strategic = exchange.content_type == "application/strategic-merge-patch+json";
      const bool merge = exchange.content_type == "application/merge-patch+json";
      if (exchange.method == "PATCH" && found != live.end() && (strategic || merge) &&
          exchange.request.is_object() && exchange.url.find("dryRun") == std::string::npos) {
        json::Value object = found->second;
        if (strategic) {
          const auto done =
              strategic_merge(*Schema::builtin().find_type(info->gvk()), object, exchange.request);
          EXPECT_TRUE(done) << done.error().message;
        } else {
          json::merge_patch(object, exchange.request);
        }
        drop_unknown_fields(*Schema::builtin().find_type(info->gvk()), object);
        set_defaults(kind_of(info->gvk()), object);
        prepare_update(kind_of(info->gvk()), object, found->second);
        json::Value have = object, want = exchange.answer;
        for (json::Value* value : {&have, &want}) {
          for (const std::string_view key_name : {"resourceVersion", "managedFields", "generation"})
            json::remove(*value, {"metadata", key_name});
          json::remove(*value, {"status"});
          json::remove(*value, {"spec", "template", "metadata", "creationTimestamp"});
          json::remove(*value, {"eventTime"});
          // Written in between by controllers and other requests.
          for (const std::string_view key_name :
               {"annotations", "deletionTimestamp", "deletionGracePeriodSeconds"})
            json::remove(*value, {"metadata", key_name});
        }
        EXPECT_TRUE(json::equal(have, want))
            << exchange.url << "\npatch " << json::dump(exchange.request) << "\nhave "
            << json::dump(have) << "\nwant " << json::dump(want);
        ++compared;
      }
      live[key] = exchange.answer;
    }
  }
  EXPECT_GT(compared, 10);
}

json::Value without_times(json::Value managed) {
  if (managed.is_array())
    for (json::Value& entry : managed.get_array()) json::remove(entry, {"time"});
  return managed;
}

TEST(Recorded, AppliedObjectsHaveTheSameContentAndOwners) {
  int compared = 0, conflicts = 0;
  std::map<std::string, json::Value> live;
  for (const Exchange& exchange : recorded::exchanges("server-v1.32.4_raw-http.jsonl")) {
    const ResourceInfo* info = resource_of(exchange.path);
    if (info == nullptr || exchange.suite != "ssa") continue;
    if (exchange.method == "DELETE") live.erase(exchange.path);
    if (exchange.status < 300 && !exchange.request.is_object() &&
        json::string_at(exchange.answer, "kind") == info->kind)
      live[exchange.path] = exchange.answer;
    if (exchange.content_type != "application/apply-patch+yaml" || !exchange.request.is_object())
      continue;
    const std::size_t at = exchange.url.find("fieldManager=");
    if (at == std::string::npos) continue;
    ApplyRequest request;
    request.manager = exchange.url.substr(at + 13, exchange.url.find('&', at) - at - 13);
    request.api_version = info->gvk().api_version();
    request.force = exchange.url.find("force=true") != std::string::npos;
    request.now = *parse_time("2026-11-15T03:17:41Z");
    const Shape& shape = shape_of(*Schema::builtin().find_type(info->gvk()));
    const auto found = live.find(exchange.path);
    const std::optional<json::Value> before =
        found == live.end() ? std::nullopt : std::optional<json::Value>(found->second);
    const auto result = apply(&shape, before, exchange.request, request);
    if (exchange.status == 409) {
      ASSERT_FALSE(result) << exchange.url;
      EXPECT_EQ(result.error().message, json::string_at(exchange.answer, "message"));
      EXPECT_EQ(
          result.error().causes.at(0).field,
          json::string_at(json::array_at(exchange.answer, "details", "causes").at(0), "field"));
      ++conflicts;
      continue;
    }
    if (exchange.status >= 300) continue;
    ASSERT_TRUE(result) << exchange.url << result.error().message;
    json::Value object = *result;
    unpack_managers(object);
    set_defaults(kind_of(info->gvk()), object);
    json::Value want = exchange.answer;
    EXPECT_EQ(json::dump(without_times(json::at(object, "metadata", "managedFields"))),
              json::dump(without_times(json::at(want, "metadata", "managedFields"))))
        << exchange.url;
    for (json::Value* value : {&object, &want}) {
      json::remove(*value, {"metadata"});
      json::remove(*value, {"status"});
      json::remove(*value, {"spec", "template", "metadata", "creationTimestamp"});
    }
    EXPECT_TRUE(json::equal(object, want))
        << exchange.url << "\nhave " << json::dump(object) << "\nwant " << json::dump(want);
    live[exchange.path] = exchange.answer;
    ++compared;
  }
  EXPECT_GT(compared, 5);
  EXPECT_GE(conflicts, 2);
}

TEST(Recorded, CreatorsOwnTheSameFields) {
  const auto pairs = recorded::read_json("protobuf-json-pairs_v1.32.4.json");
  int compared = 0;
  for (const json::Value& pair : json::as_array(pairs)) {
    json::Value object = json::at(pair, "json");
    const Type* type = Schema::builtin().find_type(gvk_of(object));
    const json::Array managed = json::array_at(object, "metadata", "managedFields");
    if (type == nullptr || managed.size() != 1 ||
        json::string_at(managed[0], "operation") != "Update")
      continue;
    // What the registry adds after the book is kept: finalizers, addresses; and events have two
    // faces.
    if (type->short_name() == "Event") continue;
    json::remove(object, {"metadata", "managedFields"});
    json::remove(object, {"status"});
    if (type->short_name() == "Namespace") json::remove(object, {"spec"});
    if (type->short_name() == "PersistentVolumeClaim")
      json::remove(object, {"metadata", "finalizers"});
    for (const std::string_view key : {"clusterIPs", "ipFamilies", "ipFamilyPolicy"})
      json::remove(object, {"spec", key});
    ApplyRequest request;
    request.manager = json::text_at(managed[0], "manager");
    request.api_version = json::text_at(managed[0], "apiVersion");
    request.now = Time{1};
    track_update(&shape_of(*type), nullptr, object, request);
    unpack_managers(object);
    // Admission's additions are not the creator's; the recorder ran without them only for some
    // kinds.
    if (type->short_name() == "Pod") continue;
    const json::Array& have = json::array_at(object, "metadata", "managedFields");
    ASSERT_EQ(have.size(), 1U);
    EXPECT_TRUE(json::equal(json::at(have[0], "fieldsV1"), json::at(managed[0], "fieldsV1")))
        << type->name << "\nhave " << json::dump(json::at(have[0], "fieldsV1")) << "\nwant "
        << json::dump(json::at(managed[0], "fieldsV1"));
    ++compared;
  }
  EXPECT_GT(compared, 8);
}

}  // namespace
}  // namespace muster::kube
