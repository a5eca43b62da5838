/// What is logged: every request with who sent it and how it was decided, refused ones included, and
/// never a secret, whatever the policy says.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "apiserver/audit/id.h"
#include "apiserver/audit/log.h"
#include "security/cluster.h"
#include "security/folder.h"

namespace muster::apiserver {
namespace {

using audit::Level;

class Audit : public Cluster {
 public:
  void with_policy(std::string_view policy, const Steps& steps) {
    run(steps, [&](ServerOptions& options) {
      auto parsed = audit::parse_policy(policy);
      ASSERT_TRUE(parsed) << parsed.error().message;
      options.audit.emplace();
      options.audit->policy = std::move(*parsed);
      options.audit->file.path = path();
    });
  }
  void by_default(const Steps& steps) {
    run(steps, [&](ServerOptions& options) {
      options.audit.emplace();
      options.audit->file.path = path();
    });
  }
  [[nodiscard]] std::string path() const { return folder_.path() + "/audit.log"; }
  [[nodiscard]] std::string text() const {
    std::ifstream in(path());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::vector<json::Value> events() const {
    std::vector<json::Value> out;
    std::ifstream in(path());
    for (std::string line; std::getline(in, line);) {
      auto parsed = json::parse(line);
      EXPECT_TRUE(parsed) << line;
      if (parsed) out.push_back(std::move(*parsed));
    }
    return out;
  }
  /// The only event of this address at this stage.
  [[nodiscard]] json::Value event(std::string_view uri,
                                  std::string_view verb,
                                  std::string_view stage = "ResponseComplete") const {
    json::Value found;
    for (json::Value& each : events()) {
      if (json::string_at(each, "requestURI") != uri || json::string_at(each, "verb") != verb ||
          json::string_at(each, "stage") != stage)
        continue;
      EXPECT_TRUE(found.is_null()) << "two events of " << uri;
      found = std::move(each);
    }
    EXPECT_FALSE(found.is_null()) << "no event of " << verb << " " << uri << " in " << text();
    return found;
  }

 private:
  TemporaryFolder folder_;
};

std::string_view decision(const json::Value& event) {
  return json::string_at(event, "annotations", "authorization.k8s.io/decision");
}
std::string_view reason(const json::Value& event) {
  return json::string_at(event, "annotations", "authorization.k8s.io/reason");
}

const std::string kSecrets = "/api/v1/namespaces/vision/secrets";
constexpr std::string_view kEverything =
    "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: RequestResponse}]}";

TEST_F(Audit, WhatAnEditorDidAndWhatTheyWereRefusedIsWrittenDownWithTheReason) {
  by_default([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    (void)co_await cluster.ask({"GET", "/api/v1/namespaces/vision/pods?limit=5", "", "", token});
    (void)co_await cluster.ask({"GET", "/api/v1/namespaces/other/secrets", "", "", token});
    (void)co_await cluster.ask({"GET", "/api/v1/nodes", "", "", "no-such-token"});
    (void)co_await cluster.ask({"GET", "/healthz", "", "", token});
  });
  const json::Value listed = event("/api/v1/namespaces/vision/pods?limit=5", "list");
  EXPECT_EQ(json::string_at(listed, "apiVersion"), "audit.k8s.io/v1");
  EXPECT_EQ(json::string_at(listed, "kind"), "Event");
  EXPECT_EQ(json::string_at(listed, "level"), "Metadata");
  EXPECT_EQ(json::string_at(listed, "user", "username"), "system:serviceaccount:vision:editor");
  EXPECT_EQ(json::dump(json::at(listed, "objectRef")),
            R"({"resource":"pods","namespace":"vision","apiVersion":"v1"})");
  EXPECT_EQ(json::int_at(listed, "responseStatus", "code"), 200);
  EXPECT_EQ(decision(listed), "allow");
  EXPECT_EQ(reason(listed),
            "RBAC: allowed by RoleBinding \"editor/vision\" of ClusterRole \"edit\" to "
            "ServiceAccount \"editor/vision\"");
  EXPECT_TRUE(json::at(listed, "responseObject").is_null());

  const json::Value refused = event("/api/v1/namespaces/other/secrets", "list");
  EXPECT_EQ(decision(refused), "forbid");
  EXPECT_EQ(json::int_at(refused, "responseStatus", "code"), 403);
  EXPECT_EQ(json::string_at(refused, "responseStatus", "reason"), "Forbidden");

  const json::Value unknown = event("/api/v1/nodes", "get");
  EXPECT_EQ(json::int_at(unknown, "responseStatus", "code"), 401);
  EXPECT_EQ(json::string_at(unknown, "user", "username"), "");
  EXPECT_EQ(text().find("/healthz"), std::string::npos);
  EXPECT_EQ(text().find("no-such-token"), std::string::npos);
}

TEST_F(Audit, NoSecretAndNoTokenIsInItAtAnyLevel) {
  std::string issued;
  with_policy(kEverything, [&issued](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    issued = token;
    (void)co_await cluster.ask({"POST",
                                kSecrets,
                                R"({"metadata":{"name":"s"},"stringData":{"pw":"hunter2"}})",
                                "application/json",
                                token});
    (void)co_await cluster.ask({"GET", kSecrets + "/s", "", "", token});
    (void)co_await cluster.ask({"GET", kSecrets, "", "", token});
    (void)co_await cluster.ask({"PATCH",
                                kSecrets + "/s",
                                R"({"stringData":{"pw":"hunter3"}})",
                                "application/merge-patch+json",
                                token});
    (void)co_await cluster.ask({"POST",
                                kSecrets,
                                R"({"metadata":{"name":"t"},"data":{"pw":"hunter4 is no base64"}})",
                                "application/json",
                                token});
    (void)co_await cluster.admin("POST",
                                 "/apis/authentication.k8s.io/v1/tokenreviews",
                                 fmt::format(R"({{"spec":{{"token":"{}"}}}})", token));
    // Several reads in one request are no way around it.
    const Answer read = co_await cluster.ask({"POST",
                                              "/muster/v1/reads",
                                              fmt::format(R"(["{}/s"])", kSecrets),
                                              "application/json",
                                              token});
    EXPECT_NE(read.text.find("aHVudGVyMw=="), std::string::npos) << read.text;
  });
  const std::string all = text();
  for (const std::string& secret : {std::string("hunter2"),
                                    std::string("hunter3"),
                                    std::string("hunter4"),
                                    std::string("aHVudGVyMg=="),
                                    std::string("aHVudGVyMw=="),
                                    issued})
    EXPECT_EQ(all.find(secret), std::string::npos) << secret;
  EXPECT_NE(all.find(kSecrets + "/s"), std::string::npos);
}

TEST_F(Audit, BodiesAreThereWhereThePolicySaysSo) {
  with_policy(
      R"(
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, verbs: [list]}
- level: Request
  users: ["system:serviceaccount:vision:editor"]
  resources: [{group: "", resources: [configmaps]}]
- level: RequestResponse
  omitManagedFields: true
  namespaces: [vision]
  resources: [{group: "", resources: ["configmaps"]}]
)",
      [](Cluster& cluster) -> Task<void> {
        const std::string token = co_await cluster.account("vision", "editor", "edit");
        const std::string maps = "/api/v1/namespaces/vision/configmaps";
        (void)co_await cluster.ask(
            {"POST", maps, "metadata: {name: a}\ndata: {k: v}\n", "application/yaml", token});
        (void)co_await cluster.admin(
            "PUT", maps + "/a", R"({"metadata":{"name":"a"},"data":{"k":"w"}})");
        (void)co_await cluster.admin("GET", maps);
      });
  const std::string maps = "/api/v1/namespaces/vision/configmaps";
  const json::Value made = event(maps, "create");
  EXPECT_EQ(json::string_at(made, "requestObject", "data", "k"), "v");
  EXPECT_TRUE(json::at(made, "responseObject").is_null());
  const json::Value changed = event(maps + "/a", "update");
  EXPECT_EQ(json::string_at(changed, "responseObject", "data", "k"), "w");
  EXPECT_TRUE(json::at(changed, "responseObject", "metadata", "managedFields").is_null());
  // No rule: nothing. The first rule hides lists.
  for (const json::Value& each : events()) {
    EXPECT_EQ(json::string_at(each, "objectRef", "resource"), "configmaps") << json::dump(each);
    EXPECT_NE(json::string_at(each, "verb"), "list");
  }
}

TEST_F(Audit, ActingAsSomebodyNamesBothAndIsWrittenDownWhenRefused) {
  by_default([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    Ask ask{"GET", "/api/v1/nodes", "", "", "admin"};
    ask.headers = {{"Impersonate-User", "jane"}, {"Audit-Id", "my-own-id"}};
    (void)co_await cluster.ask(ask);
    Ask other{"GET", "/api/v1/namespaces", "", "", token};
    other.headers = {{"Impersonate-User", "admin"}, {"Audit-Id", "two\nlines"}};
    (void)co_await cluster.ask(other);
  });
  const json::Value acted = event("/api/v1/nodes", "list");
  EXPECT_EQ(json::string_at(acted, "user", "username"), "muster-admin");
  EXPECT_EQ(json::string_at(acted, "impersonatedUser", "username"), "jane");
  EXPECT_EQ(json::string_at(acted, "auditID"), "my-own-id");
  EXPECT_EQ(decision(acted), "forbid");
  const json::Value refused = event("/api/v1/namespaces", "get");
  EXPECT_EQ(json::string_at(refused, "user", "username"), "system:serviceaccount:vision:editor");
  EXPECT_EQ(json::int_at(refused, "responseStatus", "code"), 403);
  EXPECT_EQ(decision(refused), "forbid");
  EXPECT_EQ(json::string_at(refused, "auditID").size(), 36);
}

TEST_F(Audit, APodThatTheNamespaceAuditsIsNamedInItsLine) {
  by_default([](Cluster& cluster) -> Task<void> {
    (void)co_await cluster.admin(
        "POST",
        "/api/v1/namespaces",
        R"({"metadata":{"name":"vision","labels":{"pod-security.kubernetes.io/audit":"restricted"}}})");
    const Answer made = co_await cluster.admin(
        "POST",
        "/api/v1/namespaces/vision/pods",
        R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}})");
    EXPECT_EQ(made.status, 201) << made.text;
  });
  EXPECT_THAT(std::string(json::string_at(event("/api/v1/namespaces/vision/pods", "create"),
                                          "annotations",
                                          "pod-security.kubernetes.io/audit-violations")),
              testing::StartsWith("would violate PodSecurity \"restricted:latest\""));
}

