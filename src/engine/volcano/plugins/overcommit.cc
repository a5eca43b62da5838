// overcommit: jobs are let in until what they ask for is the cluster's idle room and a part more.
#include <string_view>

#include "base/strings.h"
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

constexpr std::int64_t kUsualFactor = 1'200'000;

/// "1.25" -> 1250000.
std::optional<std::int64_t> millionths(std::string_view text) {
  const auto dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::string fraction(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  fraction.resize(6, '0');
  const auto number = parse_int(digits + fraction);
  return number ? std::optional<std::int64_t>(*number) : std::nullopt;
}

class Overcommit : public Plugin {
 public:
  using Plugin::Plugin;

  void open() override {
    std::int64_t factor = millionths(argument("overcommit-factor")).value_or(kUsualFactor);
    if (factor < 1'000'000) factor = kUsualFactor;  // Below 1 counts as a mistake.
    for (std::size_t i = 0; i < snapshot_.dims; ++i)
      idle_[i] = snapshot_.total[i] * factor / 1'000'000;
    for (const NodeId n : snapshot_.nodes) idle_ -= snapshot_.rooms[n.index()].used;
    for (const Job& job : snapshot_.jobs) {
      if (snapshot_.counts_as_inqueue(job)) inqueue_ += snapshot_.not_yet_allocated(job);
    }
  }

  [[nodiscard]] Vote job_enqueueable(const Job& job) const override {
    return requested_less_equal(inqueue_ + job.min_resources, idle_, job.min_resources)
               ? Vote::kPermit
               : Vote::kReject;
  }

  [[nodiscard]] std::optional<Filling> admission() const override {
    return Filling{inqueue_, idle_};
  }

  void enqueued(const Amounts& admitted) override { inqueue_ += admitted; }

 private:
  Amounts idle_;
  Amounts inqueue_;
};

}  // namespace

std::unique_ptr<Plugin> make_overcommit(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Overcommit>(config, snapshot);
}

}  // namespace muster::engine::volcano
