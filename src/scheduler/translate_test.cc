#include "scheduler/translate.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "scheduler/config.h"
#include "scheduler/hypernodes.h"
#include "scheduler/reports.h"

namespace muster::scheduler {
namespace {

json::Value yaml(std::string_view text) { return *json::parse_yaml_one(text); }

TEST(TranslatePod, ReadsWhatMattersForPlacement) {
  const engine::Pod pod = translate_pod(yaml(R"(
metadata:
  name: w-0
  namespace: team
  uid: u1
  labels: {app: x}
  annotations: {scheduling.k8s.io/group-name: job, muster.dev/gpu-indices: "1,3", muster.dev/expected-duration: 2h}
spec:
  priority: 7
  preemptionPolicy: Never
  nodeName: n1
  nodeSelector: {zone: a}
  tolerations: [{operator: Exists, effect: NoSchedule}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: In, values: [a, b]}]}]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]
  containers:
  - {name: a, resources: {requests: {cpu: 500m, nvidia.com/gpu: 2}}, ports: [{containerPort: 80, hostPort: 8080}]}
status: {phase: Running}
)"),
                                        {});
  EXPECT_EQ(pod.key, "team/w-0");
  EXPECT_EQ(pod.group, "volcano:team/job");
  EXPECT_EQ(pod.priority, 7);
  EXPECT_EQ(pod.preemption_policy, engine::PreemptionPolicy::kNever);
  EXPECT_EQ(pod.node, "n1");
  EXPECT_EQ(pod.device_indexes, (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(pod.expected_duration, std::chrono::hours(2));
  ASSERT_NE(pod.origin, nullptr);
  EXPECT_EQ(pod.origin->user, "team");
  EXPECT_EQ(pod.origin->stem, "w");
  EXPECT_EQ(pod.requests, (engine::ResourceList{{"cpu", 500}, {"nvidia.com/gpu", 2}}));
  ASSERT_EQ(pod.host_ports.size(), 1U);
  EXPECT_EQ(pod.host_ports[0].port, 8080);
  ASSERT_EQ(pod.node_affinity.size(), 1U);
  ASSERT_EQ(pod.pod_anti_affinity.size(), 1U);
  EXPECT_EQ(pod.pod_anti_affinity[0].namespaces, std::vector<std::string>{"team"});
  EXPECT_TRUE(pod.ours);
}

TEST(TranslatePod, ADeadlineIsALimitAndNoEstimate) {
  const engine::Pod pod = translate_pod(yaml(R"(
metadata:
  name: resnet50-20261116-worker-0
  namespace: d
  labels: {arena.kubeflow.org/username: ann}
  ownerReferences: [{kind: PyTorchJob, name: resnet50-20261116}]
spec: {activeDeadlineSeconds: 86400, containers: [{name: a}]}
)"),
                                        {});
  EXPECT_EQ(pod.expected_duration, Duration{});
  EXPECT_EQ(pod.limit, std::chrono::hours(24));
  EXPECT_EQ(*pod.origin, (engine::Origin{"ann", "resnet", ""}));
}

TEST(TranslatePod, AShareOfAGpuIsNotAWholeOne) {
  const engine::Pod pod = translate_pod(yaml(R"(
metadata: {name: s, namespace: d, annotations: {muster.dev/gpu-milli: "250"}}
spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1, cpu: 1}}}]}
)"),
                                        {});
  EXPECT_EQ(pod.device_share_milli, 250);
  EXPECT_EQ(pod.requests, (engine::ResourceList{{"cpu", 1000}}));
}

TEST(TranslatePod, OnlyPodsOfOurSchedulerNamesAreOurs) {
  TranslateOptions options;
  options.scheduler_names = {"muster", "volcano"};
  EXPECT_FALSE(is_ours(yaml("spec: {schedulerName: default-scheduler}"), options));
  EXPECT_FALSE(is_ours(yaml("spec: {}"), options));
  EXPECT_TRUE(is_ours(yaml("spec: {schedulerName: volcano}"), options));
}

