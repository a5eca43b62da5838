/// Pod Security: what a namespace's level forbids, and what users other than administrators may do
/// where no level is set.
#include "security/cluster.h"

namespace muster::apiserver {
namespace {

class PodSecurity : public Cluster {};

std::string pod(std::string_view name, std::string_view spec) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"spec":{{{}}}}})", name, spec);
}
const std::string kPlain = R"("containers":[{"name":"c","image":"i"}])";
const std::string kWorst =
    R"("hostPID":true,"hostNetwork":true,"volumes":[{"name":"v","hostPath":{"path":"/"}}],"containers":[{"name":"c","image":"i","securityContext":{"privileged":true,"capabilities":{"add":["SYS_ADMIN","MKNOD","SYS_MODULE"]}}}])";
const std::string kBest =
    R"("securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},"containers":[{"name":"c","image":"i","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}])";
const std::string kPods = "/api/v1/namespaces/vision/pods";

Task<void> label(Cluster& cluster, std::string labels) {
  const Answer done = co_await cluster.admin("PATCH",
                                             "/api/v1/namespaces/vision",
                                             R"({"metadata":{"labels":{)" + labels + "}}}",
                                             "application/merge-patch+json");
  EXPECT_EQ(done.status, 200) << done.text;
}

TEST_F(PodSecurity, RestrictedMeansRestrictedWhoeverAsks) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    co_await label(cluster, R"("pod-security.kubernetes.io/enforce":"restricted")");
    const Answer plain =
        co_await cluster.ask({"POST", kPods, pod("p", kPlain), "application/json", token});
    EXPECT_EQ(plain.status, 403);
    EXPECT_EQ(
        plain.message(),
        "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": "
        "allowPrivilegeEscalation != false (container \"c\" must set "
        "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
        "\"c\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or "
        "container \"c\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or "
        "container \"c\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
        "\"Localhost\")");
    // The label holds for administrators and for Muster's own controllers too.
    const Answer of_admin = co_await cluster.admin("POST", kPods, pod("p", kPlain));
    EXPECT_EQ(of_admin.status, 403);
    const Answer of_muster = co_await cluster.ask({"POST", kPods, pod("p", kPlain)});
    EXPECT_EQ(of_muster.status, 403);
    const Answer best =
        co_await cluster.ask({"POST", kPods, pod("p", kBest), "application/json", token});
    EXPECT_EQ(best.status, 201) << best.text;
    const Answer debug = co_await cluster.ask(
        {"PATCH",
         kPods + "/p/ephemeralcontainers",
         R"({"spec":{"ephemeralContainers":[{"name":"d","image":"i","securityContext":{"privileged":true}}]}})",
         "application/strategic-merge-patch+json",
         token});
    EXPECT_EQ(debug.status, 403) << debug.text;
  });
}

TEST_F(PodSecurity, BaselineForbidsTheHost) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    co_await label(cluster, R"("pod-security.kubernetes.io/enforce":"baseline")");
    const Answer worst =
        co_await cluster.ask({"POST", kPods, pod("p", kWorst), "application/json", token});
    EXPECT_EQ(
        worst.message(),
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": non-default "
        "capabilities (container \"c\" must not include \"SYS_ADMIN\", \"SYS_MODULE\" in "
        "securityContext.capabilities.add), host namespaces (hostNetwork=true, "
        "hostPID=true), hostPath volumes (volume \"v\"), privileged (container \"c\" must not "
        "set securityContext.privileged=true)");
    const Answer plain =
        co_await cluster.ask({"POST", kPods, pod("p", kPlain), "application/json", token});
    EXPECT_EQ(plain.status, 201) << plain.text;
  });
}

TEST_F(PodSecurity, ATemplateIsWarnedOf) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    co_await label(cluster, R"("pod-security.kubernetes.io/enforce":"baseline")");
    const Answer made = co_await cluster.ask(
        {"POST",
         "/apis/apps/v1/namespaces/vision/deployments",
         R"({"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"hostPID":true,)" +
             kPlain + "}}}}",
         "application/json",
         token});
    EXPECT_EQ(made.status, 201) << made.text;
    EXPECT_EQ(
        made.warnings,
        (std::vector<std::string>{"299 - \"would violate PodSecurity \\\"baseline:latest\\\": "
                                  "host namespaces (hostPID=true)\""}));
  });
}

TEST_F(PodSecurity, AFrameworkIsAWorkloadToo) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const Answer refused = co_await cluster.ask(
        {"POST",
         "/apis/frameworkcontroller.microsoft.com/v1/namespaces/vision/frameworks",
         R"({"metadata":{"name":"f"},"spec":{"executionType":"Start","taskRoles":[{"name":"main","taskNumber":1,"task":{"pod":{"spec":{"hostPID":true,)" +
             kPlain + "}}}}]}}",
         "application/json",
         token});
    EXPECT_EQ(refused.status, 403) << refused.text;
    EXPECT_NE(refused.message().find("host namespaces (hostPID=true)"), std::string::npos)
        << refused.text;
  });
}

