#include "kube/kinds/validate.h"

#include <gtest/gtest.h>

#include <map>

#include "lib/recorded.h"

namespace muster::kube {
namespace {

json::Value parsed(std::string_view text) {
  auto value = json::parse_yaml_one(text);
  EXPECT_TRUE(value) << value.error().message << "\n" << text;
  return value ? *value : json::Value();
}

json::Value made(const Gvk& gvk, std::string_view yaml) {
  json::Value object = parsed(yaml);
  set_defaults(kind_of(gvk), object);
  prepare_create(kind_of(gvk), object, Time::from_seconds(1000));
  return object;
}

std::string text_of(const std::vector<Cause>& causes) {
  std::string out;
  for (const Cause& cause : causes)
    out += (out.empty() ? "" : "\n") + cause.field + ": " + cause.message;
  return out;
}

const Gvk kPod{"", "v1", "Pod"};

TEST(ValidatePod, Rules) {
  struct {
    const char* name;
    const char* spec;
    const char* want;
  } cases[] = {
      {"fine", "{containers: [{name: a, image: i}]}", ""},
      {"bad container name",
       "{containers: [{name: A_b, image: i}]}",
       "spec.containers[0].name: Invalid value: \"A_b\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
       "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
      {"mount without volume",
       "{containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /x}]}]}",
       "spec.containers[0].volumeMounts[0].name: Not found: \"v\""},
      {"two mounts on one path",
       "{volumes: [{name: v, emptyDir: {}}], containers: [{name: a, image: i, volumeMounts: [{name: v, mountPath: /x}, {name: v, mountPath: /x}]}]}",
       "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/x\": must be unique"},
      {"two sources",
       "{volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}], containers: [{name: a, image: i}]}",
       "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"},
      {"duplicate volume",
       "{volumes: [{name: v}, {name: v}], containers: [{name: a, image: i}]}",
       "spec.volumes[1].name: Duplicate value: \"v\""},
      {"env without name",
       "{containers: [{name: a, image: i, env: [{value: x}]}]}",
       "spec.containers[0].env[0].name: Required value"},
      {"env with =",
       "{containers: [{name: a, image: i, env: [{name: 'a=b'}]}]}",
       "spec.containers[0].env[0].name: Invalid value: \"a=b\": a valid environment variable name must consist only of printable ASCII characters other than '='"},
      {"port out of range",
       "{containers: [{name: a, image: i, ports: [{containerPort: 70000}]}]}",
       "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"},
      {"half a GPU",
       "{containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 500m}}}]}",
       "spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer\nspec.containers[0].resources.requests[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer"},
      {"unknown resource",
       "{containers: [{name: a, image: i, resources: {requests: {gpu: 1}}}]}",
       "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified\n"
       "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource for containers"},
      {"init and main of one name",
       "{containers: [{name: a, image: i}], initContainers: [{name: a, image: i}]}",
       "spec.initContainers[0].name: Duplicate value: \"a\""},
      {"gates",
       "{containers: [{name: a, image: i}], schedulingGates: [{name: x.y/z}, {name: x.y/z}]}",
       "spec.schedulingGates[1]: Duplicate value: \"x.y/z\""},
      {"toleration",
       "{containers: [{name: a, image: i}], tolerations: [{operator: Equal}]}",
       "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\""},
      {"weight",
       "{containers: [{name: a, image: i}], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {topologyKey: x}}]}}}",
       "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100"},
      {"deadline",
       "{containers: [{name: a, image: i}], activeDeadlineSeconds: 0}",
       "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"},
      {"probe without handler",
       "{containers: [{name: a, image: i, livenessProbe: {}}]}",
       "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
  };
  for (const auto& one : cases) {
    const json::Value pod =
        made(kPod, "{metadata: {name: p, namespace: ns}, spec: " + std::string(one.spec) + "}");
    EXPECT_EQ(text_of(validate_create(kind_of(kPod), true, pod)), one.want) << one.name;
  }
}

TEST(ValidatePod, UpdatesMayChangeLittle) {
  const json::Value live = made(
      kPod,
      "{metadata: {name: p, namespace: ns}, spec: {nodeName: n1, containers: [{name: a, image: i}], tolerations: [{key: k, operator: Exists}]}}");
  struct {
    const char* name;
    const char* patch;
    const char* want;  // start of the text
  } cases[] = {
      {"nothing", "{}", ""},
      {"labels", "{metadata: {labels: {a: b}}}", ""},
      {"image", "{spec: {containers: [{name: a, image: j}]}}", ""},
      {"more tolerations",
       "{spec: {tolerations: [{key: k, operator: Exists}, {key: l, operator: Exists}]}}",
       ""},
      {"fewer tolerations",
       "{spec: {tolerations: []}}",
       "spec.tolerations: Forbidden: existing toleration can not be modified"},
      {"node",
       "{spec: {nodeName: n2}}",
       "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"},
      {"group",
       "{spec: {schedulingGroup: {podGroupName: g}}}",
       "spec: Forbidden: pod updates may not change fields other than"},
      {"gate",
       "{spec: {schedulingGates: [{name: x.y/z}]}}",
       "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'x.y/z'"},
      {"containers",
       "{spec: {containers: [{name: a, image: i}, {name: b, image: i}]}}",
       "spec.containers: Forbidden: pod updates may not add or remove containers"},
      {"deadline set", "{spec: {activeDeadlineSeconds: 5}}", ""},
      {"name", "{metadata: {name: q}}", "metadata.name: Invalid value: \"q\": field is immutable"},
  };
  for (const auto& one : cases) {
    json::Value updated = live;
    json::merge_patch(updated, parsed(one.patch));
    set_defaults(kind_of(kPod), updated);
    prepare_update(kind_of(kPod), updated, live);
    const std::string have = text_of(validate_update(kind_of(kPod), true, updated, live));
    EXPECT_EQ(have.substr(0, std::string_view(one.want).size()), one.want) << one.name;
    if (*one.want == 0) EXPECT_EQ(have, "") << one.name;
  }
}

TEST(Prepare, GenerationFollowsTheSpec) {
  const json::Value live =
      made(kPod, "{metadata: {name: p, namespace: ns}, spec: {containers: [{name: a, image: i}]}}");
  EXPECT_EQ(json::int_at(live, "metadata", "generation"), 1);
  json::Value updated = live;
  updated.at("metadata").as_object()["labels"] = json::Object{{"a", "b"}};
  updated.at("status").as_object()["phase"] = "Running";
  prepare_update(kind_of(kPod), updated, live);
  EXPECT_EQ(json::int_at(updated, "metadata", "generation"), 1);
  EXPECT_EQ(json::string_at(updated, "status", "phase"), "Pending");
  updated.at("spec").at("containers").as_array()[0].as_object()["image"] = "j";
  prepare_update(kind_of(kPod), updated, live);
  EXPECT_EQ(json::int_at(updated, "metadata", "generation"), 2);

  json::Value status = live;
  status.at("status").as_object()["phase"] = "Running";
  status.at("spec").as_object()["nodeName"] = "ignored";
  prepare_status_update(kind_of(kPod), status, live);
  EXPECT_EQ(json::string_at(status, "status", "phase"), "Running");
  EXPECT_TRUE(json::at(status, "spec", "nodeName").is_null());
}

TEST(Defaults, WhatUsersSee) {
  struct {
    const char* name;
    Gvk gvk;
    const char* object;
    const char* pointer;
    const char* want;
  } cases[] = {
      {"quantity",
       kPod,
       "{spec: {containers: [{name: a, image: i, resources: {limits: {cpu: 0.5, memory: 1.5Gi, nvidia.com/gpu: 2}}}]}}",
       "/spec/containers/0/resources",
       R"({"limits":{"cpu":"500m","memory":"1536Mi","nvidia.com/gpu":"2"},"requests":{"cpu":"500m","memory":"1536Mi","nvidia.com/gpu":"2"}})"},
      {"pull policy latest",
       kPod,
       "{spec: {containers: [{name: a, image: 'r:5000/x'}]}}",
       "/spec/containers/0/imagePullPolicy",
       "\"Always\""},
      {"pull policy digest",
       kPod,
       "{spec: {containers: [{name: a, image: 'x@sha256:0'}]}}",
       "/spec/containers/0/imagePullPolicy",
       "\"IfNotPresent\""},
      {"volume",
       kPod,
       "{spec: {volumes: [{name: v}]}}",
       "/spec/volumes/0",
       R"({"name":"v","emptyDir":{}})"},
      {"host ports",
       kPod,
       "{spec: {hostNetwork: true, containers: [{name: a, image: i, ports: [{containerPort: 80}]}]}}",
       "/spec/containers/0/ports/0",
       R"({"containerPort":80,"protocol":"TCP","hostPort":80})"},
      {"template keeps its requests",
       {"apps", "v1", "Deployment"},
       "{spec: {template: {spec: {containers: [{name: a, image: 'i:1', resources: {limits: {cpu: 1}}}]}}}}",
       "/spec/template/spec/containers/0/resources",
       R"({"limits":{"cpu":"1"}})"},
      {"secret", {"", "v1", "Secret"}, "{stringData: {a: b}}", "/data", R"({"a":"Yg=="})"},
      {"work queue",
       {"batch", "v1", "Job"},
       "{spec: {parallelism: 3}}",
       "/spec/completions",
       "none"},
      {"limit range",
       {"", "v1", "LimitRange"},
       "{spec: {limits: [{type: Container, max: {cpu: 2}}]}}",
       "/spec/limits/0/defaultRequest",
       R"({"cpu":"2"})"},
      {"times",
       {"coordination.k8s.io", "v1", "Lease"},
       "{spec: {renewTime: '2026-01-01T01:00:00+01:00'}}",
       "/spec/renewTime",
       "\"2026-01-01T00:00:00.000000Z\""},
      {"plain zeros say nothing",
       kPod,
       "{spec: {hostNetwork: false, hostPID: false, containers: [{name: a, image: 'i:1', tty: false, ports: [{containerPort: 80, hostPort: 0}], volumeMounts: [{name: v, mountPath: /v, readOnly: false}]}]}}",
       "/spec",
       R"({"containers":[{"name":"a","image":"i:1","ports":[{"containerPort":80,"protocol":"TCP"}],"volumeMounts":[{"name":"v","mountPath":"/v"}],"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},"schedulerName":"default-scheduler","enableServiceLinks":true})"},
      {"a probe's zeros are its defaults",
       kPod,
       "{spec: {containers: [{name: a, image: 'i:1', livenessProbe: {periodSeconds: 0, timeoutSeconds: 0, initialDelaySeconds: 0, tcpSocket: {port: 80}}}]}}",
       "/spec/containers/0/livenessProbe",
       R"({"tcpSocket":{"port":80},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3})"},
      {"pointers keep their zeros",
       {"apps", "v1", "Deployment"},
       "{spec: {replicas: 0, revisionHistoryLimit: 0}}",
       "/spec/replicas",
       "0"},
      {"a node hands out all it has",
       {"", "v1", "Node"},
       "{status: {capacity: {cpu: 4, memory: 8Gi}}}",
       "/status/allocatable",
       R"({"cpu":"4","memory":"8Gi"})"},
      {"a node that keeps some",
       {"", "v1", "Node"},
       "{status: {capacity: {cpu: 4}, allocatable: {cpu: 3}}}",
       "/status/allocatable",
       R"({"cpu":"3"})"},
      {"a null label", kPod, "{metadata: {labels: {a: null}}}", "/metadata/labels", R"({"a":""})"},
      {"role binding",
       {"rbac.authorization.k8s.io", "v1", "RoleBinding"},
       "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: u}]}",
       "/subjects/0/apiGroup",
       "\"rbac.authorization.k8s.io\""},
  };
  for (const auto& one : cases) {
    json::Value object = parsed(one.object);
    set_defaults(kind_of(one.gvk), object);
    const json::Value* found = json::find_pointer(object, one.pointer);
    EXPECT_EQ(found == nullptr ? "none" : json::dump(*found), one.want) << one.name;
    const json::Value once = object;
    set_defaults(kind_of(one.gvk), object);
    EXPECT_TRUE(json::equal(once, object)) << one.name << ": defaults are not idempotent";
  }
}

TEST(Defaults, OfAStatusAloneAreThoseOfTheWhole) {
  int kinds = 0;
  for (const ResourceInfo& info : Schema::builtin().resources()) {
    const Kind& kind = kind_of(info.gvk());
    if (kind.type == nullptr || kind.type->find("status") == nullptr) continue;
    ++kinds;
    for (const std::string_view status :
         {"{}",
          "{capacity: {cpu: 1000m, memory: 1024Mi}, phase: '', conditions: []}",
          "{conditions: [{type: Ready, lastTransitionTime: null, reason: null}], hostIP: '',"
          " startTime: '2026-11-15T12:14:33.5Z', containerStatuses: [{name: a, allocatedResources:"
          " {cpu: 1000m}, lastState: {}, imageID: ''}]}"}) {
      json::Value whole =
          made(info.gvk(), "{metadata: {name: a}, spec: {containers: [{name: a}]}}");
      whole.get_object()["status"] = parsed(status);
      json::Value alone = whole;
      set_defaults(kind, whole);
      set_status_defaults(kind, alone);
      EXPECT_TRUE(json::equal(alone, whole)) << info.kind << "\n" << json::dump(alone);
      EXPECT_EQ(json::dump(json::at(alone, "status")), json::dump(json::at(whole, "status")))
          << info.kind;
    }
  }
  EXPECT_GT(kinds, 20);
}

TEST(Validate, OtherKinds) {
  struct {
    const char* name;
    Gvk gvk;
    bool namespaced;
    const char* object;
    const char* want;
  } cases[] = {
      {"namespace name",
       {"", "v1", "Namespace"},
       false,
       "{metadata: {name: a.b}}",
       "metadata.name: Invalid value: \"a.b\": must not contain dots"},
      {"service without ports",
       {"", "v1", "Service"},
       true,
       "{metadata: {name: s, namespace: ns}, spec: {}}",
       "spec.ports: Required value"},
      {"headless without ports",
       {"", "v1", "Service"},
       true,
       "{metadata: {name: s, namespace: ns}, spec: {clusterIP: None}}",
       ""},
      {"two ports need names",
       {"", "v1", "Service"},
       true,
       "{metadata: {name: s, namespace: ns}, spec: {ports: [{port: 80}, {port: 81}]}}",
       "spec.ports[0].name: Required value\nspec.ports[1].name: Required value"},
      {"priority class value",
       {"scheduling.k8s.io", "v1", "PriorityClass"},
       false,
       "{metadata: {name: p}, value: 1000000001}",
       "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
      {"pdb both",
       {"policy", "v1", "PodDisruptionBudget"},
       true,
       "{metadata: {name: p, namespace: ns}, spec: {minAvailable: 1, maxUnavailable: 1}}",
       "spec: Invalid value: {\"minAvailable\":1,\"maxUnavailable\":1}: minAvailable and maxUnavailable cannot be both set"},
      {"pdb percent",
       {"policy", "v1", "PodDisruptionBudget"},
       true,
       "{metadata: {name: p, namespace: ns}, spec: {minAvailable: 101%}}",
       "spec.minAvailable: Invalid value: \"101%\": must not be greater than 100%"},
      {"selector of deployment",
       {"apps", "v1", "Deployment"},
       true,
       "{metadata: {name: d, namespace: ns}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: a, image: i}]}}}}",
       "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`"},
      {"restart policy of job",
       {"batch", "v1", "Job"},
       true,
       "{metadata: {name: j, namespace: ns}, spec: {template: {spec: {containers: [{name: a, image: i}]}}}}",
       "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""},
      {"role",
       {"rbac.authorization.k8s.io", "v1", "Role"},
       true,
       "{metadata: {name: 'system:x', namespace: ns}, rules: [{resources: [pods], apiGroups: ['']}]}",
       "rules[0].verbs: Required value"},
      {"taint",
       {"", "v1", "Node"},
       false,
       "{metadata: {name: n1}, spec: {taints: [{key: a, effect: Never}]}}",
       "metadata.taints[0].effect: Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\""},
      {"quota",
       {"", "v1", "ResourceQuota"},
       true,
       "{metadata: {name: q, namespace: ns}, spec: {hard: {pods: 1.5, requests.nvidia.com/gpu: 2}}}",
       "spec.hard[pods]: Invalid value: \"1500m\": must be an integer"},
      {"namespace on a node",
       {"", "v1", "Node"},
       false,
       "{metadata: {name: n1, namespace: x}}",
       "metadata.namespace: Forbidden: not allowed on this type"},
      {"generate name",
       {"", "v1", "ConfigMap"},
       true,
       "{metadata: {generateName: Bad, name: x, namespace: ns}}",
       "metadata.generateName: Invalid value: \"Bad\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
       "character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
  };
  for (const auto& one : cases) {
    const json::Value object = made(one.gvk, one.object);
    EXPECT_EQ(text_of(validate_create(kind_of(one.gvk), one.namespaced, object)), one.want)
        << one.name;
  }
}

/// The recorder's 73 probes of native gang scheduling: the bodies are ours, the answers a
/// real 1.37's.
class NativeGang : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto data = recorded::read_json("native-gang_v1.37.0.json");
    for (const json::Value& entry : json::as_array(data)) {
      if (json::string_at(entry, "name") != "validation-probes") continue;
      for (const json::Value& probe : json::array_at(entry, "objects"))
        answers_[json::text_at(probe, "case")] = json::text_at(probe, "message");
    }
    ASSERT_EQ(answers_.size(), 73U);
  }

  static std::string message(const Gvk& gvk, const json::Value& object, std::vector<Cause> causes) {
    return causes.empty() ? "ACCEPTED" : invalid(gvk, name_of(object), std::move(causes)).message;
  }
  void expect(const std::string& name, const std::string& have) {
    ASSERT_TRUE(answers_.contains(name)) << name;
    const std::string want = answers_[name].starts_with("ACCEPTED") ? "ACCEPTED" : answers_[name];
    EXPECT_EQ(have, want) << name;
  }

  std::map<std::string, std::string> answers_;
};

TEST_F(NativeGang, Creates) {
  const Gvk group{"scheduling.k8s.io", "v1beta1", "PodGroup"},
      workload{"scheduling.k8s.io", "v1beta1", "Workload"},
      composite{"scheduling.k8s.io", "v1alpha3", "CompositePodGroup"}, job{"batch", "v1", "Job"};
  const std::string gang = "schedulingPolicy: {gang: {minCount: 1}}";
  const std::string template_a = "{name: a, " + gang + "}";
  const std::string pod =
      "template: {spec: {restartPolicy: Never, containers: [{name: a, image: i}]}}";
  const std::string leaf = "podGroupTemplates: [{name: leaf, " + gang + "}]";
  const auto level = [](const std::string& name, const std::string& inner) {
    return "compositePodGroupTemplates: [{name: " + name + ", schedulingPolicy: {basic: {}}, " +
           inner + "}]";
  };
  struct {
    const char* name;
    Gvk gvk;
    const char* object_name;
    std::string spec;
  } cases[] = {
      {"podgroup: no policy", group, "a1", "{}"},
      {"podgroup: empty policy", group, "a2", "{schedulingPolicy: {}}"},
      {"podgroup: both policies",
       group,
       "a3",
       "{schedulingPolicy: {basic: {}, gang: {minCount: 1}}}"},
      {"podgroup: minCount 0", group, "a4", "{schedulingPolicy: {gang: {minCount: 0}}}"},
      {"podgroup: minCount -1", group, "a5", "{schedulingPolicy: {gang: {minCount: -1}}}"},
      {"podgroup: minCount missing", group, "a6", "{schedulingPolicy: {gang: {}}}"},
      {"podgroup: disruptionMode both",
       group,
       "a7",
       "{" + gang + ", disruptionMode: {single: {}, all: {}}}"},
      {"podgroup: disruptionMode {}", group, "a8", "{" + gang + ", disruptionMode: {}}"},
      {"podgroup: 2 topology keys",
       group,
       "a9",
       "{" + gang + ", schedulingConstraints: {topology: [{key: a}, {key: b}]}}"},
      {"podgroup: bad topology key",
       group,
       "a10",
       "{" + gang + ", schedulingConstraints: {topology: [{key: 'a b'}]}}"},
      {"podgroup: empty topology key",
       group,
       "a11",
       "{" + gang + ", schedulingConstraints: {topology: [{}]}}"},
      {"podgroup: parent without workloadRef",
       group,
       "a12",
       "{" + gang + ", parentCompositePodGroupName: p}"},
      {"podgroup: workloadRef incomplete",
       group,
       "a13",
       "{" + gang + ", workloadRef: {workloadName: w}}"},
      {"podgroup: workloadRef bad template name",
       group,
       "a14",
       "{" + gang + ", workloadRef: {workloadName: w, templateName: A.b}}"},
      {"podgroup: system class",
       group,
       "a17s",
       "{" + gang + ", priorityClassName: system-node-critical, priority: 2000001000}"},
      {"podgroup: 5 claims",
       group,
       "a19",
       "{" + gang +
           ", resourceClaims: [{name: a, resourceClaimName: r}, {name: b, resourceClaimName: r}, {name: c, resourceClaimName: r}, {name: d, resourceClaimName: r}, {name: e, resourceClaimName: r}]}"},
      {"podgroup: claim with neither", group, "a20", "{" + gang + ", resourceClaims: [{name: a}]}"},
      {"podgroup: claim with both",
       group,
       "a21",
       "{" + gang +
           ", resourceClaims: [{name: a, resourceClaimName: r, resourceClaimTemplateName: t}]}"},
      {"podgroup: duplicate claims",
       group,
       "a22",
       "{" + gang +
           ", resourceClaims: [{name: c, resourceClaimName: r}, {name: c, resourceClaimName: r}]}"},
      {"podgroup: bad name", group, "Bad_Name", "{" + gang + "}"},
      {"podgroup: workloadRef to a Workload that does not exist",
       group,
       "ok1",
       "{" + gang + ", workloadRef: {workloadName: ghost, templateName: t}}"},
      {"podgroup: basic + all",
       group,
       "ok2",
       "{schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}}"},
      {"workload: no templates", workload, "w1", "{}"},
      {"workload: both kinds",
       workload,
       "w2",
       "{podGroupTemplates: [" + template_a +
           "], compositePodGroupTemplates: [{name: r, schedulingPolicy: {basic: {}}, " + leaf +
           "}]}"},
      {"workload: 9 templates",
       workload,
       "w3",
       "{podGroupTemplates: [{name: a, " + gang + "}, {name: b, " + gang + "}, {name: c, " + gang +
           "}, {name: d, " + gang + "}, {name: e, " + gang + "}, {name: f, " + gang +
           "}, {name: g, " + gang + "}, {name: h, " + gang + "}, {name: i, " + gang + "}]}"},
      {"workload: duplicate template",
       workload,
       "w4",
       "{podGroupTemplates: [" + template_a + ", " + template_a + "]}"},
      {"workload: bad template name",
       workload,
       "w5",
       "{podGroupTemplates: [{name: A_b, " + gang + "}]}"},
      {"workload: two priorities",
       workload,
       "w6",
       "{podGroupTemplates: [{name: a, priority: 1, " + gang + "}, {name: b, priority: 2, " + gang +
           "}]}"},
      {"workload: unknown class (not checked)",
       workload,
       "w6b",
       "{podGroupTemplates: [{name: a, priorityClassName: nope, " + gang + "}]}"},
      {"workload: composite without child",
       workload,
       "w7",
       "{compositePodGroupTemplates: [{name: r, schedulingPolicy: {basic: {}}}]}"},
      {"workload: composite minGroupCount 0",
       workload,
       "w8",
       "{compositePodGroupTemplates: [{name: r, schedulingPolicy: {gang: {minGroupCount: 0}}, " +
           leaf + "}]}"},
      {"workload: 3 composite levels + leaf",
       workload,
       "w9",
       "{" + level("r3", level("r2", level("r1", leaf))) + "}"},
      {"workload: same name in different levels",
       workload,
       "w11",
       "{compositePodGroupTemplates: [{name: x, schedulingPolicy: {basic: {}}, podGroupTemplates: [{name: x, " +
           gang + "}]}]}"},
      {"workload: controllerRef without kind",
       workload,
       "w12",
       "{controllerRef: {name: j}, podGroupTemplates: [" + template_a + "]}"},
      {"composite: no workloadRef",
       composite,
       "c1",
       "{schedulingPolicy: {gang: {minGroupCount: 2}}}"},
      {"composite: minGroupCount missing",
       composite,
       "c2",
       "{workloadRef: {workloadName: w, templateName: t}, schedulingPolicy: {gang: {}}}"},
      {"pod: schedulingGroup {}",
       kPod,
       "p2",
       "{containers: [{name: a, image: i}], schedulingGroup: {}}"},
      {"pod: podGroupName empty",
       kPod,
       "p3",
       "{containers: [{name: a, image: i}], schedulingGroup: {podGroupName: ''}}"},
      {"pod: podGroupName bad",
       kPod,
       "p4",
       "{containers: [{name: a, image: i}], schedulingGroup: {podGroupName: A_b}}"},
      {"job: scheduling policy both",
       job,
       "j1",
       "{parallelism: 2, scheduling: {schedulingPolicy: {basic: {}, gang: {}}}, " + pod + "}"},
      {"job: scheduling policy {}",
       job,
       "j2",
       "{parallelism: 2, scheduling: {schedulingPolicy: {}}, " + pod + "}"},
      {"job: gang minCount > parallelism",
       job,
       "j3",
       "{parallelism: 2, scheduling: {schedulingPolicy: {gang: {minCount: 3}}}, " + pod + "}"},
      {"job: disruptionMode all with basic",
       job,
       "j4",
       "{parallelism: 2, scheduling: {schedulingPolicy: {basic: {}}, disruptionMode: {all: {}}}, " +
           pod + "}"},
      {"job: scheduling {}", job, "j5", "{parallelism: 2, scheduling: {}, " + pod + "}"},
      {"job: 2 topology",
       job,
       "j6",
       "{parallelism: 2, scheduling: {schedulingPolicy: {gang: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}}, " +
           pod + "}"},
      {"job: topology with basic",
       job,
       "j7",
       "{parallelism: 2, scheduling: {schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}]}}, " +
           pod + "}"},
  };
  for (const auto& one : cases) {
    const json::Value object = made(one.gvk,
                                    std::string("{metadata: {name: ") + one.object_name +
                                        ", namespace: val}, spec: " + one.spec + "}");
    expect(one.name, message(one.gvk, object, validate_create(kind_of(one.gvk), true, object)));
  }
}

TEST_F(NativeGang, Updates) {
  const Gvk group{"scheduling.k8s.io", "v1beta1", "PodGroup"},
      workload{"scheduling.k8s.io", "v1beta1", "Workload"},
      composite{"scheduling.k8s.io", "v1alpha3", "CompositePodGroup"};
  const json::Value ok = made(
      group,
      "{metadata: {name: ok, namespace: val}, spec: {workloadRef: {workloadName: x, templateName: t}, schedulingPolicy: {gang: {minCount: 2}}, schedulingConstraints: {topology: [{key: rack}]}, priority: 0, preemptionPolicy: PreemptLowerPriority}}");
  const json::Value wok = made(
      workload,
      "{metadata: {name: wok, namespace: val}, spec: {controllerRef: {apiGroup: batch, kind: Job, name: j}, podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 1}}}, {name: b, schedulingPolicy: {gang: {minCount: 1}}}]}}");
  const json::Value c3 = made(
      composite,
      "{metadata: {name: c3, namespace: val}, spec: {workloadRef: {workloadName: w, templateName: t}, schedulingPolicy: {gang: {minGroupCount: 2}}}}");
  struct {
    const char* name;
    Gvk gvk;
    const json::Value& live;
    const char* patch;
  } cases[] = {
      {"update: minCount 2->3", group, ok, "{spec: {schedulingPolicy: {gang: {minCount: 3}}}}"},
      {"update: minCount ->0", group, ok, "{spec: {schedulingPolicy: {gang: {minCount: 0}}}}"},
      {"update: gang->basic", group, ok, "{spec: {schedulingPolicy: {gang: null, basic: {}}}}"},
      {"update: disruptionMode", group, ok, "{spec: {disruptionMode: {single: null, all: {}}}}"},
      {"update: topology", group, ok, "{spec: {schedulingConstraints: {topology: [{key: zone}]}}}"},
      {"update: topology removed", group, ok, "{spec: {schedulingConstraints: null}}"},
      {"update: workloadRef", group, ok, "{spec: {workloadRef: {templateName: u}}}"},
      {"update: priority", group, ok, "{spec: {priority: 5}}"},
      {"update: priorityClassName", group, ok, "{spec: {priorityClassName: high}}"},
      {"update: preemptionPolicy", group, ok, "{spec: {preemptionPolicy: Never}}"},
      {"update: parent", group, ok, "{spec: {parentCompositePodGroupName: p}}"},
      {"update: resourceClaims",
       group,
       ok,
       "{spec: {resourceClaims: [{name: a, resourceClaimName: r}]}}"},
      {"workload update: controllerRef", workload, wok, "{spec: {controllerRef: {name: k}}}"},
      {"workload update: add template",
       workload,
       wok,
       "{spec: {podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 1}}}, {name: b, schedulingPolicy: {gang: {minCount: 1}}}, {name: c, schedulingPolicy: {gang: {minCount: 1}}}]}}"},
      {"workload update: remove template",
       workload,
       wok,
       "{spec: {podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 1}}}]}}"},
      {"workload update: minCount",
       workload,
       wok,
       "{spec: {podGroupTemplates: [{name: a, schedulingPolicy: {gang: {minCount: 4}}}, {name: b, schedulingPolicy: {gang: {minCount: 1}}}]}}"},
      {"workload update: priorityClassName",
       workload,
       wok,
       "{spec: {podGroupTemplates: [{name: a, priorityClassName: x, schedulingPolicy: {gang: {minCount: 1}}}, {name: b, schedulingPolicy: {gang: {minCount: 1}}}]}}"},
      {"composite update: minGroupCount",
       composite,
       c3,
       "{spec: {schedulingPolicy: {gang: {minGroupCount: 3}}}}"},
  };
  for (const auto& one : cases) {
    json::Value updated = one.live;
    json::merge_patch(updated, parsed(one.patch));
    set_defaults(kind_of(one.gvk), updated);
    prepare_update(kind_of(one.gvk), updated, one.live);
    expect(one.name,
           message(one.gvk, updated, validate_update(kind_of(one.gvk), true, updated, one.live)));
  }
  json::Value status = ok;
  json::make(status, {"status", "resourceClaimStatuses"}) = parsed("[{name: zz}]");
  expect("status: bad claim status",
         message(group, status, validate_update(kind_of(group), true, status, ok)));
  status = ok;
  json::make(status, {"status", "conditions"}) =
      parsed("[{type: X, status: 'True', message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}]");
  expect("status: condition without reason",
         message(group, status, validate_update(kind_of(group), true, status, ok)));
}

TEST(Validate, WhatUpdatesMayNotChange) {
  const auto refused = [](const Gvk& gvk, std::string_view live_text, std::string_view patch) {
    const json::Value live = *json::parse_yaml_one(live_text);
    json::Value updated = live;
    json::merge_patch(updated, *json::parse_yaml_one(patch));
    return text_of(validate_update(kind_of(gvk), true, updated, live));
  };
  const Gvk quota{"", "v1", "ResourceQuota"}, job{"batch", "v1", "Job"};
  constexpr std::string_view kQuota =
      "{metadata: {name: q, namespace: ns, uid: u, resourceVersion: '1'}, spec: {hard: {pods: '1'}, scopes: [BestEffort, NotTerminating]}}";
  EXPECT_EQ(refused(quota, kQuota, "{spec: {scopes: [NotTerminating, BestEffort]}}"), "");
  EXPECT_EQ(refused(quota, kQuota, "{spec: {scopes: [BestEffort]}}"),
            "spec.scopes: Invalid value: [\"BestEffort\"]: field is immutable");
  constexpr std::string_view kJob =
      "{metadata: {name: j, namespace: ns, uid: u, resourceVersion: '1'}, spec: {parallelism: 1, completions: 1, backoffLimit: 6, "
      "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}";
  EXPECT_NE(refused(job, kJob, "{spec: {template: {metadata: {labels: {a: c}}}}}")
                .find("`selector` does not match template `labels`"),
            std::string::npos);
}

}  // namespace
}  // namespace muster::kube