// What controllers write on the pods of a job that asked to be requeued. A pod without a PodGroup has
// nothing else that is older than its last start.
TEST(TranslatePod, ARequeuedPodKeepsThePlaceOfItsJob) {
  const auto created = [](std::string_view annotations) {
    const std::string text = fmt::format(
        "metadata: {{name: w-0, creationTimestamp: '2026-01-02T12:00:00Z', annotations: {{{}}}}}",
        annotations);
    return translate_pod(yaml(text), {}).created;
  };
  const Time submitted = *parse_time("2026-01-01T08:00:00Z");
  EXPECT_EQ(created("muster.dev/submitted-at: '2026-01-01T08:00:00Z'"), submitted);
  EXPECT_EQ(created("muster.dev/submitted: '2026-01-01T08:00:00Z'"), submitted);
  const Time started = *parse_time("2026-01-02T12:00:00Z");
  EXPECT_EQ(created(""), started);
  EXPECT_EQ(created("muster.dev/submitted-at: yesterday"), started);
}

TEST(TranslateGroup, ARequeuedGroupKeepsThePlaceOfItsJob) {
  const engine::Group group = translate_group(GroupKind::kVolcano,
                                              yaml(R"(
metadata:
  name: g
  namespace: a
  creationTimestamp: "2026-01-02T12:00:00Z"
  annotations: {muster.dev/submitted-at: "2026-01-01T08:00:00Z"}
spec: {minMember: 1}
)"),
                                              {});
  EXPECT_EQ(group.created, *parse_time("2026-01-01T08:00:00Z"));
}

TEST(TranslateGroup, EachKindHasItsOwnKeys) {
  const json::Value pod =
      yaml("metadata: {namespace: a, labels: {scheduling.x-k8s.io/pod-group: g}}");
  EXPECT_EQ(group_key_of_pod(pod), "plugins:a/g");
  EXPECT_EQ(group_key_of_pod(
                yaml("{metadata: {namespace: a}, spec: {schedulingGroup: {podGroupName: g}}}")),
            "native:a/g");
  const engine::Group native = translate_group(GroupKind::kNative,
                                               yaml(R"(
metadata: {name: g, namespace: a}
spec: {priority: 5, schedulingPolicy: {gang: {minCount: 4}}, disruptionMode: {all: {}}, schedulingConstraints: {topology: [{key: rack}]}}
)"),
                                               {});
  EXPECT_EQ(native.min_member, 4);
  EXPECT_EQ(native.disruption, engine::DisruptionMode::kWhole);
  ASSERT_EQ(native.topology.size(), 1U);
  const engine::Group volcano = translate_group(GroupKind::kVolcano,
                                                yaml(R"(
metadata: {name: g, namespace: a}
spec: {minMember: 6, queue: test, minResources: {cpu: 3, nvidia.com/gpu: "6"}}
status: {phase: Inqueue}
)"),
                                                {});
  EXPECT_EQ(volcano.queue, "test");
  EXPECT_TRUE(volcano.admitted);
  ASSERT_TRUE(volcano.min_resources);
  EXPECT_EQ(*volcano.min_resources, (engine::ResourceList{{"cpu", 3000}, {"nvidia.com/gpu", 6}}));
}

TEST(TranslateNode, ANodeWithoutConditionsIsReadyAndASickGpuKeepsItsIndex) {
  const engine::Node node = translate_node(yaml(R"(
metadata: {name: n, labels: {nvidia.com/gpu.product: H200}, annotations: {muster.dev/gpu-unhealthy: "1"}}
spec: {taints: [{key: k, effect: NoExecute}], unschedulable: true}
status: {allocatable: {cpu: 8, nvidia.com/gpu: 3}}
)"),
                                           {});
  EXPECT_TRUE(node.ready);
  EXPECT_TRUE(node.unschedulable);
  ASSERT_EQ(node.devices.size(), 4U);
  EXPECT_FALSE(node.devices[1].healthy);
  EXPECT_EQ(node.devices[2].model, "H200");
}

