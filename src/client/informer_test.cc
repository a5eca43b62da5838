#include "client/informer.h"

#include "base/test_turns.h"
#include "client/test_client.h"

namespace muster::client {
namespace {

/// Rebuilds the world from the handler's calls alone, and checks that each call fits what went
/// before.
struct Mirror {
  std::map<std::string, ObjectPtr> objects;
  bool synced = false;
  InformerHandlers handlers() {
    InformerHandlers handlers;
    handlers.on_change = [this](const ObjectPtr& old_object, const ObjectPtr& new_object) {
      const auto key = key_of(old_object ? *old_object : *new_object);
      EXPECT_EQ(old_object != nullptr, objects.contains(key)) << key;
      if (new_object) {
        objects[key] = new_object;
      } else {
        objects.erase(key);
      }
    };
    handlers.on_synced = [this] {
      EXPECT_FALSE(synced);
      synced = true;
    };
    return handlers;
  }
  [[nodiscard]] std::map<std::string, int> pods() const {
    std::map<std::string, int> out;
    for (const auto& [key, object] : objects)
      out[key] = static_cast<int>(json::int_at(*object, "value"));
    return out;
  }
};

/// On a server whose watches begin with what there is, and on one where that takes a list.
class InformerTest : public ClientTest, public testing::WithParamInterface<bool> {
 protected:
  InformerTest() { server_.serves_initial = GetParam(); }
  /// How often everything was asked for.
  [[nodiscard]] int looks() const { return GetParam() ? server_.initials : server_.lists; }
  void TearDown() override { EXPECT_EQ(GetParam() ? server_.lists : server_.initials, 0); }
};
INSTANTIATE_TEST_SUITE_P(Servers, InformerTest, testing::Bool(), [](const auto& info) {
  return info.param ? "WithInitialEvents" : "WithLists";
});

TEST_P(InformerTest, InformerFollows) {
  server_.put_pod("a", 1);
  server_.put_pod("b", 2);
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror, late;
  informer->add_handlers(mirror.handlers());
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until([&] { return informer->synced(); });
    EXPECT_TRUE(ok);
    EXPECT_TRUE(mirror.synced);
    EXPECT_EQ(mirror.pods(), server_.pods());
    server_.put_pod("a", 3);
    server_.erase_pod("b");
    server_.put_pod("c", 4);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    informer->add_handlers(late.handlers());
    EXPECT_TRUE(late.synced);
    EXPECT_EQ(late.pods(), server_.pods());
    EXPECT_EQ(json::int_at(*informer->find("ns/c"), "value"), 4);
    EXPECT_EQ(informer->find("ns/b"), nullptr);
    co_await informer->stop();
    server_.put_pod("d", 5);
    co_await turns(loop_, 100);
    EXPECT_EQ(informer->find("ns/d"), nullptr);
  });
}

TEST_P(InformerTest, InformerSurvivesCutsGapsAndRefusals) {
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror;
  informer->add_handlers(mirror.handlers());
  server_.refuse_lists = 2;
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until([&] { return informer->synced(); });
    EXPECT_TRUE(ok);
    // Cut in the middle of a line, with changes and deletions while nobody watches.
    server_.put_pod("a", 1);
    server_.put_pod("b", 1);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    server_.cut_watches();
    server_.put_pod("a", 2);
    server_.erase_pod("b");
    server_.put_pod("c", 1);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    // Made anew under the same name while nobody watches: seen as deleted and added.
    server_.cut_watches();
    server_.erase_pod("c");
    server_.put_pod("c", 7);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    // History is forgotten: 410 on the next watch.
    const int before = looks();
    server_.compacted = server_.revision() + 2;
    server_.end_watches();
    server_.put_pod("d", 1);
    server_.erase_pod("a");
    server_.put_pod("e", 1);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    EXPECT_GE(looks(), before);
    co_await informer->stop();
  });
}

/// The most rows that come before others get the loop.
struct Rows {
  explicit Rows(Env& env) : env_(env) {}
  void add() {
    if (++since_ == 1) env_.post([this] { most = std::max(most, std::exchange(since_, 0)); });
  }
  int most = 0;

 private:
  Env& env_;
  int since_ = 0;
};

TEST_P(InformerTest, ALongLookIsTakenOverInPiecesAndNothingIsLostMeanwhile) {
  constexpr int kPods = 5000, kMost = 256;
  for (int i = 0; i < kPods; ++i) server_.put_pod(fmt::format("p{:05}", i), 1);
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror;
  Rows rows(loop_);
  int told = 0;
  InformerHandlers counted = mirror.handlers();
  counted.on_change = [&, inner = counted.on_change](const ObjectPtr& a, const ObjectPtr& b) {
    inner(a, b);
    rows.add();
    if (++told != kPods / 2) return;
    EXPECT_FALSE(mirror.synced);
    server_.put_pod("p00001", 2);
    server_.erase_pod("p00002");
    server_.put_pod("q", 3);
    if (GetParam()) server_.cut_watches();
  };
  const auto same = [&] {
    return mirror.objects.size() == server_.objects().size() && mirror.pods() == server_.pods();
  };
  informer->add_handlers(std::move(counted));
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until(same);
    EXPECT_TRUE(ok);
    EXPECT_TRUE(mirror.synced);
    // Another look finds most of them gone.
    server_.cut_watches();
    for (int i = 0; i < kPods; i += 2) server_.erase_pod(fmt::format("p{:05}", i));
    server_.compacted = server_.revision();
    ok = co_await until(same);
    EXPECT_TRUE(ok);
    EXPECT_EQ(informer->objects().size(), server_.pods().size());
    co_await informer->stop();
  });
  EXPECT_GT(rows.most, 0);
  EXPECT_LE(rows.most, kMost);
}

TEST_P(InformerTest, CleanEndOfAWatchCostsNoList) {
  server_.put_pod("a", 1);
  const auto informer = make_informer(loop_, *client_, resources::kPods, {});
  Mirror mirror;
  informer->add_handlers(mirror.handlers());
  informer->start();
  run([&]() -> Task<void> {
    auto ok = co_await until([&] { return server_.watches == 1; });
    server_.put_pod("a", 2);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    server_.end_watches();
    server_.put_pod("a", 3);
    ok = co_await until([&] { return mirror.pods() == server_.pods(); });
    EXPECT_TRUE(ok);
    EXPECT_EQ(looks(), 1);
    EXPECT_EQ(server_.watches, 2);
    co_await informer->stop();
  });
}

TEST_F(ClientTest, UnknownKindIsEmptyAndSynced) {
  server_.unknown_kind = true;
  Informers informers(loop_, *client_);
  auto& one = informers.get(resources::kQueues);
  EXPECT_EQ(&one, &informers.get(resources::kQueues));
  ListOptions other;
  other.label_selector = "a=b";
  EXPECT_NE(&one, &informers.get(resources::kQueues, other));
  informers.start_all();
  run([&]() -> Task<void> {
    co_await informers.wait_synced();
    EXPECT_TRUE(one.objects().empty());
    co_await informers.stop_all();
  });
}

}  // namespace
}  // namespace muster::client
