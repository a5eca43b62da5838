/// Nobody can grant more rights than they have.
#include "security/cluster.h"

namespace muster::apiserver {
namespace {

class Escalation : public Cluster {};

const std::string kRbac = "/apis/rbac.authorization.k8s.io/v1/";

std::string binding(std::string_view name, std::string_view kind, std::string_view role) {
  return fmt::format(
      R"({{"metadata":{{"name":"{}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"{}","name":"{}"}},"subjects":[{{"kind":"ServiceAccount","name":"boss","namespace":"vision"}}]}})",
      name,
      kind,
      role);
}

std::string role(std::string_view name, std::string_view rules) {
  return fmt::format(R"({{"metadata":{{"name":"{}"}},"rules":[{}]}})", name, rules);
}

constexpr std::string_view kBoss =
    "user \"system:serviceaccount:vision:boss\" (groups=[\"system:serviceaccounts\" "
    "\"system:serviceaccounts:vision\" \"system:authenticated\"]) is attempting to grant RBAC "
    "permissions not currently held:\n";

TEST_F(Escalation, AnAdministratorOfOneNamespaceDoesNotBecomeTheClusters) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "boss", "admin");
    const std::string bindings = kRbac + "namespaces/vision/rolebindings";
    const Answer everything = co_await cluster.ask({"POST",
                                                    bindings,
                                                    binding("x", "ClusterRole", "cluster-admin"),
                                                    "application/json",
                                                    token});
    EXPECT_EQ(everything.status, 403);
    EXPECT_EQ(everything.message(),
              "rolebindings.rbac.authorization.k8s.io \"x\" is forbidden: " + std::string(kBoss) +
                  "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n"
                  "{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}");
    const Answer edit = co_await cluster.ask(
        {"POST", bindings, binding("y", "ClusterRole", "edit"), "application/json", token});
    EXPECT_EQ(edit.status, 201) << edit.text;
    const Answer absent = co_await cluster.ask(
        {"POST", bindings, binding("z", "ClusterRole", "nobody"), "application/json", token});
    EXPECT_EQ(absent.status, 404);
    EXPECT_EQ(absent.message(), "rolebindings.rbac.authorization.k8s.io \"nobody\" not found");
  });
}

TEST_F(Escalation, ARoleHoldsOnlyWhatItsWriterHolds) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "boss", "admin");
    const std::string roles = kRbac + "namespaces/vision/roles";
    const Answer star =
        co_await cluster.ask({"POST",
                              roles,
                              role("r", R"({"apiGroups":["*"],"resources":["*"],"verbs":["*"]})"),
                              "application/json",
                              token});
    EXPECT_EQ(star.status, 403);
    const std::string pods =
        R"({"apiGroups":[""],"resources":["pods","configmaps"],"verbs":["get","list"]})";
    const Answer held =
        co_await cluster.ask({"POST", roles, role("r", pods), "application/json", token});
    EXPECT_EQ(held.status, 201) << held.text;
    const Answer wider = co_await cluster.ask(
        {"PATCH",
         roles + "/r",
         R"({"rules":[{"apiGroups":[""],"resources":["nodes","pods"],"verbs":["get","delete"]},{"apiGroups":[""],"resources":["resourcequotas"],"resourceNames":["q"],"verbs":["delete"]}]})",
         "application/merge-patch+json",
         token});
    EXPECT_EQ(wider.status, 403);
    EXPECT_EQ(wider.message(),
              "roles.rbac.authorization.k8s.io \"r\" is forbidden: " + std::string(kBoss) +
                  "{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"get\" \"delete\"]}\n"
                  "{APIGroups:[\"\"], Resources:[\"resourcequotas\"], ResourceNames:[\"q\"], "
                  "Verbs:[\"delete\"]}");
    const Answer replaced = co_await cluster.ask(
        {"PUT",
         roles + "/r",
         role("r", R"({"apiGroups":[""],"resources":["nodes"],"verbs":["get"]})"),
         "application/json",
         token});
    EXPECT_EQ(replaced.status, 403);
    const Answer fresh = co_await cluster.ask(
        {"PUT",
         roles + "/new",
         role("new", R"({"apiGroups":[""],"resources":["nodes"],"verbs":["get"]})"),
         "application/json",
         token});
    EXPECT_EQ(fresh.status, 403);
    const Answer applied = co_await cluster.ask(
        {"PATCH",
         roles + "/ssa?fieldManager=x",
         R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"ssa"},"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get"]}]})",
         "application/apply-patch+yaml",
         token});
    EXPECT_EQ(applied.status, 403);
  });
}

