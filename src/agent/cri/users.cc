#include "agent/cri/users.h"

#include <functional>

#include "agent/files.h"
#include "agent/process/user_range.h"

namespace muster::agent::cri {
namespace {

using image::MessageField;
using image::MessageWriter;
using image::read_message;
using process::kRanges;
using process::kRangesFrom;
using process::kRangeSize;
using process::kRangesOfRuntime;

/// Those of the process runtime come first.
std::uint32_t first_of(std::uint32_t slot) { return kRangesFrom + kRangeSize * slot; }

}  // namespace

MessageWriter id_mapping(std::uint32_t first) {
  MessageWriter out;
  out.number(1, first).number(3, kRangeSize);
  return out;
}

MessageWriter user_namespace(std::uint32_t first) {
  MessageWriter out;  // mode POD is nought, which is not written
  out.message(2, id_mapping(first)).message(3, id_mapping(first));
  return out;
}

std::optional<std::uint32_t> read_user_namespace(std::string_view message) {
  std::optional<std::uint32_t> out;
  const bool whole = read_message(message, [&out](const MessageField& field) {
    if (field.number != 2 || !field.is_bytes) return;
    (void)read_message(field.bytes, [&out](const MessageField& part) {
      if (part.number == 1) out = static_cast<std::uint32_t>(part.value);
    });
  });
  return whole ? out : std::nullopt;
}

Result<bool> read_maps_users(std::string_view status_answer, const std::string& handler) {
  bool maps = false, good = true;
  const auto fields = [&good](std::string_view bytes, const auto& each) {
    const bool whole = read_message(bytes, each);
    good = good && whole;
  };
  fields(status_answer, [&](const MessageField& field) {
    if (field.number != 3 || !field.is_bytes) return;  // a RuntimeHandler
    std::string name;
    bool can = false;
    fields(field.bytes, [&](const MessageField& part) {
      if (part.number == 1) name = std::string(part.bytes);
      if (part.number != 2 || !part.is_bytes) return;
      fields(part.bytes, [&can](const MessageField& feature) {
        if (feature.number == 2) can = feature.value != 0;
      });
    });
    if (name == handler) maps = can;
  });
  if (!good)
    return fail(Code::kInternal, "the answer of the container runtime is not a StatusResponse");
  return maps;
}

UserRanges::UserRanges(const std::string& agent_directory) {
  constexpr std::uint32_t kLast = kRanges + kRangesOfRuntime - 1;
  const auto begin = std::hash<std::string>{}(agent_directory) % kRangesOfRuntime;
  slots_ = std::make_shared<process::AddressPool>(
      kRanges, kLast, kRanges + static_cast<std::uint32_t>(begin));
  auto taken = process::ranges_in(read_file("/etc/subuid"));
  const auto groups = process::ranges_in(read_file("/etc/subgid"));
  taken.insert(taken.end(), groups.begin(), groups.end());
  for (auto slot = kRanges; slot <= kLast; ++slot) {
    if (process::overlaps(first_of(slot), taken)) slots_->reserve(slot);
  }
}

UserRange UserRanges::take() {
  const auto slot = slots_->take();
  return slot ? lend(*slot) : nullptr;
}

UserRange UserRanges::hold(std::uint32_t first) {
  const auto slot = (first - kRangesFrom) / kRangeSize;
  slots_->reserve(slot);
  return lend(slot);
}

UserRange UserRanges::lend(std::uint32_t slot) {
  return {new std::uint32_t(first_of(slot)), [slots = slots_, slot](const std::uint32_t* first) {
            slots->give_back(slot);
            delete first;
          }};
}

}  // namespace muster::agent::cri
