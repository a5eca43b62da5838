#include "kube/schema/schema.h"

#include <gtest/gtest.h>

#include "kube/schema/openapi.h"
#include "lib/recorded.h"

namespace muster::kube {
namespace {

const Type& type_of(const char* group, const char* version, const char* kind) {
  const Type* type = Schema::builtin().find_type({group, version, kind});
  EXPECT_NE(type, nullptr) << kind;
  return *type;
}

TEST(Schema, HoldsTheTable) {
  const Schema& schema = Schema::builtin();
  EXPECT_EQ(schema.types().size(), 683U);
  EXPECT_EQ(schema.resources().size(), 77U);
  const Type& pod = type_of("", "v1", "Pod");
  EXPECT_EQ(pod.short_name(), "Pod");
  const Field* spec = pod.find("spec");
  ASSERT_NE(spec, nullptr);
  ASSERT_NE(spec->type.type, nullptr);
  EXPECT_EQ(spec->type.type->find("containers")->merge_key, "name");
  for (const ResourceInfo& info : schema.resources()) {
    EXPECT_NE(schema.find_type(info.gvk()), nullptr) << info.group << "/" << info.kind;
    if (info.plural == "pods") {
      EXPECT_EQ(info.find_subresource("eviction")->group, "policy");
      EXPECT_EQ(info.find_subresource("status")->kind, "Pod");
    }
  }
}

TEST(Schema, MergeKeysAreThoseOfARealServer) {
  const auto keys = recorded::read_json("merge-keys_v1.32.4.json");
  int compared = 0;
  for (const json::Value& one : json::as_array(keys)) {
    const Type* type = Schema::builtin().find_type("io.k8s.api." + json::text_at(one, "type"));
    const Field* field = type == nullptr ? nullptr : type->find(json::string_at(one, "field"));
    if (field == nullptr) continue;  // gone since 1.32
    EXPECT_EQ(field->merge_key, json::string_at(one, "patchMergeKey"))
        << type->name << "." << field->name;
    EXPECT_EQ(field->patch_strategy, json::string_at(one, "patchStrategy"))
        << type->name << "." << field->name;
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(CheckFields, UnknownFieldsAndWrongTypes) {
  struct {
    const char* name;
    const char* kind;
    const char* body;
    const char* want;  // unknown fields joined, or the error
  } cases[] = {
      {"fine",
       "Pod",
       R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":2,"memory":"1Gi"}}}]}})",
       ""},
      {"unknown",
       "Pod",
       R"({"spec":{"containers":[{"imagee":"x"}],"foo":1},"metadata":{"bogus":2}})",
       "spec.containers[0].imagee spec.foo metadata.bogus "},
      {"null is anything", "Pod", R"({"metadata":null,"spec":{"containers":null}})", ""},
      {"bool",
       "Pod",
       R"({"spec":{"hostNetwork":"yes"}})",
       "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool"},
      {"in a list",
       "Pod",
       R"({"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}})",
       "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"},
      {"int32 too large",
       "Pod",
       R"({"spec":{"containers":[{"ports":[{"containerPort":3000000000}]}]}})",
       "json: cannot unmarshal number 3000000000 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"},
      {"list",
       "Pod",
       R"({"spec":{"containers":{}}})",
       "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container"},
      {"map of strings",
       "ConfigMap",
       R"({"data":{"a":1}})",
       "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"},
      {"not an object", "Pod", "[]", "json: cannot unmarshal array into Go value of type v1.Pod"},
      {"quantity",
       "Pod",
       R"({"spec":{"overhead":{"cpu":"1x"}}})",
       "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"},
      {"int or string",
       "Service",
       R"({"spec":{"ports":[{"targetPort":"http"},{"targetPort":80}]}})",
       ""},
  };
  for (const auto& one : cases) {
    const auto body = json::parse(one.body);
    ASSERT_TRUE(body) << one.name;
    const auto unknown = check_fields(type_of("", "v1", one.kind), *body);
    std::string have;
    if (!unknown)
      have = unknown.error().message;
    else
      for (const std::string& path : *unknown) have += path + " ";
    EXPECT_EQ(have, one.want) << one.name;
  }
}

TEST(CheckFields, OfOneMemberAlone) {
  const auto body = json::parse(R"({"spec":{"foo":1},"status":{"phase":"x","bar":[]},"z":1})");
  ASSERT_TRUE(body);
  const Type& pod = type_of("", "v1", "Pod");
  EXPECT_EQ(*check_member(pod, *body, "status"), std::vector<std::string>{"status.bar"});
  EXPECT_EQ(*check_member(pod, *body, "z"), std::vector<std::string>{"z"});
  EXPECT_TRUE(check_member(pod, *body, "metadata")->empty());
  const auto wrong = check_member(pod, *json::parse(R"({"status":{"phase":1}})"), "status");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(
      wrong.error().message,
      "json: cannot unmarshal number into Go struct field PodStatus.status.phase of type string");
}

TEST(CheckFields, DroppingLeavesTheRest) {
  auto body = json::parse(
      R"({"metadata":{"name":"x","z":1},"spec":{"containers":[{"name":"a","q":1}],"z":{}},"z":1})");
  ASSERT_TRUE(body);
  drop_unknown_fields(type_of("", "v1", "Pod"), *body);
  EXPECT_EQ(json::dump(*body), R"({"metadata":{"name":"x"},"spec":{"containers":[{"name":"a"}]}})");
}

TEST(Openapi, EveryKindHasASchemaAndAPatchWithFieldValidation) {
  std::vector<Crd> crds;
  for (const json::Value& object : bundled_crds()) {
    auto crd = parse_crd(object);
    ASSERT_TRUE(crd);
    crds.push_back(*crd);
  }
  const auto check =
      [&](const std::string& group, const std::string& version, const std::string& kind) {
        const json::Value document = openapi_v3(Schema::builtin(), group, version, crds);
        bool patch = false, schema = false;
        for (const auto& path : json::object_at(document, "paths")) {
          const json::Value& operation = json::at(path.value(), "patch");
          if (json::string_at(operation, "x-kubernetes-group-version-kind", "kind") != kind)
            continue;
          for (const json::Value& parameter : json::array_at(operation, "parameters"))
            patch = patch || json::string_at(parameter, "name") == "fieldValidation";
        }
        const json::Object& schemas = json::object_at(document, "components", "schemas");
        for (const auto& one : schemas) {
          for (const json::Value& gvk :
               json::array_at(one.value(), "x-kubernetes-group-version-kind")) {
            schema = schema || (json::string_at(gvk, "kind") == kind &&
                                json::string_at(gvk, "group") == group);
          }
        }
        EXPECT_TRUE(patch && schema) << group << "/" << version << " " << kind;
        // Every reference leads somewhere.
        const std::string text = json::dump(document);
        for (std::size_t at = text.find("#/components/schemas/"); at != std::string::npos;
             at = text.find("#/components/schemas/", at + 1)) {
          const std::size_t first = at + 21;
          const std::string name = text.substr(first, text.find('"', first) - first);
          ASSERT_TRUE(schemas.contains(name)) << name;
        }
      };
  check("", "v1", "Pod");
  check("apps", "v1", "Deployment");
  check("kubeflow.org", "v1", "PyTorchJob");
  check("kubeflow.org", "v2beta1", "MPIJob");
  check("scheduling.volcano.sh", "v1beta1", "Queue");
  check("scheduling.k8s.io", "v1beta1", "PodGroup");
}

}  // namespace
}  // namespace muster::kube
