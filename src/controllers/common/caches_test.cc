#include "controllers/common/caches.h"

#include "client/test_client.h"

namespace muster::controllers {
namespace {

/// A namespace with pods of two jobs, and one of nobody; no other kind.
class ControllersCaches : public client::ClientTest {
 protected:
  ControllersCaches() {
    server_.serves_initial = true;
    pods_only_ = client::make_client(
        loop_,
        net::make_local_client(
            loop_,
            [this](net::Request request, net::ResponseWriter& writer) -> Task<void> {
              server_.unknown_kind = request.target.find("/pods") == std::string::npos;
              return server_.handle(std::move(request), writer);
            },
            "me"),
        options());
    put("mine-0", "job");
    put("mine-1", "job");
    put("theirs-0", "other");
    put("lone", "");
  }
  void put(const std::string& name, const std::string& owner) {
    json::Object meta{{"name", name}, {"namespace", "ns"}};
    if (!owner.empty())
      meta["ownerReferences"] = json::Array{json::Object{
          {"kind", "PyTorchJob"}, {"name", owner}, {"uid", owner}, {"controller", true}}};
    server_.put("/api/v1/namespaces/ns/pods/" + name, json::Object{{"metadata", std::move(meta)}});
  }
  template <typename Look>
  void with_caches(Look look) {
    run([&]() -> Task<void> {
      client::Informers informers(loop_, *pods_only_);
      Caches caches(informers);
      caches.follow(kinds::kPod);
      informers.start_all();
      co_await informers.wait_synced();
      look(caches);
      co_await informers.stop_all();
    });
  }
  static std::vector<std::string> names(const std::vector<const json::Value*>& objects) {
    std::vector<std::string> out;
    for (const auto* object : objects) out.emplace_back(kube::name_of(*object));
    return out;
  }
  const json::Value job_ = json::Object{
      {"metadata", json::Object{{"name", "job"}, {"namespace", "ns"}, {"uid", "job"}}}};
  std::unique_ptr<client::Client> pods_only_;
};

TEST_F(ControllersCaches, WhatAJobControlsIsInItsSnapshotFromTheBeginning) {
  with_caches([&](const Caches& caches) {
    const Snapshot snapshot(caches, job_, "", {});
    EXPECT_EQ(names(snapshot.controlled_by(kinds::kPod, "job")),
              (std::vector<std::string>{"mine-0", "mine-1"}));
    ASSERT_NE(snapshot.find(kinds::kPod, "mine-1"), nullptr);
    EXPECT_EQ(kube::name_of(*snapshot.find(kinds::kPod, "mine-1")), "mine-1");
    EXPECT_TRUE(snapshot.complete());
    EXPECT_TRUE(snapshot.asked().empty());
  });
}

TEST_F(ControllersCaches, WhatAPlanAsksForBeyondThatIsThereWhenItAsksAgain) {
  with_caches([&](const Caches& caches) {
    Snapshot snapshot(caches, job_, "", {});
    EXPECT_EQ(snapshot.find(kinds::kPod, "lone"), nullptr);
    EXPECT_TRUE(snapshot.all(kinds::kPod).empty());
    EXPECT_TRUE(snapshot.controlled_by(kinds::kPod, "other").empty());
    EXPECT_FALSE(snapshot.complete());
    snapshot.fetch();
    EXPECT_NE(snapshot.find(kinds::kPod, "lone"), nullptr);
    EXPECT_EQ(names(snapshot.all(kinds::kPod)),
              (std::vector<std::string>{"lone", "mine-0", "mine-1", "theirs-0"}));
    EXPECT_EQ(names(snapshot.controlled_by(kinds::kPod, "other")),
              (std::vector<std::string>{"theirs-0"}));
    EXPECT_TRUE(snapshot.complete());
    // The next plan of the job begins with it.
    const Snapshot next(caches, job_, "", snapshot.asked());
    EXPECT_NE(next.find(kinds::kPod, "lone"), nullptr);
    EXPECT_TRUE(next.complete());
  });
}

TEST_F(ControllersCaches, WhatIsNowhereIsAskedForOnce) {
  with_caches([&](const Caches& caches) {
    Snapshot snapshot(caches, job_, "", {});
    EXPECT_EQ(snapshot.find(kinds::kPod, "nowhere"), nullptr);
    EXPECT_EQ(snapshot.find(kinds::kService, "nowhere"), nullptr);  // not followed at all
    EXPECT_FALSE(snapshot.complete());
    snapshot.fetch();
    EXPECT_EQ(snapshot.find(kinds::kPod, "nowhere"), nullptr);
    EXPECT_EQ(snapshot.find(kinds::kService, "nowhere"), nullptr);
    EXPECT_TRUE(snapshot.complete());
  });
}

}  // namespace
}  // namespace muster::controllers
