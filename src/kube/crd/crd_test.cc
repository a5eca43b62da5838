#include "kube/crd/crd.h"

#include <gtest/gtest.h>

#include "kube/kinds/validate.h"
#include "kube/table/table.h"
#include "lib/recorded.h"

namespace muster::kube {
namespace {

json::Value parsed(std::string_view text) {
  auto value = json::parse_yaml_one(text);
  EXPECT_TRUE(value) << value.error().message << "\n" << text;
  return value ? *value : json::Value();
}

Crd bundled(std::string_view name) {
  for (const json::Value& object : bundled_crds()) {
    if (name_of(object) != name) continue;
    auto crd = parse_crd(object);
    EXPECT_TRUE(crd) << crd.error().message;
    return *crd;
  }
  ADD_FAILURE() << "no bundled CRD " << name;
  return {};
}

Crd with_schema(const std::string& schema) {
  json::Value object = parsed(R"(
metadata: {name: widgets.ex.io}
spec:
  group: ex.io
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {}}}}}]
)");
  const json::Value spec = parsed(schema);
  object.at("spec")
      .at("versions")
      .as_array()[0]
      .at("schema")
      .at("openAPIV3Schema")
      .at("properties")
      .at("spec") = spec;
  auto crd = parse_crd(object);
  EXPECT_TRUE(crd) << crd.error().message << schema;
  return crd ? *crd : Crd{};
}

TEST(Crd, BundledOnesAreValidAndNamedAsTheirOriginals) {
  struct {
    const char* name;
    const char* versions;
    const char* short_names;
    const char* columns;  // of the preferred version
    const char* subresources;
  } cases[] = {
      {"pytorchjobs.kubeflow.org", "v1", "", "Name State Age", "status scale"},
      {"tfjobs.kubeflow.org", "v1", "", "Name State Age", "status"},
      {"xgboostjobs.kubeflow.org", "v1", "", "Name State Age", "status"},
      {"paddlejobs.kubeflow.org", "v1", "", "Name State Age", "status scale"},
      {"jaxjobs.kubeflow.org", "v1", "", "Name State Age", "status scale"},
      {"mpijobs.kubeflow.org", "v1 v2beta1 v1alpha1", "", "Name Age State", "status"},
      {"queues.scheduling.volcano.sh", "v1beta1", "q queue-v1beta1", "Name PARENT", "status"},
      {"podgroups.scheduling.volcano.sh",
       "v1beta1",
       "pg podgroup-v1beta1",
       "Name STATUS minMember RUNNINGS AGE QUEUE",
       "status"},
      {"jobs.batch.volcano.sh",
       "v1alpha1",
       "vcjob vj",
       "Name STATUS minAvailable RUNNINGS AGE QUEUE",
       "status"},
      {"commands.bus.volcano.sh", "v1alpha1", "", "Name Age", ""},
      {"hypernodes.topology.volcano.sh",
       "v1alpha1",
       "hn",
       "Name Tier TierName NodeCount Age",
       "status"},
      {"mpijobs.batch.tensorstack.dev",
       "v1beta1",
       "mj",
       "Name PHASE WORKERS RUNNING QUEUE PRIORITY AGE",
       "status"},
      {"podgroups.scheduler.tensorstack.dev",
       "v1beta1",
       "",
       "Name Queue Priority MinMember Running Age",
       "status"},
      {"queues.scheduler.tensorstack.dev",
       "v1beta1",
       "q",
       "Name Priority Preemptible Closed Age",
       "status"},
      {"podgroups.scheduling.x-k8s.io",
       "v1alpha1",
       "pg pgs",
       "Name Phase MinMember Running Succeeded Failed Age",
       "status"},
      {"frameworks.frameworkcontroller.microsoft.com",
       "v1",
       "",
       "Name State Attempt Code Retries Age",
       "status"},
      {"jobrecords.muster.dev", "v1", "", "Name Job Kind User GPUs State Submitted", ""},
      {"historypages.muster.dev", "v1", "", "Name Records First Last", ""},
      {"usagedays.muster.dev", "v1", "", "Name Through", ""},
  };
  EXPECT_EQ(bundled_crds().size(), std::size(cases));
  const auto words = [](const auto& list, auto text) {
    std::string out;
    for (const auto& one : list) out += (out.empty() ? "" : " ") + text(one);
    return out;
  };
  for (const auto& one : cases) {
    const Crd crd = bundled(one.name);
    ASSERT_FALSE(crd.versions.empty()) << one.name;
    EXPECT_EQ(words(crd.versions, [](const CrdVersion& version) { return version.name; }),
              one.versions)
        << one.name;
    const ResourceInfo& info = crd.versions[0].info;
    EXPECT_EQ(words(info.short_names, [](const std::string& name) { return name; }),
              one.short_names)
        << one.name;
    EXPECT_EQ(words(info.columns, [](const Column& column) { return column.name; }), one.columns)
        << one.name;
    EXPECT_EQ(words(info.subresources, [](const Subresource& sub) { return sub.name; }),
              one.subresources)
        << one.name;
  }
}

