#include "portal/jobs/index.h"

#include "client/test_client.h"

namespace muster::portal {
namespace {

/// A server of PyTorchJobs that knows no other kind.
class PortalJobs : public client::ClientTest {
 protected:
  PortalJobs() {
    server_.serves_initial = true;
    jobs_only_ = client::make_client(
        loop_,
        net::make_local_client(
            loop_,
            [this](net::Request request, net::ResponseWriter& writer) -> Task<void> {
              server_.unknown_kind = request.target.find("/pytorchjobs") == std::string::npos;
              return server_.handle(std::move(request), writer);
            },
            "me"),
        options());
  }
  std::unique_ptr<client::Client> jobs_only_;
};

TEST_F(PortalJobs, OthersGetTheLoopEveryFewHundredRowsOfALongFirstList) {
  constexpr std::size_t kJobs = 20'000, kMost = 512;
  for (std::size_t i = 0; i < kJobs; ++i) {
    const std::string name = fmt::format("job-{:05}", i);
    server_.put("/pytorchjobs/" + name,
                json::Object{{"metadata", {{"name", name}, {"namespace", "ns"}}},
                             {"spec", {{"pytorchReplicaSpecs", json::Object()}}}});
  }
  client::Informers informers(loop_, *jobs_only_);
  JobIndex index(loop_, informers);
  std::size_t before = 0, most = 0;
  std::function<void()> look = [&] {
    most = std::max(most, index.table().size() - before);
    before = index.table().size();
    if (!index.ready()) loop_.post(look);
  };
  run([&]() -> Task<void> {
    index.begin();
    look();
    co_await index.wait_ready();
    EXPECT_EQ(index.table().size(), kJobs);
    index.stop();
    co_await informers.stop_all();
  });
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, kMost);
}

}  // namespace
}  // namespace muster::portal
