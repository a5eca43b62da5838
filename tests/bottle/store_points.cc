/// The store on a disk that loses power, at every operation of its life; what had reached the disk by
/// then is drawn at random. After each crash the store is opened again, and
///   - every write that was acknowledged is there, and no newer one that nobody asked for,
///   - every value is whole, and history and records agree,
///   - no revision that was ever handed out is handed out again,
///   - it takes writes.
///
///   store_points [--points N] [--seed S]   that many crash points, from this seed on (default 2000, 1)
///   store_points --replay S POINT          one of them
///   store_points --break                   a disk whose syncs do nothing must be detected
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "disk.h"
#include "sim_env.h"
#include "store/store.h"

namespace {

using namespace muster;
using namespace muster::bottle;
using store::Revision;

constexpr int kSteps = 20;
constexpr std::uint64_t kKeys = 12;

std::string value_of(const std::string& key, Revision revision) {
  Random random(revision);
  return fmt::format("{} {} {}",
                     key,
                     revision,
                     std::string(random.below(9000), static_cast<char>('a' + revision % 26)));
}

struct Asked {
  std::string key;
  bool deleted = false;
};

/// What a client knows of the store.
struct Known {
  std::map<Revision, Asked> asked;               // all that was ever handed to it
  std::map<std::string, Revision> acknowledged;  // the newest for each key
  Revision highest = 0;                          // that was handed out
  std::size_t refused = 0;
};

/// One process that writes.
class Process {
 public:
  Process(SimWorld& world, Disk& disk, Known& known) : env_(world), known_(known) {
    auto opened = store::open(env_, "/store.db", {.vfs = disk.vfs(), .own_thread = false});
    if (opened)
      store_ = std::move(*opened);
    else
      error_ = opened.error().message;
  }

  [[nodiscard]] const std::string& error() const { return error_; }
  store::Store& store() { return *store_; }

  void write(const std::string& key, bool deleted) {
    const Revision revision = store_->next_revision();
    known_.asked[revision] = {key, deleted};
    known_.highest = std::max(known_.highest, revision);
    store_->write(key,
                  std::make_shared<const std::string>(value_of(key, revision)),
                  deleted,
                  [this, key, revision](Result<void> done) {
                    if (done)
                      known_.acknowledged[key] = revision;
                    else
                      ++known_.refused;
                  });
  }

  ~Process() { crash(); }
  void crash() {
    env_.crash();
    store_.reset();
    env_.world().clear();
  }

