#include "portal/session/streams.h"

#include <vector>

namespace muster::portal {
namespace {

constexpr Duration kEvery = std::chrono::seconds(30);

}  // namespace

Streams::Open::Open(Streams& streams, User user, std::string session, net::EndingWriter& writer)
    : streams_(streams),
      id_(streams.next_id_++),
      user_(std::move(user)),
      session_(std::move(session)),
      writer_(writer) {
  streams_.open_.emplace(id_, this);
  streams_.look_later();
}

Streams::Open::~Open() { streams_.open_.erase(id_); }

template <typename Which>
void Streams::end_if(Which which) {
  // Ending one may close it at once, and with it its place here.
  for (auto at = open_.begin(); at != open_.end();) {
    const auto [id, open] = *at;
    if (which(*open)) open->writer_.end();
    at = open_.upper_bound(id);
  }
}

void Streams::end_session(const std::string& session) {
  end_if([&](const Open& open) { return open.session_ == session; });
}

void Streams::end_user(const std::string& user) {
  end_if([&](const Open& open) { return open.session_.empty() && open.user_.name == user; });
}

void Streams::look_later() {
  if (timer_ || open_.empty()) return;
  timer_ = env_.after(kEvery, [this] { env_.spawn(look()); });
}

Task<void> Streams::look() {
  std::vector<std::uint64_t> ids;
  for (const auto& [id, open] : open_) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    const auto before = open_.find(id);
    if (before == open_.end()) continue;
    const auto now = co_await recheck_(before->second->session_, before->second->user_);
    const auto after = open_.find(id);
    if (after == open_.end()) continue;
    const User& then = after->second->user_;
    if (!now || now->groups != then.groups || now->admin != then.admin)
      after->second->writer_.end();
  }
  timer_.reset();
  look_later();
}

}  // namespace muster::portal
