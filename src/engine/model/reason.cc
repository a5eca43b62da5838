#include "engine/model/reason.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/model/plan.h"

namespace muster::engine {

std::string_view reason_name(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "None";
    case Reason::kNotEnoughMembers:
      return "NotEnoughMembers";
    case Reason::kGated:
      return "Gated";
    case Reason::kGroupMissing:
      return "GroupMissing";
    case Reason::kParentMissing:
      return "ParentMissing";
    case Reason::kQueueMissing:
      return "QueueMissing";
    case Reason::kQueueNotOpen:
      return "QueueNotOpen";
    case Reason::kNotAdmitted:
      return "NotAdmitted";
    case Reason::kTenantOverLimit:
      return "TenantOverLimit";
    case Reason::kTenantOverDeserved:
      return "TenantOverDeserved";
    case Reason::kGuaranteedToOthers:
      return "GuaranteedToOthers";
    case Reason::kNoNodeFits:
      return "NoNodeFits";
    case Reason::kNeverFits:
      return "NeverFits";
    case Reason::kTopology:
      return "Topology";
    case Reason::kBehindOthers:
      return "BehindOthers";
    case Reason::kHeldForReservation:
      return "HeldForReservation";
    case Reason::kWaitingForVictims:
      return "WaitingForVictims";
    case Reason::kInvalidGroup:
      return "InvalidGroup";
  }
  return "None";
}

std::string_view phase_name(GroupPhase phase) {
  switch (phase) {
    case GroupPhase::kPending:
      return "Pending";
    case GroupPhase::kInqueue:
      return "Inqueue";
    case GroupPhase::kRunning:
      return "Running";
    case GroupPhase::kUnknown:
      return "Unknown";
    case GroupPhase::kCompleted:
      return "Completed";
  }
  return "Pending";
}

bool Refusal::same_story(const Refusal& other) const {
  return reason == other.reason && nodes_total == other.nodes_total && by_cause == other.by_cause &&
         shortages == other.shortages && queue == other.queue &&
         members_wanted == other.members_wanted && members_found == other.members_found &&
         subject == other.subject && preemption == other.preemption && words == other.words;
}

std::string none_available(std::int32_t nodes_total, const std::vector<NodeCount>& by_cause) {
  std::vector<std::string> parts;
  for (const auto& c : by_cause) parts.push_back(fmt::format("{} {}", c.nodes, c.cause));
  std::sort(parts.begin(), parts.end());
  std::string text = fmt::format("0/{} nodes are available", nodes_total);
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? ": " : ", ") + parts[i];
  return text + ".";
}

std::string node_message(const Refusal& refusal) {
  if (refusal.nodes_total == 0) return "no nodes available to schedule pods";
  std::string text = none_available(refusal.nodes_total, refusal.by_cause);
  if (!refusal.preemption.empty()) text += " preemption: " + refusal.preemption;
  return text;
}