 private:
  SimEnv env_;
  Known& known_;
  std::unique_ptr<store::Store> store_;
  std::string error_;
};

/// A minute of work: writes alone and many at once, deletions, compaction.
void work(SimWorld& world, Disk& disk, Process& process, std::uint64_t seed, int steps) {
  Random random(seed);
  for (int i = 0; i < steps && !disk.stopped(); ++i) {
    const std::uint64_t many = random.chance(20) ? 30 : 1 + random.below(3);
    for (std::uint64_t k = 0; k < many; ++k)
      process.write(fmt::format("/k/{}", random.below(kKeys)), random.chance(20));
    if (random.chance(15)) process.store().compact(process.store().revision() / 2);
    world.run_until(world.now() + std::chrono::milliseconds(1), [&] { return disk.stopped(); });
  }
}

/// Empty: all is as promised.
std::string check(Process& process, const Known& known) {
  std::map<std::string, Revision> there;
  std::string wrong;
  const auto loaded = process.store().load([&](store::Record record) {
    there[record.key] = record.revision;
    if (*record.value != value_of(record.key, record.revision))
      wrong = fmt::format("{} at revision {} is not what was written", record.key, record.revision);
    if (!known.asked.contains(record.revision) ||
        known.asked.at(record.revision).key != record.key ||
        known.asked.at(record.revision).deleted)
      wrong = fmt::format("{} at revision {} was never written", record.key, record.revision);
  });
  if (!loaded) return "it cannot be read: " + loaded.error().message;
  if (!wrong.empty()) return wrong;
  for (const auto& [key, revision] : known.acknowledged) {
    const auto found = there.find(key);
    if (found == there.end() && !known.asked.at(revision).deleted) {
      // Unless a later deletion that nobody was told of went through.
      const bool deleted =
          std::any_of(known.asked.upper_bound(revision), known.asked.end(), [&](const auto& each) {
            return each.second.key == key && each.second.deleted;
          });
      if (!deleted) return fmt::format("{}, acknowledged at revision {}, is lost", key, revision);
    }
    if (found != there.end() && found->second < revision)
      return fmt::format("{} is at revision {}, acknowledged was {}", key, found->second, revision);
  }
  if (process.store().next_revision() <= known.highest)
    return fmt::format("revision {} is handed out again", process.store().next_revision());
  const auto changes = process.store().changes_after(process.store().compacted(), 1'000'000);
  if (!changes) return "its history cannot be read: " + changes.error().message;
  std::map<std::string, std::pair<Revision, bool>> newest;
  for (const store::Change& change : *changes)
    newest[change.key] = {change.revision, change.deleted};
  for (const auto& [key, last] : newest) {
    const auto found = there.find(key);
    const bool agrees =
        last.second ? found == there.end() : found != there.end() && found->second == last.first;
    if (!agrees) return fmt::format("history and record of {} disagree", key);
  }
  return "";
}

/// `point` 0: to the end. Returns what is wrong; `operations`: how long a life is.
std::string live(std::uint64_t seed, std::uint64_t point, bool lying, std::uint64_t* operations) {
  Disk disk(seed ^ (point * 0x9e3779b97f4a7c15ULL));
  SimWorld world(seed);
  Known known;
  if (lying) disk.break_syncs();
  if (point > 0) disk.stop_at(point);
  Process process(world, disk, known);
  if (process.error().empty()) work(world, disk, process, seed, kSteps);
  if (operations != nullptr) *operations = disk.operations();
  process.crash();
  Random random(seed + point);
  random.chance(80) ? disk.lose_power() : disk.lose_process();
  Process next(world, disk, known);
  if (!next.error().empty()) return "it cannot be opened again: " + next.error();
  auto wrong = check(next, known);
  if (!wrong.empty()) return wrong;
  const std::size_t refused = known.refused;
  work(world, disk, next, seed + 1, 5);
  if (known.refused != refused) return "it does not take writes afterwards";
  return check(next, known);
}

int fail_with(std::uint64_t seed, std::uint64_t point, const std::string& wrong) {
  fmt::print("seed {}, operation {}: {}\n  again: store_points --replay {} {}\n",
             seed,
             point,
             wrong,
             seed,
             point);
  return 1;
}

int run_points(std::uint64_t points, std::uint64_t seed) {
  std::uint64_t done = 0, lives = 0;
  for (; done < points; ++seed, ++lives) {
    std::uint64_t operations = 0;
    auto wrong = live(seed, 0, false, &operations);
    if (!wrong.empty()) return fail_with(seed, 0, wrong);
    // Each fifth operation of a life, another fifth in the next.
    for (std::uint64_t point = 1 + seed % 5; point <= operations && done < points;
         point += 5, ++done) {
      wrong = live(seed, point, false, nullptr);
      if (!wrong.empty()) return fail_with(seed, point, wrong);
    }
  }
  fmt::print(
      "{} crash points of {} lives: nothing acknowledged lost\n1 passed, 0 failed, 0 skipped\n",
      done,
      lives);
  return 0;
}

/// The checkers see a disk that lies.
int run_broken() {
  for (std::uint64_t point = 20; point < 400; point += 10) {
    const auto wrong = live(1, point, true, nullptr);
    if (wrong.empty()) continue;
    fmt::print("found out at operation {}: {}\n1 passed, 0 failed, 0 skipped\n", point, wrong);
    return 0;
  }
  fmt::print("a disk whose syncs do nothing was not found out\n0 passed, 1 failed, 0 skipped\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  // What the store says about crashes is no news here.
  if (std::freopen("/dev/null", "w", stderr) == nullptr) return 2;
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  std::uint64_t points = 2000, seed = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto number = [&] {
      return i + 1 < words.size() ? std::strtoull(words[++i].data(), nullptr, 10) : 0;
    };
    if (words[i] == "--break") return run_broken();
    if (words[i] == "--points") points = number();
    if (words[i] == "--seed") seed = number();
    if (words[i] == "--replay") {
      seed = number();
      const auto wrong = live(seed, number(), false, nullptr);
      fmt::print("{}\n", wrong.empty() ? "nothing is wrong" : wrong);
      return wrong.empty() ? 0 : 1;
    }
  }
  return run_points(points, seed);
}