TEST(Crd, RecordedCustomResourcesAreTreatedAlike) {
  // The recorder's own CRD, then what it created with it.
  std::optional<Crd> widgets;
  int compared = 0;
  for (const recorded::Exchange& exchange : recorded::exchanges("server-v1.32.4_raw-http.jsonl")) {
    if (exchange.suite != "crd" || exchange.method != "POST") continue;
    if (exchange.path.ends_with("/customresourcedefinitions") && exchange.request.is_object()) {
      auto crd = parse_crd(exchange.request);
      ASSERT_TRUE(crd) << crd.error().message;
      widgets = *crd;
    }
    if (!exchange.path.ends_with("/widgets") || !widgets || !exchange.request.is_object()) continue;
    const CrdVersion& version = widgets->versions[0];
    json::Value object = exchange.request;
    version.schema->prune(object, nullptr);
    version.schema->set_defaults(object);
    const auto causes = version.schema->validate(object);
    if (exchange.status == 201) {
      EXPECT_TRUE(causes.empty()) << causes[0].message;
      EXPECT_TRUE(json::equal(json::at(object, "spec"), json::at(exchange.answer, "spec")))
          << json::dump(object);
    } else if (exchange.status == 422) {
      EXPECT_EQ(invalid(version.info.gvk(), name_of(object), causes).message,
                json::string_at(exchange.answer, "message"));
    }
    ++compared;
  }
  EXPECT_GT(compared, 4);
}