TEST_F(Escalation, TheVerbsEscalateAndBindAllowIt) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "boss", "admin");
    const std::string grant = role(
        "may",
        R"({"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]},{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"resourceNames":["cluster-admin"],"verbs":["bind"]})");
    const Answer made = co_await cluster.admin("POST", kRbac + "namespaces/vision/roles", grant);
    EXPECT_EQ(made.status, 201) << made.text;
    const Answer given = co_await cluster.admin(
        "POST", kRbac + "namespaces/vision/rolebindings", binding("may", "Role", "may"));
    EXPECT_EQ(given.status, 201) << given.text;
    const Answer star =
        co_await cluster.ask({"POST",
                              kRbac + "namespaces/vision/roles",
                              role("r", R"({"apiGroups":["*"],"resources":["*"],"verbs":["*"]})"),
                              "application/json",
                              token});
    EXPECT_EQ(star.status, 201) << star.text;
    const Answer bound = co_await cluster.ask({"POST",
                                               kRbac + "namespaces/vision/rolebindings",
                                               binding("x", "ClusterRole", "cluster-admin"),
                                               "application/json",
                                               token});
    EXPECT_EQ(bound.status, 201) << bound.text;
  });
}

TEST_F(Escalation, ClusterRolesAndAggregationNeedEverything) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "boss", "");
    const std::string rules = role(
        "rbac",
        R"({"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles","clusterrolebindings"],"verbs":["create","update","patch","get"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get"]})");
    (void)co_await cluster.admin("POST", kRbac + "clusterroles", rules);
    const Answer given = co_await cluster.admin(
        "POST", kRbac + "clusterrolebindings", binding("rbac", "ClusterRole", "rbac"));
    EXPECT_EQ(given.status, 201) << given.text;
    const Answer held = co_await cluster.ask(
        {"POST",
         kRbac + "clusterroles",
         role("pods", R"({"apiGroups":[""],"resources":["pods"],"verbs":["get"]})"),
         "application/json",
         token});
    EXPECT_EQ(held.status, 201) << held.text;
    const Answer gathers = co_await cluster.ask(
        {"POST",
         kRbac + "clusterroles",
         R"({"metadata":{"name":"all"},"aggregationRule":{"clusterRoleSelectors":[{}]}})",
         "application/json",
         token});
    EXPECT_EQ(gathers.status, 403);
    EXPECT_EQ(gathers.message(),
              "clusterroles.rbac.authorization.k8s.io \"all\" is forbidden: must have "
              "cluster-admin privileges to use the aggregationRule");
    const Answer crowned = co_await cluster.ask({"POST",
                                                 kRbac + "clusterrolebindings",
                                                 binding("me", "ClusterRole", "cluster-admin"),
                                                 "application/json",
                                                 token});
    EXPECT_EQ(crowned.status, 403);
  });
}

TEST_F(Escalation, ARoleOfMillionsOfPermissionsIsNotTakenApart) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "boss", "admin");
    std::string many;
    for (int i = 0; i < 3'000; ++i) many += fmt::format("{}\"v{}\"", i == 0 ? "" : ",", i);
    const Answer answer = co_await cluster.ask(
        {"POST",
         kRbac + "namespaces/vision/roles",
         role("r", fmt::format(R"({{"apiGroups":[{0}],"resources":[{0}],"verbs":[{0}]}})", many)),
         "application/json",
         token});
    EXPECT_EQ(answer.status, 403);
    EXPECT_NE(answer.message().find("use several roles"), std::string::npos) << answer.text;
  });
}

// Decisions are remembered; whoever loses a right loses it with the change that takes it.
TEST_F(Escalation, ARightEndsWithTheRuleOrTheBindingThatGaveIt) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "boss", "");
    const std::string maps = "/api/v1/namespaces/vision/configmaps/";
    const std::string its_role = kRbac + "namespaces/vision/roles";
    const auto may = [&](std::string name) -> Task<int> {
      const Answer answer = co_await cluster.ask({"GET", maps + name, "", "", token});
      co_return answer.status;
    };
    EXPECT_EQ(co_await may("a"), 403);
    (void)co_await cluster.admin(
        "POST",
        its_role,
        role(
            "r",
            R"({"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["get"]})"));
    EXPECT_EQ(co_await may("a"), 403);
    (void)co_await cluster.admin(
        "POST", kRbac + "namespaces/vision/rolebindings", binding("b", "Role", "r"));
    // A rule by name says nothing of other names, whatever was asked before.
    EXPECT_EQ(co_await may("a"), 404);
    EXPECT_EQ(co_await may("b"), 403);
    EXPECT_EQ(co_await may("a"), 404);
    EXPECT_EQ(co_await may("b"), 403);
    (void)co_await cluster.admin(
        "PUT",
        its_role + "/r",
        role("r", R"({"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]})"));
    EXPECT_EQ(co_await may("b"), 404);
    EXPECT_EQ(co_await may("a"), 404);
    (void)co_await cluster.admin("DELETE", kRbac + "namespaces/vision/rolebindings/b");
    EXPECT_EQ(co_await may("b"), 403);
    EXPECT_EQ(co_await may("a"), 403);
  });
}

}  // namespace
}  // namespace muster::apiserver
