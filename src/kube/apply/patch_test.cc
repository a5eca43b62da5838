// Strategic merge and server-side apply beyond what was recorded.
#include <gtest/gtest.h>

#include "kube/apply/apply.h"
#include "kube/apply/strategic.h"
#include "kube/crd/crd.h"

namespace muster::kube {
namespace {

json::Value parsed(std::string_view text) {
  auto value = json::parse_yaml_one(text);
  EXPECT_TRUE(value) << value.error().message << "\n" << text;
  return value ? *value : json::Value();
}

const Type& type_of(const char* group, const char* kind) {
  return *Schema::builtin().find_type({group, "v1", kind});
}

TEST(StrategicMerge, Cases) {
  struct {
    const char* name;
    const char* group;
    const char* kind;
    const char* live;
    const char* patch;
    const char* want;
  } cases[] = {
      {"merge by key",
       "",
       "Pod",
       "{spec: {containers: [{name: a, image: i}, {name: b, image: i}]}}",
       "{spec: {containers: [{name: b, image: j}]}}",
       R"({"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"j"}]}})"},
      {"new items come first",
       "",
       "Pod",
       "{spec: {containers: [{name: a}]}}",
       "{spec: {containers: [{name: c}]}}",
       R"({"spec":{"containers":[{"name":"c"},{"name":"a"}]}})"},
      {"delete item",
       "",
       "Pod",
       "{spec: {containers: [{name: a}, {name: b}]}}",
       "{spec: {containers: [{name: a, $patch: delete}]}}",
       R"({"spec":{"containers":[{"name":"b"}]}})"},
      {"replace list",
       "",
       "Pod",
       "{spec: {containers: [{name: a}, {name: b}]}}",
       "{spec: {containers: [{name: c}, {$patch: replace}]}}",
       R"({"spec":{"containers":[{"name":"c"}]}})"},
      {"replace map",
       "",
       "Pod",
       "{metadata: {labels: {a: b, c: d}}}",
       "{metadata: {labels: {$patch: replace, x: z}}}",
       R"({"metadata":{"labels":{"x":"z"}}})"},
      {"delete map",
       "",
       "Pod",
       "{spec: {securityContext: {runAsUser: 1}}}",
       "{spec: {securityContext: {$patch: delete}}}",
       R"({"spec":{"securityContext":{}}})"},
      {"null",
       "",
       "Pod",
       "{metadata: {labels: {a: b, c: d}}}",
       "{metadata: {labels: {a: null}}}",
       R"({"metadata":{"labels":{"c":"d"}}})"},
      {"atomic list",
       "",
       "Pod",
       "{spec: {tolerations: [{key: a}]}}",
       "{spec: {tolerations: [{key: b}]}}",
       R"({"spec":{"tolerations":[{"key":"b"}]}})"},
      {"order",
       "",
       "Pod",
       "{spec: {containers: [{name: a}, {name: b}]}}",
       "{spec: {$setElementOrder/containers: [{name: b}, {name: a}]}}",
       R"({"spec":{"containers":[{"name":"b"},{"name":"a"}]}})"},
      {"primitive merge",
       "",
       "Pod",
       "{metadata: {finalizers: [a/b]}}",
       "{metadata: {finalizers: [c/d, a/b]}}",
       R"({"metadata":{"finalizers":["c/d","a/b"]}})"},
      {"primitive delete",
       "",
       "Pod",
       "{metadata: {finalizers: [a/b, c/d]}}",
       "{metadata: {$deleteFromPrimitiveList/finalizers: [a/b]}}",
       R"({"metadata":{"finalizers":["c/d"]}})"},
      {"retain keys",
       "apps",
       "Deployment",
       "{spec: {strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}}",
       "{spec: {strategy: {$retainKeys: [type], type: Recreate}}}",
       R"({"spec":{"strategy":{"type":"Recreate"}}})"},
      {"conditions",
       "",
       "Pod",
       "{status: {conditions: [{type: A, status: 'True'}]}}",
       "{status: {conditions: [{type: B, status: 'False'}]}}",
       R"({"status":{"conditions":[{"type":"B","status":"False"},{"type":"A","status":"True"}]}})"},
      {"ports by two keys use one",
       "",
       "Service",
       "{spec: {ports: [{port: 80, name: a}]}}",
       "{spec: {ports: [{port: 80, name: b}]}}",
       R"({"spec":{"ports":[{"port":80,"name":"b"}]}})"},
      {"directives in what is new",
       "",
       "Pod",
       "{}",
       "{spec: {containers: [{name: a}], $setElementOrder/containers: [{name: a}]}}",
       R"({"spec":{"containers":[{"name":"a"}]}})"},
  };
  for (const auto& one : cases) {
    json::Value object = parsed(one.live);
    const auto done = strategic_merge(type_of(one.group, one.kind), object, parsed(one.patch));
    ASSERT_TRUE(done) << one.name << done.error().message;
    EXPECT_EQ(json::dump(object), one.want) << one.name;
  }
}