TEST(Crd, SchemaRules) {
  struct {
    const char* name;
    const char* schema;
    const char* spec;
    const char* message;  // of the first cause, after its field
  } cases[] = {
      {"integer fits number", "{type: number}", "3", ""},
      {"number is no integer",
       "{type: integer}",
       "1.5",
       "spec: Invalid value: \"number\": spec in body must be of type integer: \"number\""},
      {"int or string", "{x-kubernetes-int-or-string: true}", "50%", ""},
      {"bool is neither",
       "{x-kubernetes-int-or-string: true}",
       "true",
       "spec: Invalid value: \"boolean\": spec in body must be of type integer,string: \"boolean\""},
      {"nullable", "{type: string, nullable: true}", "null", ""},
      {"null",
       "{type: string}",
       "null",
       "spec: Invalid value: \"null\": spec in body must be of type string: \"null\""},
      {"pattern",
       "{type: string, pattern: '^a+$'}",
       "b",
       "spec: Invalid value: \"b\": spec in body should match '^a+$'"},
      {"too short",
       "{type: string, minLength: 2}",
       "b",
       "spec: Invalid value: \"b\": spec in body should be at least 2 chars long"},
      {"too long",
       "{type: string, maxLength: 2}",
       "bbb",
       "spec: Too long: may not be more than 2 bytes"},
      {"exclusive maximum",
       "{type: integer, maximum: 3, exclusiveMaximum: true}",
       "3",
       "spec: Invalid value: 3: spec in body should be less than 3"},
      {"int32",
       "{type: integer, format: int32}",
       "3000000000",
       "spec: Invalid value: 3000000000: spec in body should be within the range of a 32-bit integer (int32)"},
      {"too many items",
       "{type: array, maxItems: 1, items: {type: string}}",
       "[a, b]",
       "spec: Too many: 2: must have at most 1 item"},
      {"too few properties",
       "{type: object, minProperties: 1}",
       "{}",
       "spec: Invalid value: {}: spec in body should have at least 1 properties"},
      {"set",
       "{type: array, x-kubernetes-list-type: set, items: {type: string}}",
       "[a, a]",
       "spec[1]: Duplicate value: \"a\""},
      {"map list",
       "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}}}}",
       "[{k: a}, {k: a}]",
       "spec[1]: Duplicate value: {\"k\":\"a\"}"},
      {"item type",
       "{type: array, items: {type: string}}",
       "[a, 1]",
       "spec[1]: Invalid value: \"integer\": spec[1] in body must be of type string: \"integer\""},
      {"one of",
       "{type: object, properties: {a: {type: string}, b: {type: string}}, oneOf: [{required: [a]}, {required: [b]}]}",
       "{a: x, b: z}",
       "spec: Invalid value: \"\": \"spec\" must validate one and only one schema (oneOf). Found 2 valid alternatives"},
      {"any of",
       "{type: object, x-kubernetes-preserve-unknown-fields: true, anyOf: [{required: [a]}, {required: [b]}]}",
       "{c: x}",
       "spec: Invalid value: \"\": \"spec\" must validate at least one schema (anyOf)"},
      {"not",
       "{type: object, x-kubernetes-preserve-unknown-fields: true, not: {required: [a]}}",
       "{a: x}",
       "spec: Invalid value: \"\": \"spec\" must not validate the schema (not)"},
      {"date-time",
       "{type: string, format: date-time}",
       "\"yesterday\"",
       "spec: Invalid value: \"yesterday\": spec in body must be of type date-time: \"yesterday\""},
  };
  for (const auto& one : cases) {
    const Crd crd = with_schema(one.schema);
    ASSERT_FALSE(crd.versions.empty()) << one.name;
    json::Value object = json::Object{{"spec", parsed(one.spec)}};
    const auto causes = crd.versions[0].schema->validate(object);
    EXPECT_EQ(causes.empty() ? "" : causes[0].field + ": " + causes[0].message, one.message)
        << one.name;
  }
}

TEST(Crd, PruningListsWhatItRemoves) {
  const Crd crd = with_schema(
      "{type: object, properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {b: {type: object}}}, l: {type: array, items: {type: object, properties: {n: {type: string}}}}, m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}}}}}}");
  json::Value object = parsed(
      "{apiVersion: ex.io/v1, kind: Widget, metadata: {name: w, bogus: 1}, spec: {a: {keep: 1, b: {gone: 1}}, l: [{n: x, z: 1}], m: {k: {x: z, q: 1}}, u: 1}, top: 1}");
  std::vector<std::string> unknown;
  crd.versions[0].schema->prune(object, &unknown);
  EXPECT_EQ(
      json::dump(object),
      R"({"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"a":{"keep":1,"b":{}},"l":[{"n":"x"}],"m":{"k":{"x":"z"}}}})");
  std::sort(unknown.begin(), unknown.end());
  const std::vector<std::string> want = {
      "metadata.bogus", "spec.a.b.gone", "spec.l[0].z", "spec.m.k.q", "spec.u", "top"};
  EXPECT_EQ(unknown, want);
}

