#include "apiserver/rest/shares.h"

#include <algorithm>

namespace muster::apiserver {
namespace {

/// Others are expected for so long after they were seen.
constexpr Duration kSeveralFor = std::chrono::seconds(1);
/// What is let go before the loop looks at its sockets again.
constexpr Shares::Cost kRound = 20;
/// Of one user. More connections than a well-behaved client has; each waits with its request in memory.
constexpr std::size_t kWaitingMax = 1000;
/// Long answers that are made at a time, and those of one user that lie in memory: they are of any size.
constexpr int kMakingMax = 2, kUnsentMax = 2;
constexpr std::size_t kFlowsMax = 4096;
/// Writes of one user under way. A commit of so many takes less than a millisecond, and the server
/// still has enough of them to commit them together.
constexpr int kWritesMax = 8;

}  // namespace

Shares::Flow& Shares::flow_of(const std::string& user) {
  const auto found = flows_.find(user);
  if (found != flows_.end()) return found->second;
  // Those who have had no more than everybody else need not be remembered.
  if (flows_.size() >= kFlowsMax) {
    std::erase_if(flows_, [&](const auto& each) {
      const Flow& flow = each.second;
      return flow.waiting == 0 && flow.writes == 0 && flow.long_unsent == 0 && flow.finish <= now_;
    });
  }
  return flows_[user];
}

Shares::Tag Shares::tag(Flow& flow, Cost cost) {
  const Tag start = std::max(now_, flow.finish);
  flow.finish = start + cost;
  return start;
}

std::optional<Shares::Turn> Shares::goes_now(const std::string& user, Asked asked) {
  const Duration now = env_.monotonic();
  if (user != last_user_) {
    if (!last_user_.empty()) several_until_ = now + kSeveralFor;
    last_user_ = user;
  }
  if (!waiting_.empty()) return std::nullopt;
  Flow* const writer = asked.writes ? &flow_of(user) : nullptr;
  if (now < several_until_) {
    if (released_ >= kRound || (writer != nullptr && writer->writes >= kWritesMax))
      return std::nullopt;
    now_ = tag(flow_of(user), asked.cost);
    released_ += asked.cost;
    begin_round();
  }
  if (writer != nullptr) ++writer->writes;
  return Turn(*this, writer);
}

Task<std::optional<Shares::Turn>> Shares::wait(std::string user, Asked asked) {
  Flow& flow = flow_of(user);
  if (flow.waiting >= kWaitingMax) co_return std::nullopt;
  ++flow.waiting;
  const std::shared_ptr<Signal> turn = env_.make_signal();
  Waiter waiter{&flow, asked.cost, turn};
  if (asked.writes && flow.writes >= kWritesMax) {
    flow.held.push_back(std::move(waiter));
  } else {
    if (asked.writes) ++flow.writes;
    queue(std::move(waiter));
  }
  co_await turn->wait(Duration::zero());
  co_return Turn(*this, asked.writes ? &flow : nullptr);
}

void Shares::queue(Waiter waiter) {
  const Tag start = tag(*waiter.flow, waiter.cost);
  waiting_.emplace(std::pair(start, arrivals_++), std::move(waiter));
  begin_round();
}

void Shares::wrote(Flow& flow) {
  --flow.writes;
  if (flow.held.empty() || flow.writes >= kWritesMax) return;
  ++flow.writes;
  Waiter next = std::move(flow.held.front());
  flow.held.pop_front();
  queue(std::move(next));
}

std::size_t Shares::waiting() const {
  std::size_t count = 0;
  for (const auto& [user, flow] : flows_) count += flow.waiting;
  return count;
}

void Shares::charge(const std::string& user, Cost cost) {
  if (cost == 0 || env_.monotonic() >= several_until_) return;
  Flow& flow = flow_of(user);
  flow.finish = std::max(flow.finish, now_) + cost;
}

void Shares::begin_round() {
  if (round_) return;
  round_ = true;
  env_.post([this] { next_round(); });
}

void Shares::next_round() {
  round_ = false;
  released_ = 0;
  while (!waiting_.empty() && released_ < kRound) {
    auto first = waiting_.extract(waiting_.begin());
    now_ = first.key().first;
    Waiter& waiter = first.mapped();
    released_ += waiter.cost;
    --waiter.flow->waiting;
    waiter.turn->notify();
  }
  if (released_ > 0) begin_round();
}

Task<Shares::Long> Shares::begin_long(std::string user) {
  Flow& flow = flow_of(user);
  ++flow.waiting;
  const std::shared_ptr<Signal> turn = env_.make_signal();
  long_waiting_.emplace(std::pair(tag(flow, 0), arrivals_++), Waiter{&flow, 0, turn});
  let_long_go();
  co_await turn->wait(Duration::zero());
  co_return Long(*this, std::move(user));
}

void Shares::let_long_go() {
  for (auto place = long_waiting_.begin();
       place != long_waiting_.end() && long_making_ < kMakingMax;) {
    Flow& flow = *place->second.flow;
    if (flow.long_making > 0 || flow.long_unsent >= kUnsentMax) {
      ++place;
      continue;
    }
    ++flow.long_making;
    ++flow.long_unsent;
    --flow.waiting;
    ++long_making_;
    place->second.turn->notify();
    place = long_waiting_.erase(place);
  }
}

void Shares::Long::made() {
  if (std::exchange(made_, true)) return;
  --shares_->flow_of(user_).long_making;
  --shares_->long_making_;
  shares_->let_long_go();
}

Shares::Long::~Long() {
  if (shares_ == nullptr) return;
  --shares_->flow_of(user_).long_unsent;
  made();
  shares_->let_long_go();
}

}  // namespace muster::apiserver
