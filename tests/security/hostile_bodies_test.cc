/// No body that is accepted may make everybody else wait: while the server handles one, its loop is
/// never held longer than kHoldMax.
#include "security/meter.h"

namespace muster::apiserver {
namespace {

constexpr std::size_t kBodyBytes = (std::size_t{3} << 20) - 4096;

std::string repeated(std::string_view piece, std::size_t bytes = kBodyBytes) {
  std::string out;
  out.reserve(bytes + piece.size());
  while (out.size() < bytes) out += piece;
  return out;
}

/// Pieces with a number in them, until the text is as long as it may be.
std::string numbered(std::string out, const std::function<std::string(int)>& piece) {
  for (int i = 0; out.size() < kBodyBytes; ++i) out += piece(i);
  return out;
}

struct Attack {
  std::string name, body;
};

std::string laughs() {
  std::string out = "a: &a [x,x,x,x,x,x,x,x,x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    out += fmt::format("{0}: &{0} [", c);
    for (int i = 0; i < 9; ++i) out += fmt::format("*{},", static_cast<char>(c - 1));
    out += "]\n";
  }
  return out;
}

std::vector<Attack> yaml_attacks() {
  std::vector<Attack> out;
  out.push_back({"open brackets", std::string(kBodyBytes, '[')});
  out.push_back({"open brackets, few", std::string(40'000, '[')});
  out.push_back({"open braces", repeated("{a: ")});
  out.push_back({"brackets on lines", repeated("[\n")});
  out.push_back({"dashes", repeated("- ")});
  out.push_back({"question marks", repeated("? ")});
  out.push_back({"stairs", numbered("", [](int i) {
                   return std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
                 })});
  out.push_back({"anchors", numbered("", [](int i) { return fmt::format("- &a{} b\n", i); })});
  out.push_back(
      {"tag directives", numbered("", [](int i) { return fmt::format("%TAG !a{}! b\n", i); })});
  out.push_back({"aliases of aliases", laughs()});
  out.push_back({"a long text, often",
                 "a: &a " + std::string(900'000, 'x') + "\nb: [" + repeated("*a,", 30'000) + "]"});
  out.push_back({"merges", "a: &a {b: c}\nd:\n  <<: [" + repeated("*a,") + "*a]"});
  out.push_back({"a list", repeated("- a\n")});
  out.push_back({"a list in brackets", "[" + repeated("a,") + "]"});
  out.push_back({"a list in a hundred brackets",
                 std::string(99, '[') + repeated("a,") + std::string(99, ']')});
  out.push_back({"a mapping", numbered("", [](int i) { return fmt::format("k{}: v\n", i); })});
  out.push_back({"documents", repeated("a: b\n---\n")});
  out.push_back({"empty documents", repeated("---\n")});
  out.push_back({"a long key", std::string(kBodyBytes, 'k') + ": v"});
  out.push_back({"a long text", "a: \"" + std::string(kBodyBytes, 'k') + "\""});
  out.push_back({"empty lines", "a: |\n" + std::string(kBodyBytes, '\n')});
  out.push_back({"a long number", "a: " + std::string(kBodyBytes, '1')});
  out.push_back({"not UTF-8", std::string(kBodyBytes, '\xff')});
  return out;
}

std::vector<Attack> json_attacks() {
  std::vector<Attack> out;
  out.push_back({"open brackets", std::string(kBodyBytes, '[')});
  out.push_back({"a list", "{\"a\":[" + repeated("1,") + "1]}"});
  out.push_back({"objects", "{\"a\":[" + repeated("{\"a\":{}},") + "1]}"});
  out.push_back({"unknown fields", numbered("{", [](int i) {
                                     return fmt::format("\"k{}\":\"\",", i);
                                   }) + "\"z\":1}"});
  std::string few = "{";
  for (int i = 0; i < 19'000; ++i) few += fmt::format("\"k{}\":\"\",", i);
  out.push_back({"19,000 unknown fields", few + "\"z\":1}"});
  out.push_back({"one key, often", "{" + repeated("\"k\":\"\",", 1'200'000) + "\"z\":1}"});
  out.push_back({"labels", "{\"metadata\":{\"labels\":" + few + "\"z\":\"\"}}}"});
  out.push_back({"bad labels, long",
                 "{\"metadata\":{\"labels\":{\"a\":\"" + std::string(kBodyBytes, '!') + "\"}}}"});
  std::string managers;
  for (int i = 0; i < 9'000; ++i) managers += fmt::format("{{\"manager\":\"m{}\"}},", i);
  out.push_back({"managers", "{\"metadata\":{\"managedFields\":[" + managers + "{}]}}"});
  std::string owners;
  for (int i = 0; i < 3'200; ++i)
    owners += fmt::format(
        R"({{"apiVersion":"v1","kind":"ConfigMap","name":"m","uid":"{}","controller":true}},)", i);
  out.push_back({"owners", "{\"metadata\":{\"ownerReferences\":[" + owners + "{}]}}"});
  std::string finalizers;
  for (int i = 0; i < 19'000; ++i) finalizers += fmt::format("\"a.b/f{}\",", i);
  out.push_back({"finalizers", "{\"metadata\":{\"finalizers\":[" + finalizers + "\"a.b/c\"]}}"});
  out.push_back({"a broken text", "{\"a\":\"" + repeated("\\q", 2'000'000)});
  out.push_back({"a long string", "{\"a\":\"" + repeated("\\u0041") + "\"}"});
  return out;
}

class HostileBodies : public Cluster {};

TEST_F(HostileBodies, OfSomebodyWithoutRightsHoldNobodyUp) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("a", "lowly", "");
    const std::string target = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    for (Attack& each : yaml_attacks())
      co_await attack(
          cluster, {"POST", target, std::move(each.body), "application/yaml", token}, each.name);
    for (Attack& each : json_attacks())
      co_await attack(
          cluster, {"POST", target, std::move(each.body), "application/json", token}, each.name);
    Ask reads{
        "POST", "/muster/v1/reads", "[" + repeated("\"/api\",") + "1]", "application/json", token};
    co_await attack(cluster, std::move(reads), "many reads");
  });
}

TEST_F(HostileBodies, OfAnEditorHoldNobodyUp) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("a", "editor", "edit");
    const std::string maps = "/api/v1/namespaces/a/configmaps";
    const Answer made = co_await cluster.ask(
        {"POST", maps, R"({"metadata":{"name":"m"},"data":{"a":"b"}})", "application/json", token});
    EXPECT_EQ(made.status, 201) << made.text;
    for (Attack& each : json_attacks()) {
      co_await attack(cluster, {"POST", maps, each.body, "application/json", token}, each.name);
      for (const std::string_view type :
           {"application/merge-patch+json", "application/strategic-merge-patch+json"})
        co_await attack(
            cluster, {"PATCH", maps + "/m", each.body, std::string(type), token}, each.name);
    }
    for (Attack& each : yaml_attacks()) {
      Ask wanted{"PATCH",
                 maps + "/m?fieldManager=x",
                 std::move(each.body),
                 "application/apply-patch+yaml",
                 token};
      co_await attack(cluster, std::move(wanted), each.name);
    }
    // What is stored may be used as well.
    std::string members, doomed;
    for (int i = 0; i < 19'000; ++i) {
      members += fmt::format("{}\"k{}\":\"\"", i == 0 ? "" : ",", i);
      doomed += fmt::format("{}\"k{}\":null", i == 0 ? "" : ",", i);
    }
    co_await attack(cluster,
                    {"PUT",
                     maps + "/m",
                     R"({"metadata":{"name":"m"},"data":{)" + members + "}}",
                     "application/json",
                     token},
                    "19,000 members");
    for (const std::string_view type :
         {"application/merge-patch+json", "application/strategic-merge-patch+json"})
      co_await attack(
          cluster,
          {"PATCH", maps + "/m", "{\"data\":{" + doomed + "}}", std::string(type), token},
          "19,000 taken away");
    co_await attack(cluster,
                    {"PUT",
                     maps + "/m",
                     R"({"metadata":{"name":"m"},"data":{)" + members + "}}",
                     "application/json",
                     token},
                    "19,000 members again");
    std::string removals;
    for (int i = 0; i < 9'990; ++i)
      removals +=
          fmt::format("{}{{\"op\":\"remove\",\"path\":\"/data/k{}\"}}", i == 0 ? "" : ",", i);
    co_await attack(
        cluster,
        {"PATCH", maps + "/m", "[" + removals + "]", "application/json-patch+json", token},
        "9,990 removed");
    std::string copies;
    for (int i = 0; i < 60; ++i)
      copies += fmt::format(
          "{}{{\"op\":\"copy\",\"from\":\"\",\"path\":\"/data/c{}\"}}", i == 0 ? "" : ",", i);
    co_await attack(
        cluster,
        {"PATCH", maps + "/m", "[" + copies + "]", "application/json-patch+json", token},
        "copies of copies");
  });
}

std::string pod_with(std::string_view spec) {
  return fmt::format(R"({{"metadata":{{"name":"p"}},"spec":{{{}}}}})", spec);
}

TEST_F(HostileBodies, ThatArePodsHoldNobodyUp) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("a", "editor", "edit");
    const std::string pods = "/api/v1/namespaces/a/pods";
    const auto many =
        [](std::string_view list, int count, const std::function<std::string(int)>& one) {
          std::string out = fmt::format("\"{}\":[", list);
          for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + one(i);
          return out + "]";
        };
    const std::string plain = R"("containers":[{"name":"c","image":"i"}])";
    std::vector<Attack> attacks;
    attacks.push_back({"containers", many("containers", 6'000, [](int i) {
                         return fmt::format(R"({{"name":"c{}","image":"i"}})", i);
                       })});
    attacks.push_back({"containers, one name", many("containers", 6'000, [](int) {
                         return std::string(R"({"name":"c","image":"i"})");
                       })});
    attacks.push_back(
        {"ports", R"("containers":[{"name":"c","image":"i",)" + many("ports", 6'000, [](int i) {
                    return fmt::format(R"({{"name":"p{}","containerPort":{}}})", i, i + 1);
                  }) + "}]"});
    attacks.push_back(
        {"env", R"("containers":[{"name":"c","image":"i",)" + many("env", 9'000, [](int i) {
                  return fmt::format(R"({{"name":"E{}"}})", i);
                }) + "}]"});
    attacks.push_back(
        {"mounts without volumes",
         R"("containers":[{"name":"c","image":"i",)" + many("volumeMounts", 6'000, [](int i) {
           return fmt::format(R"({{"name":"v{0}","mountPath":"/{0}"}})", i);
         }) + "}]"});
    attacks.push_back({"volumes", plain + "," + many("volumes", 9'000, [](int i) {
                                    return fmt::format(R"({{"name":"v{}"}})", i);
                                  })});
    attacks.push_back({"tolerations", plain + "," + many("tolerations", 9'000, [](int i) {
                                        return fmt::format(R"({{"key":"k{}"}})", i);
                                      })});
    attacks.push_back({"host aliases", plain + "," + many("hostAliases", 9'000, [](int i) {
                                         return fmt::format(R"({{"ip":"{}"}})", i);
                                       })});
    attacks.push_back({"gates", plain + "," + many("schedulingGates", 9'000, [](int i) {
                                  return fmt::format(R"({{"name":"g{}"}})", i);
                                })});
    attacks.push_back({"pull secrets", plain + "," + many("imagePullSecrets", 9'000, [](int i) {
                                         return fmt::format(R"({{"name":"g{}"}})", i);
                                       })});
    attacks.push_back(
        {"spread",
         plain + "," + many("topologySpreadConstraints", 4'500, [](int i) {
           return fmt::format(
               R"({{"topologyKey":"g{}","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}})", i);
         })});
    for (Attack& each : attacks) {
      const std::string body = pod_with(each.body);
      co_await attack(
          cluster, {"POST", pods + "?dryRun=All", body, "application/json", token}, each.name);
      Ask applied{"PATCH",
                  pods + "/q?fieldManager=x&dryRun=All",
                  R"({"apiVersion":"v1","kind":"Pod",)" + body.substr(1),
                  "application/apply-patch+yaml",
                  token};
      applied.body.replace(applied.body.find("\"p\""), 3, "\"q\"");
      co_await attack(cluster, std::move(applied), each.name + ", applied");
    }
  });
}

/// What a reader asks for: a long list that has to be written anew for them.
TEST_F(HostileBodies, NorDoListsInAnotherLanguage) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("a", "reader", "view");
    const std::string maps = "/api/v1/namespaces/a/configmaps";
    std::string members;
    for (int i = 0; i < 5'000; ++i) members += fmt::format("{}\"k{}\":\"\"", i == 0 ? "" : ",", i);
    for (int i = 0; i < 60; ++i) {
      const Answer made = co_await cluster.admin(
          "POST",
          maps,
          fmt::format(R"({{"metadata":{{"name":"m{}"}},"data":{{{}}}}})", i, members));
      EXPECT_EQ(made.status, 201) << made.text;
    }
    Ask yaml{"GET", maps, "", "", token};
    yaml.headers = {{"Accept", "application/yaml"}};
    co_await attack(cluster, std::move(yaml), "a list as YAML");
    co_await attack(cluster, {"GET", maps + "?pretty=true", "", "", token}, "a pretty list");
  });
}

}  // namespace
}  // namespace muster::apiserver
