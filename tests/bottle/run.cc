#include "run.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "users.h"

namespace muster::bottle {
namespace {

constexpr std::size_t kStoryMax = 400;
constexpr int kRestsMax = 18;
constexpr auto kRest = std::chrono::minutes(10);

class Run {
 public:
  explicit Run(const RunOptions& options)
      : options_(options),
        disk_(options.seed),
        world_(options.seed),
        lots_(options.seed ^ 0x7e7a47),
        tenants_(has_tenants(options)),
        cells_(tenants_ && lots_.chance(60)),
        policies_(tenants_ && lots_.chance(50)),
        machine_(make_machine()),
        checks_(world_, kGpus, tenants_),
        cluster_(world_, disk_, cluster_options()),
        users_(world_, cluster_.place(), checks_, [this](std::string line) { tell(line); }) {}

  Outcome live() {
    if (options_.pods) {
      checks_.tell_pods([this](const std::string& line) { fmt::print("{} {}\n", clock(), line); });
    }
    if (options_.broken == "durable") disk_.break_syncs();
    cluster_.start();
    pass(std::chrono::seconds(10));
    users_.prepare();
    if (tenants_) {
      users_.have_tenants(cells_ ? kNodesOfCells : 0);
      pass(std::chrono::seconds(10));
    }
    begin_to_break();
    for (int i = 0; i < options_.steps && !checks_.violation(); ++i) {
      if (i == options_.steps / 2 && options_.broken == "bound once") checks_.forget_bindings();
      if (i == options_.steps / 2 && options_.broken == "revisions")
        checks_.see_revision(cluster_.serves() ? cluster_.server()->store->revision() + 100 : 0);
      step();
    }
    if (!checks_.violation()) heal();
    if (!checks_.violation()) come_to_rest();
    outcome_.violation = checks_.violation();
    outcome_.events = world_.events();
    outcome_.digest = world_.digest();
    outcome_.seen = checks_.seen();
    outcome_.actions = users_.actions();
    outcome_.virtual_s = world_.now().seconds() - 1'800'000'000;
    count_faults();
    if (machine_) {
      std::error_code ignored;
      std::filesystem::remove_all(machine_->directory(), ignored);
    }
    return std::move(outcome_);
  }

 private:
  static constexpr int kGpus = 4;
  static constexpr int kNodesOfCells = 4;

  /// Half of the seeds; the others draw what they have always drawn.
  static bool has_tenants(const RunOptions& options) {
    const std::uint64_t shape = options.seed % 8;
    const std::string& broken = options.broken;
    return shape == 1 || shape == 4 || shape == 5 || shape == 6 || broken == "limits kept" ||
           broken == "devices once" || broken == "order kept";
  }

  ClusterOptions cluster_options() {
    ClusterOptions made;
    Random shape(options_.seed ^ 0xabcdef);
    made.apart = shape.chance(60);
    made.elected = made.apart && shape.chance(50);
    elected_ = made.elected;
    made.gpus = kGpus;
    made.machine = machine_.get();
    if (cells_) made.nodes = kNodesOfCells;
    made.on_served = [this](SimEnv& env, ServerPart& server) {
      tell("API server: serves");
      return checks_.follow(env, server);
    };
    made.tell = [this](std::string line) { tell(std::move(line)); };
    return made;
  }

  [[nodiscard]] std::string clock() const {
    const std::int64_t us = world_.now().us - 1'800'000'000LL * 1'000'000;
    return fmt::format("{:5d}.{:06d}", us / 1'000'000, us % 1'000'000);
  }

  void tell(const std::string& line) {
    world_.mix(line);
    outcome_.story.push_back(clock() + " " + line);
    if (options_.tell) fmt::print("{}\n", outcome_.story.back());
    if (outcome_.story.size() > kStoryMax) outcome_.story.pop_front();
  }