TEST_F(Audit, TheLastLinesAreForThoseWhoMayReadThem) {
  by_default([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("vision", "editor", "edit");
    const Answer refused = co_await cluster.ask({"GET", "/muster/v1/audit", "", "", token});
    EXPECT_EQ(refused.status, 403);
    EXPECT_EQ(refused.message(),
              "forbidden: User \"system:serviceaccount:vision:editor\" cannot get path "
              "\"/muster/v1/audit\"");
    Answer lines;
    while (lines.text.find("rolebindings") == std::string::npos) {
      co_await cluster.loop().sleep(std::chrono::milliseconds(10));
      lines = co_await cluster.admin("GET", "/muster/v1/audit?limit=20");
      EXPECT_EQ(lines.status, 200) << lines.text;
    }
    EXPECT_LE(json::array_at(lines.body, "items").size(), 20U);
    const Answer wrong = co_await cluster.admin("GET", "/muster/v1/audit?limit=x");
    EXPECT_EQ(wrong.status, 400);
  });
}

TEST(AuditLines, EachIsAnEventAsKubernetesWritesIt) {
  const User jane{.name = "jane",
                  .uid = "u1",
                  .groups = {"a \"quoted\" group", "system:authenticated"},
                  .extra = {{"scopes", {"x", "y"}}, {"seat", {}}}};
  const User robot{.name = "robot"};
  const audit::Annotations none,
      decision = {{"authorization.k8s.io/decision", "allow"}, {"authorization.k8s.io/reason", ""}};
  audit::Event full{.user = jane, .acting = &robot, .annotations = decision};
  full.id = "id-1";
  full.uri = "/apis/apps/v1/namespaces/vision/deployments/d/scale?x=\n";
  full.verb = "update";
  full.source = "[::1]:4711";
  full.forwarded = "10.0.0.1, 10.0.0.2";
  full.agent = "kubectl";
  full.group = "apps";
  full.version = "v1";
  full.resource = "deployments";
  full.subresource = "scale";
  full.ns = "vision";
  full.name = "d";
  full.received = *parse_time("2026-11-16T15:04:05.000123Z");
  full.at = *parse_time("2026-11-16T15:04:06.5Z");
  full.code = 409;
  auto bodies = std::make_unique<audit::Bodies>();
  bodies->failure.text =
      R"({"status":"Failure","message":"say \"when\"","reason":"Conflict","x":1})";
  bodies->request.text = R"({"spec":{"replicas":2}})";
  audit::Event bare{.stage = audit::Stage::kRequestReceived, .user = robot, .annotations = none};
  bare.id = "id-2";
  bare.uri = "/version";
  bare.verb = "get";
  audit::Lines lines;
  audit::Phrases phrases;
  lines.add(bare, nullptr, phrases);
  lines.add(full, std::move(bodies), phrases);
  bare.code = 200;
  lines.add(bare, nullptr, phrases);
  EXPECT_EQ(lines.count(), 3U);
  const std::string bare_head =
      R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id-2",)"
      R"("stage":"RequestReceived","requestURI":"/version","verb":"get",)"
      R"("user":{"username":"robot"},)";
  const std::string bare_end = R"("requestReceivedTimestamp":"1970-01-01T00:00:00.000000Z",)"
                               R"("stageTimestamp":"1970-01-01T00:00:00.000000Z"})"
                               "\n";
  EXPECT_EQ(
      lines.take().view(),
      bare_head + bare_end +
          R"({"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id-1",)"
          R"("stage":"ResponseComplete",)"
          R"("requestURI":"/apis/apps/v1/namespaces/vision/deployments/d/scale?x=\n",)"
          R"("verb":"update","user":{"username":"jane","uid":"u1",)"
          R"("groups":["a \"quoted\" group","system:authenticated"],)"
          R"("extra":{"scopes":["x","y"],"seat":[]}},"impersonatedUser":{"username":"robot"},)"
          R"("sourceIPs":["10.0.0.1","10.0.0.2","::1"],"userAgent":"kubectl",)"
          R"("objectRef":{"resource":"deployments","namespace":"vision","name":"d",)"
          R"("apiGroup":"apps","apiVersion":"v1","subresource":"scale"},)"
          R"("responseStatus":{"metadata":{},"status":"Failure","message":"say \"when\"",)"
          R"("reason":"Conflict","code":409},"requestObject":{"spec":{"replicas":2}},)"
          R"("requestReceivedTimestamp":"2026-11-16T15:04:05.000123Z",)"
          R"("stageTimestamp":"2026-11-16T15:04:06.500000Z",)"
          R"("annotations":{"authorization.k8s.io/decision":"allow",)"
          R"("authorization.k8s.io/reason":""}})"
          "\n" +
          bare_head + R"("responseStatus":{"metadata":{},"code":200},)" + bare_end);
}