TEST_F(PodSecurity, ALevelIsHeldAgainstThePodsThatAreThere) {
  run([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.account("vision", "editor", "edit");
    for (const std::string_view name : {"a", "b", "c"}) {
      const Answer made = co_await cluster.admin("POST", kPods, pod(name, kWorst));
      EXPECT_EQ(made.status, 201) << made.text;
    }
    const Answer done = co_await cluster.admin(
        "PATCH",
        "/api/v1/namespaces/vision",
        R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline","pod-security.kubernetes.io/enforce-version":"v1.30"}}})",
        "application/merge-patch+json");
    EXPECT_EQ(done.status, 200) << done.text;
    EXPECT_EQ(done.warnings,
              (std::vector<std::string>{
                  "299 - \"existing pods in namespace \\\"vision\\\" violate the new PodSecurity "
                  "enforce level \\\"baseline:v1.30\\\"\"",
                  "299 - \"a (and 2 other pods): non-default capabilities, host namespaces, "
                  "hostPath volumes, privileged\""}));
    const Answer wrong = co_await cluster.admin(
        "PATCH",
        "/api/v1/namespaces/vision",
        R"({"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"tight"}}})",
        "application/merge-patch+json");
    EXPECT_EQ(wrong.status, 422);
    EXPECT_EQ(wrong.message(),
              "Namespace \"vision\" is invalid: "
              "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"tight\": must "
              "be one of privileged, baseline, restricted");
  });
}

TEST_F(PodSecurity, WithoutALevelOnlyAdministratorsGetTheHost) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const Answer worst =
        co_await cluster.ask({"POST", kPods, pod("p", kWorst), "application/json", token});
    EXPECT_EQ(worst.status, 403) << worst.text;
    const Answer plain =
        co_await cluster.ask({"POST", kPods, pod("p", kPlain), "application/json", token});
    EXPECT_EQ(plain.status, 201) << plain.text;
    const Answer of_admin = co_await cluster.admin("POST", kPods, pod("q", kWorst));
    EXPECT_EQ(of_admin.status, 201) << of_admin.text;
    // What a controller makes of a template was held to the level when the template was written …
    const Answer of_muster = co_await cluster.ask({"POST", kPods, pod("r", kWorst)});
    EXPECT_EQ(of_muster.status, 201) << of_muster.text;
    // … in every kind that has one.
    const std::string host_pod =
        R"("template":{"spec":{"hostPID":true,"restartPolicy":"Never",)" + kPlain + "}}";
    const std::vector<std::pair<std::string, std::string>> workloads = {
        {"/apis/batch/v1/namespaces/vision/jobs",
         R"({"metadata":{"name":"j"},"spec":{)" + host_pod + "}}"},
        {"/apis/batch/v1/namespaces/vision/cronjobs",
         R"({"metadata":{"name":"j"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{)" +
             host_pod + "}}}}"},
        {"/apis/kubeflow.org/v1/namespaces/vision/pytorchjobs",
         R"({"metadata":{"name":"j"},"spec":{"pytorchReplicaSpecs":{"Master":{"replicas":1,"template":{"spec":{"hostPID":true,"containers":[{"name":"pytorch","image":"i"}]}}}}}})"},
        {"/apis/batch.volcano.sh/v1alpha1/namespaces/vision/jobs",
         R"({"metadata":{"name":"j"},"spec":{"tasks":[{"name":"t","replicas":1,)" + host_pod +
             "}]}}"}};
    for (const auto& [target, body] : workloads) {
      const Answer refused =
          co_await cluster.ask({"POST", target, body, "application/json", token});
      EXPECT_EQ(refused.status, 403) << target << refused.text;
      EXPECT_NE(refused.message().find("violates PodSecurity \"baseline:latest\": host namespaces"),
                std::string::npos)
          << refused.text;
      const Answer made = co_await cluster.admin("POST", target, body);
      EXPECT_EQ(made.status, 201) << target << made.text;
    }
    // An administrator's workload may be scaled by others, but not turned to other ends.
    const std::string job = "/apis/batch/v1/namespaces/vision/cronjobs/j";
    const Answer suspended = co_await cluster.ask(
        {"PATCH", job, R"({"spec":{"suspend":true}})", "application/merge-patch+json", token});
    EXPECT_EQ(suspended.status, 200) << suspended.text;
    const Answer turned = co_await cluster.ask(
        {"PATCH",
         job,
         R"({"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"mine"}]}}}}}})",
         "application/merge-patch+json",
         token});
    EXPECT_EQ(turned.status, 403) << turned.text;
  });
}

