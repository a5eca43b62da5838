#include "cluster.h"

#include <fmt/core.h>

#include "kube/meta.h"
#include "kube/names.h"

namespace muster::bottle {
namespace {

namespace r = client::resources;

}  // namespace

json::Value make_node(int number, int gpus) {
  const json::Value room = {{"cpu", "64"},
                            {"memory", "512Gi"},
                            {"pods", "110"},
                            {"nvidia.com/gpu", std::to_string(gpus)}};
  return {{"apiVersion", "v1"},
          {"kind", "Node"},
          {"metadata",
           {{"name", fmt::format("node-{}", number)},
            {"annotations", {{kube::names::kHollow, "true"}}}}},
          {"status",
           {{"capacity", room},
            {"allocatable", room},
            {"conditions",
             json::Array{{{"type", "Ready"}, {"status", "True"}, {"reason", "Hollow"}}}}}}};
}

std::string_view name_of(Part part) {
  constexpr std::string_view kNames[] = {
      "API server", "scheduler and controllers", "agent", "the other scheduler"};
  return kNames[static_cast<std::size_t>(part)];
}

Cluster::Cluster(SimWorld& world, Disk& disk, ClusterOptions options)
    : world_(world), disk_(disk), options_(std::move(options)) {}

Cluster::Process* Cluster::begin(Part part) {
  static std::vector<std::unique_ptr<Process>> all;  // dead ones, too
  all.push_back(std::make_unique<Process>(world_));
  Process* made = all.back().get();
  if (options_.apart)
    parts_[index(part)] = made;
  else
    std::fill(std::begin(parts_), std::end(parts_), made);
  return made;
}

void Cluster::start() {
  if (!options_.apart) {
    if (!runs(Part::kServer)) {
      Process* made = begin(Part::kServer);
      made->env.spawn(run_all(*made));
    }
    return;
  }
  for (const Part part : kParts) {
    if (runs(part) || (part == Part::kStandby && !options_.elected)) continue;
    Process* made = begin(part);
    if (options_.elected && (part == Part::kWork || part == Part::kStandby)) {
      stand_by(*made);
      continue;
    }
    made->env.spawn(part == Part::kServer ? run_server(*made)
                    : part == Part::kWork ? run_work(*made)
                                          : run_agent(*made));
  }
}

void Cluster::crash(Part part, bool power) {
  if (!runs(part)) return;
  Process* dead = parts_[index(part)];
  dead->env.crash();
  for (Process*& each : parts_) {
    if (each == dead) each = nullptr;
  }
  const bool of_machine = part == Part::kAgent || !options_.apart;
  if (power && of_machine && options_.machine != nullptr) options_.machine->lose_power();
  if (options_.apart && part != Part::kServer) return;
  place_.reset();
  power ? disk_.lose_power() : disk_.lose_process();
}

void Cluster::give_up(Process& process, const std::string& why) {
  options_.tell("a part ends: " + why);
  for (const Part part : kParts) {
    if (parts_[index(part)] == &process) {
      crash(part, false);
      return;
    }
  }
}

void Cluster::set_policy(const scheduler::Config& policy) {
  options_.policy = policy;
  for (Process* process : parts_) {
    const auto* service = process != nullptr ? process->work.scheduler.get() : nullptr;
    if (service != nullptr && service->scheduler() != nullptr)
      (void)service->scheduler()->reconfigure(policy.engine, policy.backfill);
  }
}

std::unique_ptr<client::Client> Cluster::client_for(Process& process, const std::string& user) {
  if (!options_.apart) return process.server.server->make_client(user);
  return make_link(process.env, place_, user);
}

Task<void> Cluster::run_server(Process& process) {
  ServerPart& part = process.server;
  auto opened = store::open(process.env, "/muster.db", {.vfs = disk_.vfs(), .own_thread = false});
  if (!opened) {
    give_up(process, opened.error().message);
    co_return;
  }
  part.store = std::move(*opened);
  part.server = std::make_unique<apiserver::Server>(
      process.env, *part.store, apiserver::ServerOptions{.ca_pem = "none"});
  const auto started = co_await part.server->start();
  if (!started) {
    give_up(process, started.error().message);
    co_return;
  }
  part.direct = part.server->make_client("system:muster");
  co_await make_nodes(*part.direct);
  co_await options_.on_served(process.env, part);
  place_.set(process.env, *part.server);
}

Task<void> Cluster::make_nodes(client::Client& client) {
  for (int i = 0; i < options_.nodes; ++i)
    (void)co_await client.create(r::kNodes, "", make_node(i, options_.gpus));
}

Task<void> Cluster::run_work(Process& process) {
  WorkPart& part = process.work;
  if (!part.watching) part.watching = client_for(process, "system:muster");
  part.informers = std::make_unique<client::Informers>(process.env, *part.watching);
  scheduler::ServiceOptions scheduling;
  scheduling.scheduling.name = "default-scheduler";
  scheduling.scheduling.engine = options_.policy.engine;
  scheduling.scheduling.backfill = options_.policy.backfill;
  scheduling.keep_cells = true;
  if (part.elector) scheduling.scheduling.leads = [&part] { return part.elector->leading(); };
  part.scheduling = client_for(process, "system:muster-scheduler");
  part.scheduler = std::make_unique<scheduler::Service>(
      process.env, *part.scheduling, *part.informers, std::move(scheduling));
  const auto started = co_await part.scheduler->start();
  if (!started) {
    give_up(process, started.error().message);
    co_return;
  }
  controllers::Options options;
  controllers::set_gang_scheduler(options.settings, "volcano");
  options.settings.force_delete_after = std::chrono::minutes(1);
  part.controlling = client_for(process, "system:muster-controllers");
  part.controllers = std::make_unique<controllers::Controllers>(
      process.env, *part.controlling, *part.informers, std::move(options));
  co_await part.controllers->start();
}

void Cluster::stand_by(Process& process) {
  WorkPart& part = process.work;
  part.watching = client_for(process, "system:muster");
  client::LeaderOptions election;
  election.identity = fmt::format("replica-{}", ++replicas_);
  election.on_started = [this, &process, name = election.identity] {
    options_.tell(name + " leads");
    process.env.spawn(run_work(process));
  };
  election.on_stopped = [this, &process, name = election.identity] {
    options_.tell(name + " has lost its lease");
    // Before it is gone it does what it can, as a program that is being ended does.
    const auto lingers = Duration(static_cast<std::int64_t>(world_.random().below(2'000'000)));
    process.env.later(lingers, [this, &process] { give_up(process, "the lease was lost"); });
  };
  part.elector = client::make_leader_elector(process.env, *part.watching, std::move(election));
  part.elector->start();
}

Task<void> Cluster::run_agent(Process& process) {
  AgentPart& part = process.agent;
  part.client = client_for(process, "system:muster-agent");
  if (options_.machine != nullptr) {
    part.agent = std::make_unique<PodAgent>(process.env, *part.client, *options_.machine);
    co_await part.agent->start();
    co_return;
  }
  part.informers = std::make_unique<client::Informers>(process.env, *part.client);
  part.pods = std::make_unique<agent::HollowPods>(process.env, *part.client, "192.0.2.1");
  client::InformerHandlers handlers;
  handlers.on_change = [&part](const client::ObjectPtr& before, const client::ObjectPtr& after) {
    if (before && (!after || kube::uid_of(*before) != kube::uid_of(*after)))
      part.pods->removed(std::string(kube::uid_of(*before)));
    if (after && !json::string_at(*after, "spec", "nodeName").empty()) part.pods->update(after);
  };
  part.informers->get(r::kPods).add_handlers(std::move(handlers));
  part.informers->start_all();
  co_await part.informers->wait_synced();
}

Task<void> Cluster::run_all(Process& process) {
  co_await run_server(process);
  if (!process.env.alive() || !serves()) co_return;
  co_await run_work(process);
  if (!process.env.alive()) co_return;
  co_await run_agent(process);
}

}  // namespace muster::bottle