  /// Time passes, or so many events.
  void pass(Duration most, std::uint64_t events_max = ~std::uint64_t{0}) {
    const Time end = world_.now() + most;
    std::uint64_t left = events_max;
    while (world_.now() < end && !checks_.violation()) {
      const Time until = std::min(end, next_minute_);
      const bool passed =
          world_.run_until(until, [&] { return checks_.violation().has_value() || --left == 0; });
      if (!passed) return;
      if (world_.now() >= next_minute_) minute();
    }
  }

  void minute() {
    next_minute_ = world_.now() + std::chrono::minutes(1);
    const std::size_t jobs = users_.take_jobs();
    if (cluster_.serves()) checks_.minute(cluster_.server()->store->revision(), jobs);
  }

  void step() {
    Random& random = world_.random();
    pass(std::chrono::milliseconds(random.below(4000)), 1 + random.below(5000));
    users_.act();
    meddle(random);
    if (tenants_) meddle_with_tenants();
    if (machine_) meddle_with_machine();
    if (random.chance(30)) start_what_is_down();
  }

  void meddle(Random& random) {
    const std::uint64_t what = random.below(1000);
    if (what < 60) {
      const Part part = any_part(random);
      const bool power = random.chance(50);
      if (cluster_.runs(part)) {
        ++outcome_.faults[power ? "power lost" : "process killed"];
        tell(fmt::format("{}: {}", name_of(part), power ? "loses power" : "is killed"));
        cluster_.crash(part, power);
      }
    } else if (what < 80) {
      full_ = !full_;
      ++outcome_.faults["disk full"];
      tell(full_ ? "disk: full" : "disk: has room");
      disk_.set_full(full_);
    } else if (what < 95) {
      tell("disk: the next sync fails");
      disk_.fail_next_sync();
    } else if (what < 130 && cluster_.serves()) {
      ++outcome_.faults["history forgotten"];
      tell("store: forgets its history");
      store::Store& store = *cluster_.server()->store;
      store.compact(store.revision());
    } else if (what < 180) {
      LinkFaults& faults = cluster_.place().faults;
      faults = random.chance(50) ? LinkFaults{}
                                 : LinkFaults{.refused = random.below(100),
                                              .lost_answer = random.below(100),
                                              .doubled = random.below(100),
                                              .late = random.below(50),
                                              .cut = random.below(50)};
      tell(fmt::format("network: {} refused, {} lost, {} doubled, {} late, {} cut of 1000",
                       faults.refused,
                       faults.lost_answer,
                       faults.doubled,
                       faults.late,
                       faults.cut));
    } else if (what < 220) {
      ++outcome_.faults["nodes changed"];
      users_.change_node(static_cast<int>(random.below(3)));
    } else if (what < 235) {
      const Part part = any_part(random);
      const auto offset = std::chrono::seconds(random.below(1200)) - std::chrono::minutes(10);
      ++outcome_.faults["clocks jumped"];
      tell(fmt::format("{}: its clock is off by {} s", name_of(part), offset.count()));
      cluster_.set_clock(part, offset);
    } else if (what < 255) {
      const Part part = any_part(random);
      const auto span = std::chrono::seconds(1 + random.below(random.chance(30) ? 90 : 8));
      if (!cluster_.runs(part)) return;
      ++outcome_.faults["processes stopped for a while"];
      tell(fmt::format("{}: is stopped for {} s", name_of(part), span.count()));
      cluster_.stop_for(part, span);
    }
  }

  void meddle_with_tenants() {
    const std::uint64_t what = lots_.below(1000);
    if (cells_ && what < 40) {
      users_.change_cells(lots_);
    } else if (policies_ && what < 90) {
      ++outcome_.faults["policies changed"];
      scheduler::Config policy;
      policy.engine.placement = static_cast<engine::PlacementRule>(lots_.below(3));
      policy.engine.preempt = lots_.chance(60);
      policy.engine.reclaim = lots_.chance(60);
      policy.engine.reservations = static_cast<std::int32_t>(lots_.below(4));
      policy.backfill = static_cast<engine::BackfillMode>(lots_.below(3));
      tell(
          fmt::format("policy: placement {}, {} preempt, {} reclaim, {} reservations, back-fill {}",
                      static_cast<int>(policy.engine.placement),
                      policy.engine.preempt ? "does" : "does not",
                      policy.engine.reclaim ? "does" : "does not",
                      policy.engine.reservations,
                      static_cast<int>(policy.backfill)));
      cluster_.set_policy(policy);
    } else if (what < 110) {
      users_.submit_filler(lots_);
    }
  }

