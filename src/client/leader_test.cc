#include "client/leader.h"

#include "client/test_client.h"

namespace muster::client {
namespace {

LeaderOptions quick(std::string identity, std::string& log) {
  LeaderOptions options;
  options.identity = identity;
  options.lease = 1s;
  options.renew_deadline = 300ms;
  options.retry = 20ms;
  options.on_started = [&log, identity] { log += "+" + identity; };
  options.on_stopped = [&log, identity] { log += "-" + identity; };
  return options;
}

TEST_F(ClientTest, OneLeadsAndTheNextTakesOverAtOnceWhenItStops) {
  std::string log;
  const auto a = make_leader_elector(loop_, *client_, quick("a", log));
  const auto b = make_leader_elector(loop_, *client_, quick("b", log));
  run([&]() -> Task<void> {
    a->start();
    auto ok = co_await until([&] { return a->leading(); });
    EXPECT_TRUE(ok);
    b->start();
    ok = co_await until([&] { return b->holder() == "a"; });
    EXPECT_TRUE(ok);
    EXPECT_FALSE(b->leading());
    co_await a->stop();
    EXPECT_FALSE(a->leading());
    const auto begun = loop_.monotonic();
    ok = co_await until([&] { return b->leading(); });
    EXPECT_TRUE(ok);
    EXPECT_LT(loop_.monotonic() - begun, 900ms) << "a released lease needs no waiting";
    co_await b->stop();
  });
  EXPECT_EQ(log, "+a-a+b-b");
}

TEST_F(ClientTest, ALeaderThatCannotRenewStepsDown) {
  std::string log;
  const auto a = make_leader_elector(loop_, *client_, quick("a", log));
  run([&]() -> Task<void> {
    a->start();
    auto ok = co_await until([&] { return a->leading(); });
    EXPECT_TRUE(ok);
    server_.unknown_kind = true;
    ok = co_await until([&] { return !a->leading(); });
    EXPECT_TRUE(ok);
    co_await a->stop();
  });
  EXPECT_EQ(log, "+a-a");
}

TEST_F(ClientTest, AStandbyKnowsThatTheServerDoesNotAnswer) {
  std::string log;
  auto nowhere = net::make_client(loop_, {.url = "http://127.0.0.1:1"});
  ASSERT_TRUE(nowhere);
  const auto lonely_client = make_client(loop_, std::move(*nowhere), {});
  auto options = quick("lonely", log);
  options.lease = 100ms;
  const auto lonely = make_leader_elector(loop_, *lonely_client, options);
  const auto fine = make_leader_elector(loop_, *client_, quick("fine", log));
  run([&]() -> Task<void> {
    lonely->start();
    fine->start();
    EXPECT_EQ(lonely->out_of_touch(), Duration::zero());
    auto ok = co_await until([&] { return lonely->out_of_touch() > 100ms; });
    EXPECT_TRUE(ok);
    ok = co_await until([&] { return fine->leading(); });
    EXPECT_TRUE(ok);
    EXPECT_EQ(fine->out_of_touch(), Duration::zero());
    co_await lonely->stop();
    co_await fine->stop();
  });
}

}  // namespace
}  // namespace muster::client