TEST(VolcanoConfig, ReadsActionsAndTiers) {
  const auto config = parse_volcano_config(R"(
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments: {binpack.weight: 10}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->actions, (std::vector<std::string>{"enqueue", "allocate", "backfill"}));
  EXPECT_EQ(config->tiers[0][1].off, std::vector<std::string>{"enablePreemptable"});
  EXPECT_EQ(config->tiers[1][0].arguments[0].second, "10");
}

TEST(VolcanoConfig, SaysWhatHasNoEffect) {
  const auto config = parse_volcano_config(R"(
actions: "enqueue, allocate, gangpreempt, shuffle"
tiers: [{plugins: [{name: gang}, {name: tdm}]}]
configurations: [{name: gangpreempt, arguments: {allowWholeBundle: false}}]
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(without_effect(*config), (std::vector<std::string>{"plugin tdm", "action shuffle"}));
}

TEST(VolcanoConfig, SaysWhatIsUnknown) {
  EXPECT_NE(parse_volcano_config("{actions: [allocate]}").error().message.find("wanted one string"),
            std::string::npos);
  EXPECT_NE(parse_volcano_config(
                "{actions: allocate, tiers: [{plugins: [{name: gang, enableJobOrder: 3}]}]}")
                .error()
                .message.find("wanted true or false"),
            std::string::npos);
  EXPECT_NE(parse_volcano_config("{actions: allocate, configurations: [{name: elect}]}")
                .error()
                .message.find("is not an action"),
            std::string::npos);
  EXPECT_NE(parse_volcano_config("actions: \"elect\"").error().message.find("\"elect\" is unknown"),
            std::string::npos);
  EXPECT_FALSE(parse_volcano_config("tiers: []"));
  EXPECT_FALSE(parse_volcano_config(
      "{actions: allocate, tiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]}"));
  // In two tiers the first decides, as in Volcano.
  EXPECT_TRUE(parse_volcano_config(
      "{actions: allocate, tiers: [{plugins: [{name: drf, enableHierarchy: true}]}, {plugins: [{name: proportion}]}]}"));
}

TEST(Queues, CarryTheirPlaceInTheHierarchy) {
  const engine::Queue queue = translate_queue(yaml(R"(
metadata: {name: dev, annotations: {volcano.sh/hierarchy: root/eng/dev, volcano.sh/hierarchy-weights: 1/4/2}}
)"),
                                              {});
  EXPECT_EQ(queue.hierarchy, "root/eng/dev");
  EXPECT_EQ(queue.hierarchy_weights, "1/4/2");
}

TEST(Translate, AQueueMayChooseItsBackfillAndOtherwiseHasThePolicys) {
  TranslateOptions options;
  options.backfill = engine::BackfillMode::kFifo;
  EXPECT_EQ(translate_queue(yaml("metadata: {name: q}"), options).backfill,
            engine::BackfillMode::kFifo);
  EXPECT_EQ(translate_t9k_queue(yaml("metadata: {name: q}"), options).backfill,
            engine::BackfillMode::kFifo);
  const auto asking = [&](const std::string& mode) {
    return translate_queue(
               yaml("metadata: {name: q, annotations: {muster.dev/backfill: " + mode + "}}"),
               options)
        .backfill;
  };
  EXPECT_EQ(asking("skip"), engine::BackfillMode::kSkip);
  EXPECT_EQ(asking("reservation"), engine::BackfillMode::kReservation);
  EXPECT_EQ(asking("anything"), engine::BackfillMode::kFifo);
}

/// Eight nodes, four leaves of two, two above, as in Volcano's own e2e cases.
HyperNodes eight() {
  std::vector<client::ObjectPtr> all;
  const auto add = [&](const std::string& text) {
    all.push_back(std::make_shared<const json::Value>(yaml(text)));
  };
  for (int leaf = 0; leaf < 4; ++leaf) {
    add(fmt::format(
        "{{metadata: {{name: s{}}}, spec: {{tier: 1, tierName: leaf, members: [{{type: Node, selector: {{exactMatch: {{name: n{}}}}}}}, {{type: Node, selector: {{regexMatch: {{pattern: '^n{}$'}}}}}}]}}}}",
        leaf,
        2 * leaf,
        2 * leaf + 1));
  }
  add("{metadata: {name: s4}, spec: {tier: 2, members: [{type: HyperNode, selector: {exactMatch: {name: s0}}}, {type: HyperNode, selector: {exactMatch: {name: s1}}}]}}");
  add("{metadata: {name: s5}, spec: {tier: 2, members: [{type: Node, selector: {labelMatch: {matchLabels: {side: right}}}}]}}");
  std::map<std::string, engine::Labels> nodes;
  for (int i = 0; i < 8; ++i)
    nodes[fmt::format("n{}", i)] = i < 4 ? engine::Labels{} : engine::Labels{{"side", "right"}};
  HyperNodes out;
  out.rebuild(all, nodes);
  return out;
}

TEST(HyperNodes, AreLabelsOfTheNodesBelow) {
  const HyperNodes hypernodes = eight();
  EXPECT_EQ(hypernodes.labels_of("n3"),
            (engine::Labels{{"volcano.sh/hypernode-tier-1", "s1"},
                            {"volcano.sh/hypernode-tier-2", "s4"}}));
  EXPECT_EQ(hypernodes.labels_of("n6"),
            (engine::Labels{{"volcano.sh/hypernode-tier-1", "s3"},
                            {"volcano.sh/hypernode-tier-2", "s5"}}));
  EXPECT_TRUE(hypernodes.labels_of("stranger").empty());
}

TEST(HyperNodes, AHardTierMustHoldAndNarrowerOnesAreTriedFirst) {
  const HyperNodes hypernodes = eight();
  const auto levels = [&](const char* text) { return hypernodes.levels(yaml(text)); };
  const engine::TopologyLevel two{"volcano.sh/hypernode-tier-2", true},
      one{"volcano.sh/hypernode-tier-1", true};
  const engine::TopologyLevel rather_two{"volcano.sh/hypernode-tier-2", false},
      rather_one{"volcano.sh/hypernode-tier-1", false};
  EXPECT_EQ(levels("{mode: hard, highestTierAllowed: 1}"), std::vector{one});
  EXPECT_EQ(levels("{highestTierAllowed: 2}"), (std::vector{two, rather_one}));
  EXPECT_EQ(levels("{highestTierName: leaf}"), std::vector{one});
  EXPECT_EQ(levels("{mode: soft, highestTierAllowed: 1}"), std::vector{rather_one});
  EXPECT_EQ(levels("{mode: soft}"), (std::vector{rather_two, rather_one}));
  EXPECT_EQ(levels("{mode: hard, highestTierAllowed: 3}"), (std::vector{rather_two, rather_one}));
}

TEST(Reports, TheVictimIsToldWhoTookItsPlace) {
  engine::Evict evict;
  evict.pod = "default/medium-worker-0";
  evict.node = "192.168.0.23";
  evict.for_whom_pod = "default/critical-worker-0";
  EXPECT_EQ(preempted_message(evict), "by default/critical-worker-0 on node 192.168.0.23");
}

TEST(Reports, ABindingReadsTheSameAsTextAndAsTree) {
  engine::Bind bind;
  bind.uid = "0a-1";
  bind.node = "node-\"1\"";
  EXPECT_EQ(binding_text(bind, "p"), json::dump(binding(bind, "p")));
  bind.devices = {0, 2, 3};
  EXPECT_EQ(binding_text(bind, "p"), json::dump(binding(bind, "p")));
}

}  // namespace
}  // namespace muster::scheduler
