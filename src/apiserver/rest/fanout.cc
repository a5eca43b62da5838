#include "apiserver/rest/fanout.h"

#include <algorithm>

namespace muster::apiserver {
namespace {

/// Fewer are sent sooner by the loop alone than workers wake up.
constexpr std::size_t kSpreadFrom = 32;
/// Sent by one thread in one go. A connection that waited for news is in no cache; those of a group
/// are fetched together.
constexpr std::size_t kGroup = 8;
/// What is kept between sendings.
constexpr std::size_t kRoomMax = 1024 * 1024;

}  // namespace

void Fanout::Target::send(std::shared_ptr<std::string>& room) {
  if (lines_.size() == 1) {
    result_ = writer_.write_now(lines_.front());
    return;
  }
  if (!room || room.use_count() > 1) room = std::make_shared<std::string>();
  room->clear();
  room->reserve(line_bytes_);
  for (const Bytes& line : lines_) *room += *line;
  result_ = writer_.write_now(room);
}

void Fanout::add(Target& target) {
  if (target.listed_) return;
  target.listed_ = true;
  targets_.push_back(&target);
  if (posted_) return;
  posted_ = true;
  env_.post([this, alive = alive_] {
    if (*alive) flush();
  });
}

void Fanout::remove(Target& target) {
  if (!target.listed_) return;
  target.listed_ = false;
  std::erase(targets_, &target);
}

void Fanout::flush() {
  posted_ = false;
  auto targets = std::move(targets_);
  targets_.clear();
  const auto aside =
      std::stable_partition(targets.begin(), targets.end(), [](const Target* target) {
        return !target->writer_.writes_aside();
      });
  for (auto it = targets.begin(); it != aside; ++it) {
    std::shared_ptr<std::string> room;  // these writers keep what they are given
    (*it)->send(room);
  }
  const auto count = static_cast<std::size_t>(targets.end() - aside);
  const auto send = [&](std::size_t group, std::shared_ptr<std::string>& room) {
    const auto from = aside + static_cast<std::ptrdiff_t>(group * kGroup);
    const auto upto = aside + static_cast<std::ptrdiff_t>(std::min(count, (group + 1) * kGroup));
    for (auto it = from; it != upto; ++it)
      (void)(*it)->writer_.writes_aside();  // asks for their memory
    for (auto it = from; it != upto; ++it) (*it)->send(room);
  };
  const std::size_t groups = (count + kGroup - 1) / kGroup;
  if (count < kSpreadFrom) {
    for (std::size_t i = 0; i < groups; ++i) send(i, room_);
  } else {
    env_.spread(groups, [&](std::size_t group) {
      std::shared_ptr<std::string> room;
      send(group, room);
    });
  }
  if (room_ && room_->capacity() > kRoomMax) room_.reset();
  for (Target* target : targets) {
    target->listed_ = false;
    if (target->result_ != net::ResponseWriter::Now::kBusy) {
      target->lines_.clear();
      target->line_bytes_ = 0;
    }
    target->on_sent(target->result_);
  }
}

}  // namespace muster::apiserver