TEST(StrategicMerge, FailuresLeaveTheObject) {
  json::Value pod = parsed("{metadata: {name: p}, spec: {containers: [{name: a}]}}");
  const json::Value before = pod;
  const auto no_key =
      strategic_merge(type_of("", "Pod"),
                      pod,
                      parsed("{metadata: {name: x}, spec: {containers: [{image: nokey}]}}"));
  ASSERT_FALSE(no_key);
  EXPECT_EQ(no_key.error().message,
            "map: map[image:nokey] does not contain declared merge key: name");
  EXPECT_FALSE(strategic_merge(type_of("", "Pod"), pod, parsed("{metadata: {$patch: bogus}}")));
  EXPECT_FALSE(strategic_merge(type_of("", "Pod"), pod, parsed("[]")));
  EXPECT_TRUE(json::equal(before, pod));
}

struct Applier {
  const Shape* shape;
  std::optional<json::Value> live;

  Result<json::Value> operator()(const char* manager,
                                 const char* yaml,
                                 bool force = false,
                                 const char* subresource = "") {
    ApplyRequest request;
    request.manager = manager;
    request.api_version = "v1";
    request.force = force;
    request.subresource = subresource;
    request.now = Time::from_seconds(1000);
    auto result = apply(shape, live, parsed(yaml), request);
    if (result) live = *result;
    return result;
  }
  void update(const char* manager, const char* merge) {
    json::Value updated = live ? *live : json::Value(json::Object());
    json::merge_patch(updated, parsed(merge));
    ApplyRequest request;
    request.manager = manager;
    request.api_version = "v1";
    request.now = Time::from_seconds(1000);
    track_update(shape, live ? &*live : nullptr, updated, request);
    live = updated;
  }
  std::string content(std::string_view key) { return json::dump(json::at(*live, key)); }
  std::string owners() {
    std::string out;
    for (const json::Value& entry : json::array_at(*live, "metadata", "managedFields")) {
      out += json::text_at(entry, "manager") + ":" + json::text_at(entry, "fieldsV1") + "\n";
    }
    return out;
  }
};

TEST(Apply, RemovedWhenNoLongerApplied) {
  Applier apply_map{&shape_of(type_of("", "ConfigMap")), {}};
  ASSERT_TRUE(apply_map("a", "{data: {x: '1', z: '2'}}"));
  ASSERT_TRUE(apply_map("a", "{data: {x: '1'}}"));
  EXPECT_EQ(apply_map.content("data"), R"({"x":"1"})");
  EXPECT_EQ(apply_map.owners(), "a:{\"f:data\":{\"f:x\":{}}}\n");
}

