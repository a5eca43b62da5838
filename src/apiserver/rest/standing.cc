#include "apiserver/rest/standing.h"

#include <algorithm>

#include "apiserver/auth/auth.h"
#include "apiserver/auth/impersonation.h"
#include "base/strings.h"

namespace muster::apiserver {
namespace {

/// After a change, so that a burst of them is looked at once.
constexpr Duration kAfterChange = std::chrono::seconds(1);
constexpr Duration kEvery = std::chrono::minutes(1);
/// Streams in one turn of the loop: about a millisecond.
constexpr int kTurn = 64;

}  // namespace

Standing::Open::Open(Standing& standing,
                     const net::Request& request,
                     std::vector<Attributes> needed,
                     net::EndingWriter& writer)
    : standing_(standing), id_(standing.next_id_++), needed_(std::move(needed)), writer_(writer) {
  credential_.peer = request.peer;
  for (const auto& [name, value] : request.headers.fields()) {
    const std::string lower = to_lower(name);
    if (lower == "authorization" || lower.starts_with("impersonate-"))
      credential_.headers.add(name, value);
  }
  // A component of this process that acts as itself may always.
  if (credential_.peer.trusted_user && credential_.headers.fields().empty()) return;
  standing_.open_.emplace(id_, this);
  standing_.look_in(kEvery);
}

Standing::Open::~Open() {
  standing_.open_.erase(id_);
  if (standing_.open_.empty()) standing_.timer_.reset();
}

Standing::Standing(Core& core) : core_(core) {
  for (const std::string_view storage : {std::string_view("serviceaccounts"),
                                         std::string_view("secrets"),
                                         kube::collections::kRoles,
                                         kube::collections::kRoleBindings,
                                         kube::collections::kClusterRoles,
                                         kube::collections::kClusterRoleBindings})
    decisive_.push_back(&core.image.collection(storage));
}

void Standing::observe(const Collection& collection) {
  if (open_.empty()) return;
  if (std::find(decisive_.begin(), decisive_.end(), &collection) != decisive_.end())
    look_in(kAfterChange);
}

void Standing::look_in(Duration delay) {
  if (open_.empty()) return;
  const Duration due = core_.env.monotonic() + delay;
  if (timer_ && due_ <= due) return;
  due_ = due;
  timer_ = core_.env.after(delay, [this] { look(0); });
}

bool Standing::holds(const Open& open) const {
  auto user = core_.authenticator->authenticate(open.credential_, core_.env.now());
  if (!user) return false;
  const auto acting = impersonated(core_, open.credential_, std::move(*user));
  return acting &&
         std::all_of(open.needed_.begin(), open.needed_.end(), [&](const Attributes& each) {
           return core_.authorizer->allowed(*acting, each);
         });
}

void Standing::look(std::uint64_t from) {
  timer_.reset();
  int left = kTurn;
  auto at = open_.lower_bound(from);
  for (; at != open_.end() && left > 0; --left) {
    // Ending it may close it at once, and with it its place here.
    const auto [id, open] = *at++;
    if (!holds(*open)) open->writer_.end();
    at = open_.upper_bound(id);
  }
  if (open_.empty()) return;
  if (at == open_.end()) {
    look_in(kEvery);
    return;
  }
  due_ = core_.env.monotonic();
  timer_ = core_.env.after(Duration(1000), [this, next = at->first] { look(next); });
}

}  // namespace muster::apiserver