TEST(AuditLines, WhatIsRepeatedIsThatOfWhoeverAsksAndOfTheirReason) {
  const audit::Annotations none;
  const auto line = [&](audit::Phrases& phrases, audit::Event event) {
    audit::Lines lines;
    lines.add(event, nullptr, phrases);
    return std::string(lines.take().view());
  };
  User first{.name = "jane", .groups = {"a"}}, second{.name = "jane", .groups = {"b"}};
  User known{.name = "jane", .groups = {"a"}, .identity = 1}, other = second;
  other.identity = 2;
  const Reason reasons[] = {std::make_shared<const std::string>("by \"one\""),
                            std::make_shared<const std::string>("by two"),
                            nullptr};
  std::vector<audit::Event> events;
  for (const User* user : {&first, &second, &known, &other}) {
    for (const std::string_view source : {"10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80"}) {
      for (const std::string_view agent : {"kubectl", "kubectx", ""}) {
        for (const std::string_view forwarded : {"", "10.9.9.9"}) {
          for (const Reason& reason : reasons) {
            audit::Event event{.user = *user, .annotations = none};
            event.source = source;
            event.agent = agent;
            event.forwarded = forwarded;
            event.decision = "allow";
            event.reason = &reason;
            events.push_back(event);
            if (reason == reasons[1]) {
              events.push_back(event);
              events.back().acting = &second;
            }
          }
        }
      }
    }
  }
  // Whatever came before, in either order, a line is as if it were the first.
  audit::Phrases phrases;
  for (const bool backwards : {false, true}) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const audit::Event& event = events[backwards ? events.size() - 1 - i : i];
      audit::Phrases fresh;
      EXPECT_EQ(line(phrases, event), line(fresh, event));
    }
  }
  const std::string last = line(phrases, events.front());
  EXPECT_NE(last.find(R"("user":{"username":"jane","groups":["a"]},"sourceIPs":["10.0.0.1"],)"
                      R"("userAgent":"kubectl","requestReceivedTimestamp")"),
            std::string::npos)
      << last;
  EXPECT_NE(last.find(R"("annotations":{"authorization.k8s.io/decision":"allow",)"
                      R"("authorization.k8s.io/reason":"by \"one\""}})"),
            std::string::npos)
      << last;
}