namespace {

/// Keys of groups and queues may start with a kind and a colon, which tells alike names apart;
/// people know the name.
std::string_view shown(std::string_view key) {
  const auto colon = key.rfind(':');
  return colon == std::string_view::npos ? key : key.substr(colon + 1);
}

std::string amount(const std::string& resource, std::int64_t value) {
  if (resource == "cpu")
    return value % 1000 == 0 ? fmt::format("{}", value / 1000) : fmt::format("{}m", value);
  if (resource == "memory" && value % (1LL << 30) == 0) return fmt::format("{}Gi", value >> 30);
  if (resource == "memory" && value % (1LL << 20) == 0) return fmt::format("{}Mi", value >> 20);
  return fmt::format("{}", value);
}

std::string shortages_text(const Refusal& r) {
  std::string text;
  for (const auto& s : r.shortages) {
    if (!text.empty()) text += ", ";
    if (s.limit != 0) {
      text += fmt::format("{}: wants {}, {} left of {}",
                          s.resource,
                          amount(s.resource, s.wanted),
                          amount(s.resource, s.available),
                          amount(s.resource, s.limit));
    } else if (r.reason == Reason::kNeverFits) {
      text += fmt::format("{}: a member wants {}, the largest node has {}",
                          s.resource,
                          amount(s.resource, s.wanted),
                          amount(s.resource, s.available));
    } else {
      text += fmt::format("{}: a member wants {}, most free on one node {}",
                          s.resource,
                          amount(s.resource, s.wanted),
                          amount(s.resource, s.available));
    }
  }
  return text;
}

std::string first_sentence(const Refusal& r) {
  switch (r.reason) {
    case Reason::kNone:
      return "not waiting";
    case Reason::kNotEnoughMembers:
      return fmt::format("waits for members{}: {} of {} exist",
                         r.subject.empty() ? "" : fmt::format(" of role \"{}\"", r.subject),
                         r.members_found,
                         r.members_wanted);
    case Reason::kGated:
      if (r.subject == "suspended") return "suspended by its owner";
      if (r.members_wanted == 0) return "held by a scheduling gate or suspended";
      return fmt::format("{} of {} waiting members are held by a scheduling gate",
                         r.members_found,
                         r.members_wanted);
    case Reason::kGroupMissing:
      return fmt::format("its pod group \"{}\" does not exist", shown(r.subject));
    case Reason::kParentMissing:
      return fmt::format("the group \"{}\" above its group does not exist", shown(r.subject));
    case Reason::kQueueMissing:
      return fmt::format("queue \"{}\" does not exist", shown(r.queue));
    case Reason::kQueueNotOpen:
      return fmt::format("queue \"{}\" is {}: it takes no new work",
                         shown(r.queue),
                         r.subject.empty() ? "not open" : r.subject);
    case Reason::kNotAdmitted:
      return fmt::format("not admitted to queue \"{}\"; {}", shown(r.queue), shortages_text(r));
    case Reason::kTenantOverLimit:
      return fmt::format("queue \"{}\" is at its limit; {}", shown(r.queue), shortages_text(r));
    case Reason::kTenantOverDeserved:
      return fmt::format(
          "queue \"{}\" has used up its share; {}", shown(r.queue), shortages_text(r));
    case Reason::kGuaranteedToOthers:
      return fmt::format("what is free is guaranteed to other queues; {}", shortages_text(r));
    case Reason::kNoNodeFits:
      return fmt::format("{} of {} members can be placed; {}{}{}",
                         r.members_found,
                         r.members_wanted,
                         node_message(r),
                         r.shortages.empty() ? "" : " ",
                         shortages_text(r));
    case Reason::kNeverFits:
      return fmt::format("no node could hold a member even when empty; {}", shortages_text(r));
    case Reason::kTopology:
      return fmt::format("no single topology domain holds all members: the best{} takes {} of {}",
                         r.subject.empty() ? "" : fmt::format(", \"{}\",", r.subject),
                         r.members_found,
                         r.members_wanted);
    case Reason::kBehindOthers:
      return fmt::format("queue \"{}\" is first in, first out", shown(r.queue));
    case Reason::kHeldForReservation:
      return fmt::format(
          "room is free, but starting now would delay {}{}",
          r.subject.empty() ? "those ahead" : fmt::format("\"{}\"", shown(r.subject)),
          r.until ? ", expected to start at " + format_time(*r.until) : "");
    case Reason::kWaitingForVictims:
      if (r.members_found == 0) return "its room is held; waiting for evicted pods to leave";
      return fmt::format("its room is held; waiting for {} evicted pod{} to leave (\"{}\"{})",
                         r.members_found,
                         r.members_found == 1 ? "" : "s",
                         r.subject,
                         r.until ? ", at the latest at " + format_time(*r.until) : "");
    case Reason::kInvalidGroup:
      return "members and group disagree";
  }
  return "";
}

}  // namespace

std::string describe(const Refusal& refusal) {
  std::string text = refusal.words.empty() ? first_sentence(refusal) : refusal.words;
  if (refusal.ahead_count > 0) {
    text += fmt::format("; {}{} ahead",
                        refusal.ahead_count,
                        refusal.ahead_count >= Refusal::kAheadCounted ? " or more" : "");
    if (!refusal.ahead.empty())
      text += fmt::format(" (first \"{}\")", shown(refusal.ahead.front()));
  }
  if (refusal.expected_start)
    text += "; expected to start at " + format_time(*refusal.expected_start);
  return text;
}

}  // namespace muster::engine
