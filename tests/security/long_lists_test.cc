/// Whoever reads many objects at once makes nobody else wait: lists are looked through and written
/// in slices, and still show one moment.
#include "security/meter.h"

namespace muster::apiserver {
namespace {

constexpr int kPods = 10'000;
const std::string kPath = "/api/v1/namespaces/a/pods";

Task<void> make_pods(Cluster& cluster) {
  for (int i = 0; i < kPods; ++i) {
    Ask wanted{"POST", kPath};
    wanted.body = fmt::format(
        R"({{"metadata":{{"name":"p{0:05}","labels":{{"app":"x","n":"{0}"}}}},"spec":{{"containers":[{{"name":"c","image":"i","env":[{{"name":"A","value":"{0}"}}]}}]}}}})",
        i);
    wanted.token = "admin";
    const Answer made = co_await cluster.ask(std::move(wanted));
    if (made.status != 201) ADD_FAILURE() << made.text;
    if (made.status != 201) co_return;
  }
}

Ask get(std::string query, const std::string& token, std::string accept = "application/json") {
  Ask wanted{"GET", kPath + query, "", "", token};
  wanted.headers = {{"Accept", std::move(accept)}};
  return wanted;
}

class LongLists : public Cluster {};

TEST_F(LongLists, HoldNobodyUp) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("a", "reader", "view");
    co_await make_pods(cluster);
    const std::string table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    const std::string partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    const auto read = [&](Ask wanted, std::string name) -> Task<void> {
      const int status = co_await attack(cluster, std::move(wanted), name);
      EXPECT_EQ(status, 200) << name;
    };
    co_await read(get("", token), "objects");
    co_await read(get("", token, table), "a Table");
    co_await read(get("?includeObject=Object", token, table), "a Table with objects");
    co_await read(get("", token, partial), "metadata");
    co_await read(get("?fields=metadata(name),status", token), "fields");
    std::string terms;
    for (int i = 0; i < 300; ++i) terms += fmt::format("{}k{}!=v", i == 0 ? "" : ",", i);
    co_await read(get("?labelSelector=" + terms, token), "300 terms");
    co_await read(get("?limit=1&labelSelector=z," + terms, token), "300 terms in vain");
    co_await read(get("?limit=500", token), "a page");
    Ask doomed{"DELETE", kPath + "?labelSelector=app%3Dx", "", "", "admin"};
    co_await read(std::move(doomed), "all deleted");
  });
}

/// A list that takes several turns of the loop, while somebody else writes in each of them.
TEST_F(LongLists, ShowOneMomentWhateverHappensMeanwhile) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string token = co_await cluster.account("a", "reader", "view");
    co_await make_pods(cluster);
    bool listed = false;
    int written = 0;
    const auto done = cluster.loop().make_signal();
    const auto write = [&]() -> Task<void> {
      while (!listed) {
        const Answer made = co_await cluster.admin(
            "PATCH",
            fmt::format("{}/p{:05}", kPath, (written * 37) % kPods),
            fmt::format(R"({{"metadata":{{"labels":{{"n":"new-{}"}}}}}})", written),
            "application/merge-patch+json");
        EXPECT_EQ(made.status, 200) << made.text;
        ++written;
      }
      done->notify();
    };
    cluster.loop().spawn(write());
    const Answer list = co_await cluster.ask(
        get("?labelSelector=app,none!=x", token, "application/json;as=Table;g=meta.k8s.io;v=v1"));
    listed = true;
    co_await done->wait(Duration::zero());
    const auto& rows = json::array_at(list.body, "rows");
    EXPECT_EQ(rows.size(), std::size_t{kPods});
    EXPECT_GT(written, 1) << "nobody had a turn while the list was made: this tests nothing";
    const auto moment = std::stoll(json::text_at(list.body, "metadata", "resourceVersion"));
    for (const json::Value& row : rows)
      EXPECT_LE(std::stoll(json::text_at(row, "object", "metadata", "resourceVersion")), moment);
  });
}

/// Pages are of the first one's moment, though objects come, change and go between them.
TEST_F(LongLists, GoOnWhereTheyWereThoughMuchHasChanged) {
  run([](Cluster& cluster) -> Task<void> {
    const std::string secrets = "/api/v1/namespaces/a/secrets";
    const std::string token = co_await cluster.account("a", "reader", "edit");
    const auto make = [&](std::string name) -> Task<void> {
      const Answer made = co_await cluster.admin(
          "POST",
          secrets,
          fmt::format(R"({{"metadata":{{"name":"{}"}},"data":{{"k":"b2xk"}}}})", name));
      EXPECT_EQ(made.status, 201) << made.text;
    };
    for (const char c : std::string("bdfhj")) co_await make(std::string(1, c));
    Answer page = co_await cluster.ask({"GET", secrets + "?limit=2", "", "", token});
    std::string seen;
    for (const char c : std::string("aegk")) co_await make(std::string(1, c));
    (void)co_await cluster.admin("DELETE", secrets + "/f");
    (void)co_await cluster.admin(
        "PATCH", secrets + "/h", R"({"data":{"k":"bmV3"}})", "application/merge-patch+json");
    for (;;) {
      for (const json::Value& item : json::array_at(page.body, "items"))
        seen +=
            json::text_at(item, "metadata", "name") + ":" + json::text_at(item, "data", "k") + " ";
      const std::string next = json::text_at(page.body, "metadata", "continue");
      if (next.empty()) break;
      page = co_await cluster.ask({"GET", secrets + "?limit=2&continue=" + next, "", "", token});
      EXPECT_EQ(page.status, 200) << page.text;
    }
    EXPECT_EQ(seen, "b:b2xk d:b2xk f:b2xk h:b2xk j:b2xk ");
  });
}

}  // namespace
}  // namespace muster::apiserver