TEST(Apply, WhoOnlyJoinsTheOwnersHasNoTime) {
  Applier configure{&shape_of(type_of("", "ConfigMap")), std::nullopt};
  ASSERT_TRUE(
      configure("one", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1'}}"));
  ASSERT_TRUE(
      configure("two", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1'}}"));
  const json::Array& entries = json::array_at(*configure.live, "metadata", "managedFields");
  ASSERT_EQ(entries.size(), 2U);
  for (const json::Value& entry : entries)
    EXPECT_EQ(json::at(entry, "time").is_null(), json::text_at(entry, "manager") == "two");
}

TEST(Apply, ConflictWithAnUpdateNamesItsVersion) {
  Applier map{&shape_of(type_of("", "ConfigMap")), {}};
  map.update("kubectl-edit", "{data: {x: '1', z: '2'}}");
  const auto result = map("a", "{data: {x: '9', z: '8'}}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kConflict);
  EXPECT_EQ(
      result.error().message,
      "Apply failed with 2 conflicts: conflicts with \"kubectl-edit\" using v1:\n- .data.x\n- .data.z");
  ASSERT_TRUE(map("a", "{data: {x: '9'}}", true));
  EXPECT_EQ(map.owners(),
            "a:{\"f:data\":{\"f:x\":{}}}\nkubectl-edit:{\"f:data\":{\".\":{},\"f:z\":{}}}\n");
}

TEST(Apply, ListsOfMapsMergeAndSharedItemsStay) {
  Applier pod{&shape_of(type_of("", "Pod")), {}};
  ASSERT_TRUE(pod("a", "{spec: {containers: [{name: x, image: i}, {name: z, image: i}]}}"));
  ASSERT_TRUE(pod("b", "{spec: {containers: [{name: x, command: [c]}]}}"));
  ASSERT_TRUE(pod("a", "{spec: {containers: [{name: z, image: i}]}}"));
  // x stays: b still owns it; a's image goes.
  EXPECT_EQ(pod.content("spec"),
            R"({"containers":[{"name":"x","command":["c"]},{"name":"z","image":"i"}]})");
}

TEST(Apply, ItemsGoWithTheirDefaults) {
  Applier pod{&shape_of(type_of("", "Pod")), {}};
  ASSERT_TRUE(pod("a", "{spec: {containers: [{name: x, image: i}, {name: z, image: i}]}}"));
  json::Value defaulted = *pod.live;
  defaulted.at("spec").at("containers").as_array()[0].as_object()["imagePullPolicy"] = "Always";
  pod.live = defaulted;
  ASSERT_TRUE(pod("a", "{spec: {containers: [{name: z, image: i}]}}"));
  EXPECT_EQ(pod.content("spec"), R"({"containers":[{"name":"z","image":"i"}]})");
}

TEST(Apply, AtomicListsAndMapsAreOne) {
  Applier pod{&shape_of(type_of("", "Pod")), {}};
  ASSERT_TRUE(pod("a", "{spec: {nodeSelector: {x: '1'}, tolerations: [{key: a}]}}"));
  const auto result = pod("b", "{spec: {nodeSelector: {z: '1'}}}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().causes.at(0).field, ".spec.nodeSelector");
  ASSERT_TRUE(pod("b", "{spec: {nodeSelector: {z: '1'}}}", true));
  EXPECT_EQ(pod.content("spec"), R"({"nodeSelector":{"z":"1"},"tolerations":[{"key":"a"}]})");
}

TEST(Apply, SetsShareTheirItems) {
  Applier pod{&shape_of(type_of("", "Pod")), {}};
  ASSERT_TRUE(pod("a", "{metadata: {finalizers: [a/b, c/d]}}"));
  ASSERT_TRUE(pod("b", "{metadata: {finalizers: [c/d, e/f]}}"));
  ASSERT_TRUE(pod("a", "{metadata: {finalizers: [a/b]}}"));
  EXPECT_EQ(json::dump(json::at(*pod.live, "metadata", "finalizers")), R"(["a/b","c/d","e/f"])");
  ASSERT_TRUE(pod("b", "{metadata: {}}"));
  EXPECT_EQ(json::dump(json::at(*pod.live, "metadata", "finalizers")), R"(["a/b"])");
}

TEST(Apply, StatusHasItsOwnBook) {
  Applier pod{&shape_of(type_of("", "Pod")), {}};
  ASSERT_TRUE(pod("a", "{metadata: {labels: {x: z}}, spec: {nodeName: n1}}"));
  ASSERT_TRUE(pod(
      "a",
      "{metadata: {labels: {q: q}}, spec: {nodeName: other}, status: {conditions: [{type: A, status: 'True'}]}}",
      false,
      "status"));
  EXPECT_EQ(pod.content("spec"), R"({"nodeName":"n1"})");
  EXPECT_EQ(
      pod.owners(),
      "a:{\"f:metadata\":{\"f:labels\":{\"f:x\":{}}},\"f:spec\":{\"f:nodeName\":{}}}\n"
      "a:{\"f:status\":{\"f:conditions\":{\"k:{\\\"type\\\":\\\"A\\\"}\":{\".\":{},\"f:status\":{},\"f:type\":{}}}}}\n");
}

TEST(Apply, WhatWasThereBeforeBelongsToSomebody) {
  Applier map{&shape_of(type_of("", "ConfigMap")), {}};
  map.live = parsed("{metadata: {name: m}, data: {x: '1'}}");
  const auto result = map("a", "{data: {x: '2'}}");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .data.x");
}

TEST(Apply, CustomResourcesFollowTheirSchema) {
  Crd queues;
  for (const json::Value& object : bundled_crds()) {
    if (name_of(object) == "queues.scheduling.volcano.sh") queues = *parse_crd(object);
  }
  Applier queue{&queues.versions.at(0).schema->shape(), {}};
  ASSERT_TRUE(queue("a", "{spec: {capability: {cpu: 4}, weight: 2}}"));
  ASSERT_TRUE(queue("b", "{spec: {capability: {memory: 1Gi}}}"));
  ASSERT_TRUE(queue("a", "{spec: {weight: 2}}"));
  EXPECT_EQ(queue.content("spec"), R"({"capability":{"memory":"1Gi"},"weight":2})");
}

TEST(TrackUpdate, WritersTakeWhatTheyChange) {
  Applier map{&shape_of(type_of("", "ConfigMap")), {}};
  map.update("one", "{metadata: {name: m, labels: {l: '1'}}, data: {x: '1', z: '2'}}");
  EXPECT_EQ(
      map.owners(),
      "one:{\"f:data\":{\".\":{},\"f:x\":{},\"f:z\":{}},\"f:metadata\":{\"f:labels\":{\".\":{},\"f:l\":{}}}}\n");
  map.update("two", "{data: {x: '9'}}");
  EXPECT_EQ(
      map.owners(),
      "one:{\"f:data\":{\".\":{},\"f:z\":{}},\"f:metadata\":{\"f:labels\":{\".\":{},\"f:l\":{}}}}\ntwo:{\"f:data\":{\"f:x\":{}}}\n");
  map.update("two", "{data: {z: null}}");
  EXPECT_EQ(
      map.owners(),
      "one:{\"f:data\":{},\"f:metadata\":{\"f:labels\":{\".\":{},\"f:l\":{}}}}\ntwo:{\"f:data\":{\"f:x\":{}}}\n");
}

}  // namespace
}  // namespace muster::kube
