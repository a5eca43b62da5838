/// Queues, virtual clusters and Kubernetes' own priority classes are only for those to whom they were
/// given, however they are named.
#include "security/cluster.h"

namespace muster::apiserver {
namespace {

class Queues : public Cluster {
 public:
  void closed(const Steps& steps) {
    run(steps, [](ServerOptions& options) { options.queues_closed = true; });
  }
};

const std::string kQueues = "/apis/scheduling.volcano.sh/v1beta1/queues";
const std::string kGroups = "/apis/scheduling.volcano.sh/v1beta1/namespaces/vision/podgroups";
const std::string kPods = "/api/v1/namespaces/vision/pods";
const std::string kContainers = R"("containers":[{"name":"c","image":"i"}])";

std::string queue(std::string_view name, std::string_view annotations = "{}") {
  return fmt::format(R"({{"metadata":{{"name":"{}","annotations":{}}},"spec":{{"weight":1}}}})",
                     name,
                     annotations);
}
std::string pod(std::string_view annotations) {
  return fmt::format(
      R"({{"metadata":{{"name":"p","annotations":{}}},"spec":{{{}}}}})", annotations, kContainers);
}
std::string group(std::string_view name, std::string_view queue) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"spec":{{"minMember":1,"queue":"{}"}}}})", name, queue);
}

/// Every way to name queue or virtual cluster "gold".
std::vector<std::pair<std::string, std::string>> ways() {
  const std::string cells =
      R"({"hivedscheduler.microsoft.com/pod-scheduling-spec":"{virtualCluster: gold, leafCellNumber: 1}"})";
  const std::string named = R"({"scheduling.volcano.sh/queue-name":"gold"})";
  const auto job = [](std::string_view spec, std::string_view annotations) {
    return fmt::format(
        R"({{"metadata":{{"name":"j","annotations":{}}},"spec":{{{}}}}})", annotations, spec);
  };
  const auto in_template = [](std::string_view annotations) {
    return fmt::format(
        R"("template":{{"metadata":{{"annotations":{}}},"spec":{{"restartPolicy":"Never",{}}}}})",
        annotations,
        kContainers);
  };
  const std::string replica = fmt::format(R"({{"replicas":1,{}}})", in_template("{}"));
  return {
      {kPods, pod(named)},
      {kPods, pod(cells)},
      {kGroups, group("g", "gold")},
      {"/apis/batch/v1/namespaces/vision/jobs", job(in_template(named), "{}")},
      {"/apis/batch/v1/namespaces/vision/jobs", job(in_template(cells), "{}")},
      {"/apis/apps/v1/namespaces/vision/deployments",
       fmt::format(
           R"({{"metadata":{{"name":"d"}},"spec":{{"selector":{{"matchLabels":{{"a":"b"}}}},"template":{{"metadata":{{"labels":{{"a":"b"}},"annotations":{}}},"spec":{{{}}}}}}}}})",
           named,
           kContainers)},
      {"/apis/batch.volcano.sh/v1alpha1/namespaces/vision/jobs",
       job(fmt::format(
               R"("queue":"gold","minAvailable":1,"tasks":[{{"name":"t","replicas":1,{}}}])",
               in_template("{}")),
           "{}")},
      {"/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs",
       job(fmt::format(
               R"("runPolicy":{{"schedulingPolicy":{{"queue":"gold"}}}},"pytorchReplicaSpecs":{{"Master":{}}})",
               replica),
           "{}")},
      {"/apis/kubeflow.org/v1/namespaces/vision/tfjobs",
       job(fmt::format(R"("tfReplicaSpecs":{{"Worker":{}}})", replica), named)},
      {"/apis/frameworkcontroller.microsoft.com/v1/namespaces/vision/frameworks",
       fmt::format(
           R"({{"metadata":{{"name":"f"}},"spec":{{"executionType":"Start","retryPolicy":{{"fancyRetryPolicy":false,"maxRetryCount":0}},"taskRoles":[{{"name":"main","taskNumber":1,"frameworkAttemptCompletionPolicy":{{"minFailedTaskCount":1,"minSucceededTaskCount":1}},"task":{{"retryPolicy":{{"fancyRetryPolicy":false,"maxRetryCount":0}},"pod":{{"metadata":{{"annotations":{}}},"spec":{{{}}}}}}}}}]}}}})",
           cells,
           kContainers)},
      {"/apis/kubeflow.org/v2beta1/namespaces/vision/mpijobs",
       job(fmt::format(R"("mpiReplicaSpecs":{{"Launcher":{},"Worker":{}}})", replica, replica),
           named)},
  };
}