  /// A quarter of the seeds: their pods have workers, and run on a machine.
  std::unique_ptr<Machine> make_machine() {
    if (options_.seed % 4 != 3 && options_.broken != "configured") return nullptr;
    const std::string folder = folder_of(::getpid());
    std::error_code error;
    std::filesystem::remove_all(folder, error);  // of a process that was ended long ago
    MUSTER_CHECK(std::filesystem::create_directories(folder, error), "a folder for files of pods");
    return std::make_unique<Machine>(world_, options_.seed ^ 0x6d616368, folder);
  }

  void meddle_with_machine() {
    const std::uint64_t what = machine_lots_.below(1000);
    if (what < 40) {
      const std::string broken = machine_->break_something();
      if (!broken.empty()) tell("machine: " + broken);
    } else if (what < 60) {
      machine_->set_registry(!machine_->registry());
      tell(machine_->registry() ? "registry: is back" : "registry: is gone");
    } else if (what < 80) {
      machine_->forget_images();
      tell("machine: its images are removed");
    } else if (what < 110) {
      const std::uint64_t trouble = machine_lots_.chance(50) ? 0 : machine_lots_.below(300);
      machine_->set_trouble(trouble);
      tell(fmt::format("machine: {} of 1000 starts and pulls fail", trouble));
    }
  }

  Part any_part(Random& random) const { return kParts[random.below(elected_ ? 4 : 3)]; }

  /// A store that has failed for good is what a supervisor restarts.
  void start_what_is_down() {
    if (cluster_.serves()) {
      const std::string trouble = cluster_.server()->store->trouble();
      if (trouble.find("until muster is started again") != std::string::npos) {
        tell("API server: is restarted, as its disk has failed");
        cluster_.crash(Part::kServer, false);
      }
    }
    cluster_.start();
  }

  void heal() {
    tell("all is mended");
    cluster_.place().faults = {};
    disk_.mend();
    if (machine_) {
      machine_->set_registry(true);
      machine_->set_trouble(0);
    }
    for (int i = 0; i < 40; ++i) {
      start_what_is_down();
      pass(std::chrono::seconds(5));
    }
    if (!cluster_.serves()) checks_.fail("serves", "the API server does not come back");
    users_.mend_all();
    if (policies_) cluster_.set_policy({});
    for (const Part part : kParts) cluster_.set_clock(part, Duration::zero());
  }

  void come_to_rest() {
    store::Revision before = 0, last = 0;
    for (int i = 0; i < kRestsMax && !checks_.violation(); ++i) {
      last = before;
      pass(kRest);
      const store::Revision now = written();
      // A renewal may be stored and not yet seen.
      if (std::exchange(before, now) + (elected_ ? 2 : 0) >= now) {
        look_at_rest();
        return;
      }
    }
    const store::Revision writes = written() - last;
    look_around([&] { return checks_.not_quiet(*cluster_.server()->direct, writes); });
  }

  store::Revision written() { return cluster_.server()->store->revision() - checks_.renewals(); }

  void look_at_rest() {
    tell("all is at rest");
    look_around([this] { return checks_.at_rest(*cluster_.server()->direct); });
  }

  void look_around(const std::function<Task<void>()>& at) {
    bool done = false;
    const auto look = [](const std::function<Task<void>()>& what, bool& finished) -> Task<void> {
      co_await what();
      finished = true;
    };
    SimEnv env(world_);
    env.spawn(look(at, done));
    world_.run_until(world_.now() + std::chrono::minutes(1), [&] { return done; });
    if (!done) checks_.fail("readable", "lists do not end");
  }