TEST(AuditIds, AreRandomUuidsOrWhatTheClientSaid) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    audit::Id id;
    EXPECT_TRUE(id.empty());
    id.draw();
    EXPECT_THAT(std::string(id.view()),
                testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-"
                                      "[0-9a-f]{12}"));
    EXPECT_TRUE(seen.emplace(id.view()).second);
  }
  // Every digit at every place that is random.
  std::set<std::pair<std::size_t, char>> digits;
  for (const std::string& id : seen) {
    for (std::size_t at = 0; at < id.size(); ++at) digits.emplace(at, id[at]);
  }
  EXPECT_EQ(digits.size(), 30U * 16 + 4 + 1 + 4);
  audit::Id given;
  given.set("my-own-id");
  EXPECT_EQ(given.view(), "my-own-id");
}

/// Few lines and many by turns: whole lines in their order, and spaces only where many end.
TEST(AuditFile, ManyLinesAtOnceEndWithABlockOfTheDisk) {
  const TemporaryFolder folder;
  const std::string name = std::filesystem::path(folder.path()).filename().string();
  // A disk, and memory, which may have no blocks.
  for (const std::string& path : {folder.path() + "/audit.log", "/dev/shm/" + name + ".log"}) {
    audit::File file({.path = path});
    ASSERT_TRUE(file.open());
    std::string wanted;
    int number = 0;
    std::uintmax_t before = 0;
    for (const int count : {3, 20'000, 20'000, 1, 200'000, 20'000, 20'000, 2}) {
      audit::Block lines;
      for (int i = 0; i < count; ++i) {
        const std::string line = fmt::format(R"({{"kind":"Event","number":{}}})", number++) + "\n";
        lines.append(line);
        wanted += line;
      }
      ASSERT_TRUE(file.append(lines, {}));
      const std::uintmax_t size = std::filesystem::file_size(path);
      EXPECT_EQ(size, before + lines.size());
      if (count == 20'000) {
        EXPECT_EQ(size % audit::Block::kAlignment, 0U) << path;
      }
      before = size;
    }
    std::ifstream in(path);
    std::string found;
    int padded = 0;
    for (std::string line; std::getline(in, line);) {
      const std::size_t end = line.find_last_not_of(' ') + 1;
      if (end < line.size()) ++padded;
      found += line.substr(0, end) + "\n";
    }
    EXPECT_EQ(found, wanted) << path;
    EXPECT_GE(padded, 3);
    EXPECT_LE(padded, 4);
    EXPECT_EQ(file.tail(1).size(), 1U);
    std::filesystem::remove(path);
  }
}

TEST(AuditFile, WhatIsFullIsPutAsideAndTheOldestGo) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/audit.log";
  {
    std::ofstream other(folder.path() + "/audit-notes.log");
  }
  audit::File file(
      {.path = path, .bytes_max = 100, .age_max = std::chrono::hours(24), .backups_max = 3});
  ASSERT_TRUE(file.open());
  const Time begin = *parse_time("2026-11-16T15:04:05Z");
  const auto names = [&] {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      out.push_back(entry.path().filename().string());
      EXPECT_LE(entry.file_size(), 100U) << entry.path();
    }
    return out;
  };
  const auto append = [&](char what, std::size_t length, Time now) {
    audit::Block lines;
    lines.append(std::string(length, what) + "\n");
    return file.append(lines, now);
  };
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(append('x', 39, begin + std::chrono::seconds(i)));
  EXPECT_THAT(names(),
              testing::UnorderedElementsAre("audit.log",
                                            "audit-notes.log",
                                            "audit-2026-11-16T15-04-19.000.log",
                                            "audit-2026-11-16T15-04-21.000.log",
                                            "audit-2026-11-16T15-04-23.000.log"));
  EXPECT_EQ(file.tail(1), std::vector<std::string>{std::string(39, 'x')});
  // A day later all of those are too old.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(append('y', 80, begin + std::chrono::hours(48)));
  EXPECT_THAT(names(),
              testing::UnorderedElementsAre("audit.log",
                                            "audit-notes.log",
                                            "audit-2026-11-18T15-04-05.000.log",
                                            "audit-2026-11-18T15-04-05.001.log"));
  EXPECT_EQ(std::filesystem::status(path).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(Audit, AFloodDoesNotHideWhatCameWithIt) {
  constexpr int kRequests = 3000;
  by_default([](Cluster& cluster) -> Task<void> {
    for (int i = 0; i < kRequests; ++i)
      (void)co_await cluster.admin("GET", fmt::format("/api/v1/nodes/n{}", i));
    // The newest thousand, in their order.
    const std::string newest = fmt::format("\"/api/v1/nodes/n{}\"", kRequests - 1);
    Answer lines;
    while (lines.text.find(newest) == std::string::npos) {
      co_await cluster.loop().sleep(std::chrono::milliseconds(10));
      lines = co_await cluster.admin("GET", "/muster/v1/audit?limit=5000");
    }
    const json::Array& items = json::array_at(lines.body, "items");
    EXPECT_EQ(items.size(), audit::Log::kTailMax);
    std::vector<std::string> times;
    for (const json::Value& each : items) times.push_back(json::text_at(each, "stageTimestamp"));
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  });
  int found = 0;
  for (const json::Value& each : events()) {
    if (json::string_at(each, "requestURI").starts_with("/api/v1/nodes/n")) ++found;
  }
  EXPECT_EQ(found, kRequests);
}

/// The log is a pipe that nobody reads: a disk that stands still.
TEST_F(Audit, WhatCannotBeWrittenDownIsNotDone) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const int reader = ::open(path().c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  std::thread drain;
  by_default([&](Cluster& cluster) -> Task<void> {
    const std::string map = "/api/v1/namespaces/default/configmaps";
    Answer answer;
    int sent = 0;
    while (answer.status != 429 && ++sent < 30'000)
      answer = co_await cluster.admin("GET", map + "/absent");
    EXPECT_EQ(answer.status, 429) << sent;
    EXPECT_GT(sent, 5'000);
    EXPECT_NE(answer.message().find("none is answered unrecorded"), std::string::npos);
    drain = std::thread([reader] {
      std::string bytes(1 << 16, ' ');
      ::fcntl(reader, F_SETFL, 0);
      while (::read(reader, bytes.data(), bytes.size()) > 0) {
      }
    });
    while (answer.status != 201)
      answer = co_await cluster.admin("POST", map, R"({"metadata":{"name":"a"}})");
    EXPECT_EQ(answer.status, 201);
  });
  release();
  drain.join();
  ::close(reader);
}

TEST(AuditPolicy, MistakesAreNamed) {
  struct Case {
    std::string_view text, error;
  };
  for (const auto& [text, error] : {
           Case{"{}", R"(kind: wanted Policy of audit.k8s.io/v1, found "" of "")"},
           Case{"apiVersion: audit.k8s.io/v1\nkind: Policy",
                "rules: wanted at least one rule, found none"},
           Case{"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: All}]",
                "rules[0].level: wanted None, Metadata, Request or RequestResponse, found \"All\""},
           Case{"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, user: [x]}]",
                "rules[0].user: wanted one of level, users, userGroups, verbs, resources, "
                "namespaces, nonResourceURLs, omitStages, omitManagedFields, found an unknown "
                "field"},
           Case{
               "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, omitStages: [X]}]",
               "rules[0].omitStages: wanted RequestReceived, ResponseStarted, ResponseComplete or "
               "Panic, found \"X\""},
           Case{"apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: "
                "[/a*b]}]",
                "rules[0].nonResourceURLs: wanted * or a path from /, with * at its end only, "
                "found \"/a*b\""},
       }) {
    const auto parsed = audit::parse_policy(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message, error);
  }
}

TEST(AuditPolicy, TheFirstRuleThatMatchesDecides) {
  const auto policy = audit::parse_policy(R"(
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- {level: None, userGroups: [robots], verbs: [get]}
- {level: Metadata, resources: [{group: "", resources: ["pods/*"]}]}
- {level: Request, resources: [{group: apps, resources: ["*/scale", deployments], resourceNames: [d]}]}
- {level: RequestResponse, namespaces: [vision]}
- {level: Metadata, nonResourceURLs: ["/api*"]}
)");
  ASSERT_TRUE(policy) << policy.error().message;
  const std::vector<std::string> robots = {"robots"};
  const auto level = [&](audit::Request request) { return policy->judge(request).level; };
  EXPECT_EQ(level({.groups = &robots, .verb = "get", .resource = "nodes"}), Level::kNone);
  EXPECT_EQ(level({.verb = "get", .resource = "pods", .subresource = "log"}), Level::kMetadata);
  EXPECT_EQ(level({.verb = "get", .resource = "pods"}), Level::kMetadata);
  EXPECT_EQ(level({.verb = "get", .resource = "nodes"}), Level::kNone);
  EXPECT_EQ(level({.verb = "update",
                   .group = "apps",
                   .resource = "x",
                   .subresource = "scale",
                   .name = "d"}),
            Level::kRequest);
  EXPECT_EQ(level({.verb = "update",
                   .group = "apps",
                   .resource = "deployments",
                   .name = "e",
                   .ns = "vision"}),
            Level::kRequestResponse);
  EXPECT_EQ(level({.verb = "get", .path = "/apis"}), Level::kMetadata);
  EXPECT_EQ(level({.verb = "get", .path = "/metrics"}), Level::kNone);
}

}  // namespace
}  // namespace muster::apiserver