TEST_F(Queues, AQueueOfOthersIsRefusedWhicheverWayItIsNamed) {
  closed([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.admin("POST", kQueues, queue("gold"));
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    for (const auto& [target, body] : ways()) {
      const Answer refused =
          co_await cluster.ask({"POST", target, body, "application/json", token});
      EXPECT_EQ(refused.status, 403) << target << body << refused.text;
      EXPECT_NE(refused.message().find("user \"system:serviceaccount:vision:editor\" may not use "),
                std::string::npos)
          << refused.text;
      EXPECT_NE(refused.message().find("\"gold\" in namespace \"vision\""), std::string::npos)
          << refused.text;
    }
    // Who names none has the queue "default".
    const Answer plain =
        co_await cluster.ask({"POST", kPods, pod("{}"), "application/json", token});
    EXPECT_EQ(plain.status, 201) << plain.text;
  });
}

TEST_F(Queues, WhoHoldsTheVerbUseMayUseIt) {
  closed([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.admin("POST", kQueues, queue("gold"));
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/vision/";
    const Answer role = co_await cluster.admin(
        "POST",
        rbac + "roles",
        R"({"metadata":{"name":"gold"},"rules":[{"apiGroups":["scheduling.volcano.sh"],"resources":["queues"],"resourceNames":["gold"],"verbs":["use"]},{"apiGroups":["muster.dev"],"resources":["virtualclusters"],"resourceNames":["gold"],"verbs":["use"]}]})");
    EXPECT_EQ(role.status, 201) << role.text;
    (void)co_await cluster.admin(
        "POST",
        rbac + "rolebindings",
        R"({"metadata":{"name":"gold"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"gold"},"subjects":[{"kind":"ServiceAccount","name":"editor","namespace":"vision"}]})");
    for (const auto& [target, body] : ways()) {
      const Answer made =
          co_await cluster.ask({"POST", target + "?dryRun=All", body, "application/json", token});
      EXPECT_EQ(made.status, 201) << target << made.text;
    }
  });
}

TEST_F(Queues, AQueueThatNamesItsNamespacesIsForThemAlsoWhenQueuesAreOpen) {
  run([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.admin(
        "POST", kQueues, queue("theirs", R"({"muster.dev/allowed-namespaces":"speech, other"})"));
    (void)co_await cluster.admin(
        "POST", kQueues, queue("ours", R"({"muster.dev/allowed-namespaces":"speech,vision"})"));
    (void)co_await cluster.admin("POST", kQueues, queue("open"));
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    for (const auto& [name, status] :
         {std::pair{"theirs", 403}, std::pair{"ours", 201}, std::pair{"open", 201}}) {
      const Answer answer =
          co_await cluster.ask({"POST", kGroups, group(name, name), "application/json", token});
      EXPECT_EQ(answer.status, status) << name << answer.text;
    }
  });
}