TEST_F(PodSecurity, TheDefaultCanBeSet) {
  run(
      [](Cluster& cluster) -> Task<void> {
        const std::string token = co_await cluster.account("vision", "editor", "edit");
        const Answer worst =
            co_await cluster.ask({"POST", kPods, pod("p", kWorst), "application/json", token});
        EXPECT_EQ(worst.status, 201) << worst.text;
      },
      [](ServerOptions& options) { options.pod_security = kube::SecurityLevel::kPrivileged; });
}

TEST_F(PodSecurity, DevicesAreTheSchedulersToGive) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    for (const std::string_view key : {"muster.dev/gpu-indices",
                                       "hivedscheduler.microsoft.com/pod-bind-info",
                                       "hivedscheduler.microsoft.com/pod-leaf-cell-isolation"}) {
      const std::string annotated = fmt::format(
          R"({{"metadata":{{"name":"p","annotations":{{"{}":"0,1,2,3"}}}},"spec":{{{}}}}})",
          key,
          kPlain);
      const Answer refused =
          co_await cluster.ask({"POST", kPods, annotated, "application/json", token});
      EXPECT_EQ(refused.status, 403) << refused.text;
      EXPECT_EQ(
          refused.message(),
          fmt::format("pods \"p\" is forbidden: annotation \"{}\" is written by the scheduler "
                      "when it binds the pod; user \"system:serviceaccount:vision:editor\" "
                      "may not set, change or remove it: ask for resources instead",
                      key));
      const Answer in_template = co_await cluster.ask(
          {"POST",
           "/apis/batch/v1/namespaces/vision/jobs",
           fmt::format(
               R"({{"metadata":{{"name":"j"}},"spec":{{"template":{{"metadata":{{"annotations":{{"{}":"0"}}}},"spec":{{"restartPolicy":"Never",{}}}}}}}}})",
               key,
               kPlain),
           "application/json",
           token});
      EXPECT_EQ(in_template.status, 403) << in_template.text;
    }
    const Answer made =
        co_await cluster.ask({"POST", kPods, pod("p", kPlain), "application/json", token});
    EXPECT_EQ(made.status, 201) << made.text;
    const std::string grab = R"({"metadata":{"annotations":{"muster.dev/gpu-indices":"0"}}})";
    const Answer patched =
        co_await cluster.ask({"PATCH", kPods + "/p", grab, "application/merge-patch+json", token});
    EXPECT_EQ(patched.status, 403) << patched.text;
    const Answer bound = co_await cluster.ask(
        {"POST",
         kPods + "/p/binding",
         R"({"metadata":{"name":"p","annotations":{"muster.dev/gpu-indices":"2"}},"target":{"kind":"Node","name":"n"}})"});
    EXPECT_EQ(bound.status, 201) << bound.text;
    const Answer taken =
        co_await cluster.ask({"PATCH", kPods + "/p", grab, "application/merge-patch+json", token});
    EXPECT_EQ(taken.status, 403) << taken.text;
    const Answer other = co_await cluster.ask({"PATCH",
                                               kPods + "/p",
                                               R"({"metadata":{"annotations":{"mine":"1"}}})",
                                               "application/merge-patch+json",
                                               token});
    EXPECT_EQ(other.status, 200) << other.text;
    EXPECT_EQ(json::text_at(other.body, "metadata", "annotations", "muster.dev/gpu-indices"), "2");
  });
}

TEST_F(PodSecurity, WhatIsNotEnforcedIsRefusedOrSaid) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string admission = "/apis/admissionregistration.k8s.io/v1/";
    const Answer policy = co_await cluster.admin(
        "POST",
        admission + "validatingadmissionpolicies",
        R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"false"}]}})");
    EXPECT_EQ(policy.status, 403) << policy.text;
    const Answer network =
        co_await cluster.admin("POST",
                               "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
                               R"({"metadata":{"name":"deny"},"spec":{"podSelector":{}}})");
    EXPECT_EQ(network.status, 403) << network.text;
    EXPECT_EQ(
        network.message(),
        "networkpolicies.networking.k8s.io \"deny\" is forbidden: the traffic of pods cannot be "
        "filtered here, and a policy that is only stored would protect nothing: muster up needs "
        "root and iptables for it, and pods that are not hollow");
    const Answer ingress = co_await cluster.admin(
        "POST",
        "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
        R"({"metadata":{"name":"i"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}})");
    EXPECT_EQ(ingress.status, 201) << ingress.text;
    EXPECT_EQ(ingress.warnings,
              (std::vector<std::string>{"299 - \"Ingress \\\"i\\\": it is stored, but "
                                        "muster up has no ingress controller\""}));
    const Answer request = co_await cluster.admin(
        "POST",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        R"({"metadata":{"name":"c"},"spec":{"request":"LS0t","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}})");
    EXPECT_EQ(request.status, 403) << request.text;
  });
}

}  // namespace
}  // namespace muster::apiserver
