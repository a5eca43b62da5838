#include "main/portal_flags.h"

#include "main/scheduler_config.h"
#include "portal/portal.h"
#include "scheduler/translate.h"

namespace muster {
namespace {

portal::Amounts amounts_of(const engine::ResourceList& list) {
  portal::Amounts amounts;
  for (const engine::Amount& amount : list) {
    if (amount.name == "cpu") amounts.cpu_milli = amount.value;
    if (amount.name == "memory") amounts.memory = amount.value;
    if (amount.name.ends_with("/gpu")) amounts.gpus = static_cast<double>(amount.value);
  }
  return amounts;
}

portal::QueueFacts facts_of(const engine::QueueView& view) {
  portal::QueueFacts facts;
  facts.name = view.name;
  facts.parent = view.parent;
  facts.allocated = amounts_of(view.allocated);
  facts.requested = amounts_of(view.requested);
  facts.deserved = amounts_of(view.deserved);
  if (!view.real_capability.empty()) facts.capability = amounts_of(view.real_capability);
  facts.waiting = view.gangs_waiting;
  facts.running = view.gangs_running;
  return facts;
}

/// "volcano:ns/name" is ns/name to everybody else.
std::string plain_key(const std::string& key) {
  const auto colon = key.find(':');
  return colon == std::string::npos ? key : key.substr(colon + 1);
}

portal::WaitFacts facts_of(const engine::WaitView& view) {
  const engine::Refusal& refusal = view.refusal;
  portal::WaitFacts facts;
  facts.reason = engine::reason_name(refusal.reason);
  facts.text = engine::describe(refusal);
  facts.queue = refusal.queue.empty() ? view.queue : refusal.queue;
  facts.subject = refusal.subject;
  facts.preemption = refusal.preemption;
  facts.place = view.rank + 1;
  facts.nodes_total = refusal.nodes_total;
  for (const engine::NodeCount& cause : refusal.by_cause)
    facts.causes.push_back({cause.cause, cause.nodes});
  for (const engine::Shortage& shortage : refusal.shortages)
    facts.shortages.push_back(
        {shortage.resource, shortage.wanted, shortage.available, shortage.limit});
  for (const std::string& key : refusal.ahead) facts.ahead.push_back(plain_key(key));
  facts.ahead_count = refusal.ahead_count;
  if (refusal.expected_start) facts.start_ms = refusal.expected_start->us / 1000;
  if (refusal.until) facts.until_ms = refusal.until->us / 1000;
  return facts;
}

/// What the engine may call a group or pod "ns/name".
std::vector<std::string> engine_keys(const std::string& key) {
  using scheduler::GroupKind;
  const auto slash = key.find('/');
  const std::string ns = key.substr(0, slash), name = key.substr(slash + 1);
  std::vector<std::string> keys;
  for (const GroupKind kind :
       {GroupKind::kVolcano, GroupKind::kNative, GroupKind::kPlugins, GroupKind::kT9k})
    keys.push_back(scheduler::group_key(kind, ns, name));
  keys.push_back(key);
  return keys;
}

}  // namespace

std::vector<command::Flag> portal_flags(const char* by_default) {
  using command::Completes;
  using command::FlagType;
  return {
      {.name = "portal",
       .value = by_default,
       .help =
           "serve the web portal at this address, with TLS beyond this machine; the next free port if it is taken; none for no portal",
       .value_name = "ADDRESS:PORT"},
      {.name = "portal-plain-http",
       .type = FlagType::kBool,
       .value = "false",
       .help =
           "serve the portal without TLS to other machines too; anyone on the network can then read passwords"},
      {.name = "portal-host",
       .help =
           "names under which browsers reach the portal, besides this machine's (separated by commas)",
       .value_name = "LIST"},
      {.name = "portal-prefix",
       .help = "serve the portal below this path, e.g. /muster",
       .value_name = "PATH"},
      {.name = "portal-dir",
       .help =
           "serve the portal's files from this folder instead of those in the program, to work on them",
       .completes = Completes::kFiles,
       .value_name = "FOLDER"},
  };
}

Result<std::optional<portal::Listening>> portal_listening(const command::Values& values) {
  return portal::read_listening(values.text("portal"),
                                values.yes("portal-plain-http"),
                                values.text("portal-host"),
                                values.text("portal-prefix"),
                                values.text("portal-dir"));
}

void ask_scheduler(portal::Options& options, std::function<const scheduler::Scheduler*()> find) {
  options.why = [find](const std::string& key) -> std::optional<portal::WaitFacts> {
    const scheduler::Scheduler* running = find();
    if (running == nullptr) return std::nullopt;
    for (const std::string& one : engine_keys(key)) {
      if (const auto view = running->why(one); view) return facts_of(*view);
    }
    return std::nullopt;
  };
  options.nodes_of_cause = [find](const std::string& key, const std::string& cause) {
    const scheduler::Scheduler* running = find();
    std::vector<std::string> nodes;
    if (running == nullptr) return nodes;
    for (const std::string& one : engine_keys(key)) {
      nodes = running->engine().nodes_refused(one, cause);
      if (!nodes.empty()) break;
    }
    return nodes;
  };
  options.queues = [find] {
    std::vector<portal::QueueFacts> queues;
    const scheduler::Scheduler* scheduler = find();
    if (scheduler == nullptr) return queues;
    for (const engine::QueueView& view : scheduler->queues()) queues.push_back(facts_of(view));
    return queues;
  };
}

void edit_policy(portal::Options& options, const std::string& file, bool optional) {
  options.policy_file = file;
  options.policy_optional = optional;
  options.read_policy = [](const std::string& text) -> Result<portal::PolicyFacts> {
    auto config = parse_scheduler_config(text);
    if (!config) return fail(config.error());
    return portal::PolicyFacts{config->engine.policy == engine::PolicyKind::kVolcano,
                               std::move(config->without_effect)};
  };
}

void ask_answers(portal::Options& options, Answers& answers) {
  options.outlook = [&answers] { return answers.live().outlook(); };
  options.reservations = [&answers] {
    portal::ReservationBook book;
    book.version = answers.reservations_said();
    for (const engine::Reservation& one : answers.reservations())
      book.all.push_back({plain_key(one.holder), one.start.us / 1000, one.nodes, one.members});
    return book;
  };
}

}  // namespace muster