TEST_F(Queues, WhatIsChangedLaterIsAskedAsWell) {
  closed([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.admin("POST", kQueues, queue("gold"));
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const Answer made =
        co_await cluster.ask({"POST", kGroups, group("g", "default"), "application/json", token});
    EXPECT_EQ(made.status, 201) << made.text;
    const Answer moved = co_await cluster.ask({"PATCH",
                                               kGroups + "/g",
                                               R"({"spec":{"queue":"gold"}})",
                                               "application/merge-patch+json",
                                               token});
    EXPECT_EQ(moved.status, 403) << moved.text;
    const Answer pods = co_await cluster.ask({"POST", kPods, pod("{}"), "application/json", token});
    EXPECT_EQ(pods.status, 201) << pods.text;
    const Answer marked = co_await cluster.ask(
        {"PATCH",
         kPods + "/p",
         R"({"metadata":{"annotations":{"scheduling.volcano.sh/queue-name":"gold"}}})",
         "application/merge-patch+json",
         token});
    EXPECT_EQ(marked.status, 403) << marked.text;
    // What an administrator put there may be labelled by others, and joined by nobody else.
    (void)co_await cluster.admin("POST", kGroups, group("golden", "gold"));
    const Answer labelled = co_await cluster.ask({"PATCH",
                                                  kGroups + "/golden",
                                                  R"({"metadata":{"labels":{"a":"b"}}})",
                                                  "application/merge-patch+json",
                                                  token});
    EXPECT_EQ(labelled.status, 200) << labelled.text;
    const std::string joins =
        R"({"metadata":{"name":"q","annotations":{"scheduling.k8s.io/group-name":"golden"}},"spec":{)" +
        kContainers + "}}";
    const Answer joined = co_await cluster.ask({"POST", kPods, joins, "application/json", token});
    EXPECT_EQ(joined.status, 403) << joined.text;
    // A group that everybody may join does not cover what the pod names itself.
    for (const std::string_view own :
         {R"("scheduling.volcano.sh/queue-name":"gold")",
          R"("hivedscheduler.microsoft.com/pod-scheduling-spec":"{virtualCluster: gold}")"}) {
      const Answer hidden = co_await cluster.ask(
          {"POST",
           kPods,
           fmt::format(
               R"({{"metadata":{{"name":"h","annotations":{{"scheduling.k8s.io/group-name":"g",{}}}}},"spec":{{{}}}}})",
               own,
               kContainers),
           "application/json",
           token});
      EXPECT_EQ(hidden.status, 403) << own << hidden.text;
    }
  });
}

TEST_F(Queues, AVirtualClusterThatCannotBeReadIsNobodys) {
  closed([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    for (const std::string_view spec : {"{virtualCluster: a, virtualCluster: gold}",
                                        "{virtualCluster: [gold]}",
                                        "{virtualCluster: gold",
                                        "- gold"}) {
      const Answer answer = co_await cluster.ask(
          {"POST",
           kPods,
           pod(fmt::format(R"({{"hivedscheduler.microsoft.com/pod-scheduling-spec":"{}"}})", spec)),
           "application/json",
           token});
      EXPECT_EQ(answer.status, 403) << spec << answer.text;
    }
  });
}

TEST_F(Queues, KubernetesOwnPriorityClassesNeedAQuotaThatNamesThem) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const std::string king =
        R"({"metadata":{"name":"king"},"spec":{"priorityClassName":"system-node-critical",)" +
        kContainers + "}}";
    const Answer refused = co_await cluster.ask({"POST", kPods, king, "application/json", token});
    EXPECT_EQ(refused.status, 403) << refused.text;
    EXPECT_EQ(refused.message(),
              "pods \"king\" is forbidden: insufficient quota to match these scopes: "
              "[{PriorityClass In [system-node-critical]}]; outside of kube-system this class "
              "needs a ResourceQuota in namespace \"vision\" whose scopeSelector names it");
    // A group's rank is its pods' rank, and a job becomes a group.
    const Answer ranked = co_await cluster.ask(
        {"POST",
         kGroups,
         R"({"metadata":{"name":"g"},"spec":{"minMember":1,"priorityClassName":"system-cluster-critical"}})",
         "application/json",
         token});
    EXPECT_EQ(ranked.status, 403) << ranked.text;
    const Answer job = co_await cluster.ask(
        {"POST",
         "/apis/batch.volcano.sh/v1alpha1/namespaces/vision/jobs",
         fmt::format(
             R"({{"metadata":{{"name":"j"}},"spec":{{"priorityClassName":"system-node-critical","minAvailable":1,"tasks":[{{"name":"t","replicas":1,"template":{{"spec":{{{}}}}}}}]}}}})",
             kContainers),
         "application/json",
         token});
    EXPECT_EQ(job.status, 403) << job.text;
    const Answer system =
        co_await cluster.admin("POST", "/api/v1/namespaces/kube-system/pods", king);
    EXPECT_EQ(system.status, 201) << system.text;
    const Answer quota = co_await cluster.admin(
        "POST",
        "/api/v1/namespaces/vision/resourcequotas",
        R"({"metadata":{"name":"critical"},"spec":{"hard":{"pods":"1"},"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["system-node-critical"]}]}}})");
    EXPECT_EQ(quota.status, 201) << quota.text;
    const Answer allowed = co_await cluster.ask({"POST", kPods, king, "application/json", token});
    EXPECT_EQ(allowed.status, 201) << allowed.text;
  });
}

}  // namespace
}  // namespace muster::apiserver