TEST(Crd, DefaultsReachIntoWhatTheyMake) {
  const Crd crd = with_schema(
      "{type: object, default: {}, properties: {a: {type: string, default: x}, n: {type: object, properties: {b: {type: integer, default: 3}}}}}");
  json::Value empty = json::Object();
  crd.versions[0].schema->set_defaults(empty);
  EXPECT_EQ(json::dump(empty), R"({"spec":{"a":"x"}})");
  json::Value with_n = json::Object{{"spec", json::Object{{"n", json::Object()}, {"a", nullptr}}}};
  crd.versions[0].schema->set_defaults(with_n);
  EXPECT_EQ(json::dump(with_n), R"({"spec":{"n":{"b":3},"a":"x"}})");
  json::Value nulls = json::Object{{"spec", json::Object{{"n", nullptr}}}};
  crd.versions[0].schema->set_defaults(nulls);
  EXPECT_EQ(json::dump(nulls), R"({"spec":{"a":"x"}})")
      << "a null without a default is as good as nothing";
}

TEST(Crd, InvalidOnesSayWhy) {
  struct {
    const char* name;
    const char* object;
    const char* field;
  } cases[] = {
      {"name",
       "{metadata: {name: x.ex.io}, spec: {group: ex.io, scope: Namespaced, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}",
       "metadata.name"},
      {"scope",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Some, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}",
       "spec.scope"},
      {"no storage",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}]}}",
       "spec.versions"},
      {"no schema",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true}]}}",
       "spec.versions[0].schema.openAPIV3Schema"},
      {"untyped field",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {description: x}}}}}]}}",
       "spec.validation.openAPIV3Schema.properties[spec].type"},
      {"bad pattern",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: string, pattern: '('}}}}}]}}",
       "spec.validation.openAPIV3Schema.properties[spec].pattern"},
      {"default of another type",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: integer, default: x}}}}}]}}",
       "spec.validation.openAPIV3Schema.properties[spec].default"},
      {"default wrong inside",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, default: {b: x}, properties: {b: {type: integer}}}}}}}]}}",
       "spec.validation.openAPIV3Schema.properties[spec].default.b"},
      {"default that would be pruned",
       "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, default: {c: 1}, properties: {b: {type: integer}}}}}}}]}}",
       "spec.validation.openAPIV3Schema.properties[spec].default"},
  };
  for (const auto& one : cases) {
    const auto crd = parse_crd(parsed(one.object));
    ASSERT_FALSE(crd) << one.name;
    EXPECT_EQ(crd.error().code, Code::kInvalid) << one.name;
    EXPECT_EQ(crd.error().causes.at(0).field, one.field) << one.name << crd.error().message;
  }
}

TEST(Crd, RowsUseThePrinterColumns) {
  const Crd crd = bundled("podgroups.scheduling.volcano.sh");
  const json::Value row = table_row(
      crd.versions.at(0).info,
      parsed(
          "{metadata: {name: job-1, creationTimestamp: '2026-11-15T05:00:00Z'}, spec: {minMember: 6, queue: test}, status: {phase: Running}}"),
      *parse_time("2026-11-15T05:00:02Z"));
  EXPECT_EQ(json::dump(json::at(row, "cells")), R"(["job-1","Running",6,null,"2s","test"])");
}

TEST(Crd, VersionsStandInKubernetesOrder) {
  json::Value object = parsed(
      "{metadata: {name: ws.ex.io}, spec: {group: ex.io, scope: Cluster, names: {plural: ws, kind: W}, versions: []}}");
  for (const char* name :
       {"foo1", "v1alpha2", "v2beta1", "v10", "v1", "v11beta2", "v1alpha1", "v3beta1"}) {
    object.at("spec")
        .at("versions")
        .as_array()
        .push_back(json::Object{
            {"name", name},
            {"served", true},
            {"storage", std::string_view(name) == "v1"},
            {"schema", json::Object{{"openAPIV3Schema", json::Object{{"type", "object"}}}}}});
  }
  const auto crd = parse_crd(object);
  ASSERT_TRUE(crd) << crd.error().message;
  std::string order;
  for (const CrdVersion& version : crd->versions) order += version.name + " ";
  EXPECT_EQ(order, "v10 v1 v11beta2 v3beta1 v2beta1 v1alpha2 v1alpha1 foo1 ");
}

}  // namespace
}  // namespace muster::kube