  void begin_to_break() {
    const std::string& what = options_.broken;
    if (what == "GPUs once") users_.take_gpus_twice();
    if (what == "gangs whole") users_.bind_in_part();
    if (what == "writes bounded") users_.write_without_end();
    if (what == "quiet") users_.write_now_and_then();
    if (what == "every job ends") users_.run_for_ever();
    if (what == "nothing leaked") users_.leave_an_orphan();
    if (what == "limits kept") checks_.promises().limit("queue default", 0, world_.now());
    if (what == "devices once") users_.share_a_device();
    if (what == "order kept") users_.pass_somebody();
    if (what == "configured") users_.want_what_is_not_there();
  }

  void count_faults() {
    const LinkCounts& link = cluster_.place().counts;
    const Disk::Counts& disk = disk_.counts();
    for (const auto& [name, count] : std::initializer_list<std::pair<const char*, std::uint64_t>>{
             {"requests refused", link.refused},
             {"answers lost", link.lost_answers},
             {"requests doubled", link.doubled},
             {"requests late", link.late},
             {"watches cut", link.cut},
             {"connections broken", link.broken},
             {"disk writes lost", disk.lost},
             {"disk writes torn", disk.torn},
             {"disk writes refused", disk.refused},
             {"syncs failed", disk.failed_syncs},
             {"jobs that crash", users_.counts().crashing},
             {"urgent jobs", users_.counts().urgent},
             {"suspended or resumed", users_.counts().suspended},
             {"resized", users_.counts().resized},
             {"queues changed", users_.counts().queues_changed},
             {"cells changed", users_.counts().cells_changed},
             {"jobs without end or right", users_.counts().fillers},
             {"limits looked at", checks_.promises().counts().limits},
             {"starts beside somebody who waits", checks_.promises().counts().starts}})
      outcome_.faults[name] += count;
    if (!machine_) return;
    const Machine::Counts& machine = machine_->counts();
    for (const auto& [name, count] : std::initializer_list<std::pair<const char*, std::uint64_t>>{
             {"images pulled", machine.pulls},
             {"images that could not be pulled", machine.pulls_failed},
             {"sandboxes refused", machine.sandboxes_refused},
             {"sandboxes lost", machine.sandboxes_lost},
             {"containers that did not start", machine.starts_failed},
             {"containers killed", machine.killed},
             {"pods that a new agent found running", machine.adopted}})
      outcome_.faults[name] += count;
  }

  const RunOptions options_;
  Outcome outcome_;
  Disk disk_;
  SimWorld world_;
  Random lots_;  // of what only some seeds have, so that the others stay as they were
  Random machine_lots_{options_.seed ^ 0x1057};
  const bool tenants_, cells_, policies_;
  const std::unique_ptr<Machine> machine_;  // null: pods are hollow
  Checks checks_;
  Cluster cluster_;
  Users users_;
  Time next_minute_ = Time::from_seconds(1'800'000'060);
  bool full_ = false;
  bool elected_ = false;
};

}  // namespace

Outcome run(const RunOptions& options) {
  // Never destroyed: what the simulated processes left behind refers to it.
  return (*new Run(options)).live();
}

std::string folder_of(std::int64_t process) {
  return (std::filesystem::temp_directory_path() / fmt::format("bottle-{}", process)).string();
}

const std::vector<std::string>& breakable() {
  static const std::vector<std::string> names = {"durable",
                                                 "revisions",
                                                 "bound once",
                                                 "GPUs once",
                                                 "gangs whole",
                                                 "writes bounded",
                                                 "quiet",
                                                 "every job ends",
                                                 "nothing leaked",
                                                 "limits kept",
                                                 "devices once",
                                                 "order kept",
                                                 "configured"};
  return names;
}

}  // namespace muster::bottle
