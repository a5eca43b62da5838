/// Kills a process that writes to the store, at random moments, and checks after each death that
///   - every write that was acknowledged is there,
///   - nothing is there that was never written, and every value is whole,
///   - no revision that was ever handed out is handed out again.
///
///   store_crash [--rounds N] [--seed S]
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "base/random.h"
#include "base/strings.h"
#include "net/loop/loop.h"
#include "store/store.h"

namespace {

using namespace muster;
using store::Revision;

constexpr int kWriters = 6;
constexpr int kKeys = 40;

void fatal(const std::string& why) {
  fmt::print(stderr, "store_crash: {}\n", why);
  std::exit(1);
}

/// What a value of this revision must look like; length varies so that torn pages would show.
std::string value_of(const std::string& key, Revision revision) {
  Random random(revision);
  const auto length = random.below(6000);
  return fmt::format("{} {} {} {}",
                     key,
                     revision,
                     length,
                     std::string(length, static_cast<char>('a' + revision % 26)));
}

// ------------------------------------------- The child: writes and tells the parent through a pipe

/// One logical writer: as soon as its write is acknowledged it makes the next.
class Writer {
 public:
  Writer(store::Store& store, int out, std::uint64_t seed)
      : store_(store), out_(out), random_(seed) {}

  void next() {
    const auto key = fmt::format("/k/{}", random_.below(kKeys));
    const bool deleted = random_.chance(20);
    const auto revision = store_.next_revision();
    tell(fmt::format("H {}\n", revision));
    if (random_.chance(5)) store_.compact(store_.revision() > 50 ? store_.revision() - 50 : 0);
    store_.write(key,
                 std::make_shared<const std::string>(value_of(key, revision)),
                 deleted,
                 [this, key, revision, deleted](Result<void> done) {
                   if (!done) fatal("child: " + done.error().message);
                   tell(fmt::format("{} {} {}\n", deleted ? 'D' : 'A', revision, key));
                   next();
                 });
  }

 private:
  void tell(const std::string& line) const {
    if (::write(out_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::exit(1);
  }
  store::Store& store_;
  int out_;
  Random random_;
};

[[noreturn]] void child(const std::string& path, int out, std::uint64_t seed) {
  net::Loop loop;
  auto opened = store::open(loop, path);
  if (!opened) fatal("child: " + opened.error().message);
  std::vector<Writer> writers;
  for (int i = 0; i < kWriters; ++i)
    writers.emplace_back(**opened, out, seed + static_cast<std::uint64_t>(i));
  for (auto& writer : writers) writer.next();
  loop.run();
  std::exit(1);
}

// -------------------------------------------------------------------------------------- The parent

struct Acknowledged {
  Revision revision = 0;
  bool deleted = false;
};

struct World {
  std::map<std::string, Acknowledged> newest;  // per key
  std::set<Revision> acknowledged;
  Revision handed_out = 0;
};

void hear(World& world, const std::string& line) {
  const auto words = split_nonempty(line, ' ');
  const auto revision = static_cast<Revision>(parse_int(words.at(1)).value_or(0));
  if (words.at(0) == "H") {
    if (revision <= world.handed_out)
      fatal(fmt::format(
          "revision {} was handed out twice (newest was {})", revision, world.handed_out));
    world.handed_out = revision;
    return;
  }
  world.acknowledged.insert(revision);
  auto& newest = world.newest[words.at(2)];
  if (revision > newest.revision) newest = {revision, words.at(0) == "D"};
}

/// Lets the child run until it has acknowledged something and then a random moment longer.
void run_and_kill(World& world, const std::string& path, Random& random) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) fatal("pipe failed");
  const auto seed = random.next();
  const auto pid = ::fork();
  if (pid < 0) fatal("fork failed");
  if (pid == 0) {
    ::close(pipe_ends[0]);
    child(path, pipe_ends[1], seed);
  }
  ::close(pipe_ends[1]);
  const auto wait_us = 500 + random.below(40'000);
  std::string text;
  char buffer[65536];
  std::thread killer;
  while (true) {
    const auto got = ::read(pipe_ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
    if (!killer.joinable() && text.find('A') != std::string::npos) {
      killer = std::thread([pid, wait_us] {
        std::this_thread::sleep_for(std::chrono::microseconds(wait_us));
        ::kill(pid, SIGKILL);
      });
    }
  }
  if (killer.joinable()) killer.join();
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) fatal("the child ended by itself");
  std::size_t start = 0;
  for (auto end = text.find('\n'); end != std::string::npos;
       start = end + 1, end = text.find('\n', start)) {
    hear(world, text.substr(start, end - start));
  }
}

void check(const World& world, const std::string& path) {
  net::Loop loop;
  auto opened = store::open(loop, path);
  if (!opened) fatal("reopen: " + opened.error().message);
  auto& store = **opened;
  if (store.next_revision() <= world.handed_out) {
    fatal(fmt::format(
        "next revision {} after {} was handed out", store.next_revision(), world.handed_out));
  }
  std::map<std::string, Revision> found;
  const auto loaded = store.load([&](store::Record record) {
    if (*record.value != value_of(record.key, record.revision))
      fatal(fmt::format("value of {}@{} is not what was written", record.key, record.revision));
    found[record.key] = record.revision;
  });
  if (!loaded) fatal("load: " + loaded.error().message);
  for (const auto& [key, newest] : world.newest) {
    const auto at = found.find(key);
    // A later write may have reached the disk without its acknowledgement reaching us.
    if (at != found.end() && at->second > newest.revision) continue;
    if (newest.deleted) {
      if (at != found.end())
        fatal(fmt::format(
            "{} was deleted at {} but is there at {}", key, newest.revision, at->second));
      continue;
    }
    if (at == found.end()) {
      // Deleted later, unheard? Then history says so.
      const auto changes =
          store.changes_after(std::max(newest.revision, store.compacted()), 1'000'000);
      bool deleted_later = newest.revision < store.compacted();
      for (const auto& change : *changes)
        deleted_later = deleted_later || (change.key == key && change.deleted);
      if (!deleted_later)
        fatal(fmt::format("{}@{} was acknowledged and is gone", key, newest.revision));
    } else if (at->second < newest.revision) {
      fatal(fmt::format(
          "{}@{} was acknowledged but the store holds {}", key, newest.revision, at->second));
    }
  }
  const auto changes = store.changes_after(store.compacted(), 10'000'000);
  if (!changes) fatal("changes: " + changes.error().message);
  std::set<Revision> in_history;
  Revision last = 0;
  for (const auto& change : *changes) {
    if (change.revision <= last) fatal("history is not in order");
    last = change.revision;
    if (*change.value != value_of(change.key, change.revision))
      fatal(fmt::format("history of {}@{} is not what was written", change.key, change.revision));
    in_history.insert(change.revision);
  }
  for (auto it = world.acknowledged.upper_bound(store.compacted()); it != world.acknowledged.end();
       ++it) {
    if (!in_history.contains(*it))
      fatal(fmt::format("revision {} was acknowledged and is not in the history", *it));
  }
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 50;
  std::uint64_t seed =
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--rounds") == 0) rounds = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seed") == 0) seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  fmt::print("store_crash: seed {}, {} rounds\n", seed, rounds);
  std::string pattern = (std::filesystem::temp_directory_path() / "muster-crash-XXXXXX").string();
  const std::string folder = ::mkdtemp(pattern.data());
  Random random(seed);
  World world;
  for (int round = 0; round < rounds; ++round) {
    run_and_kill(world, folder + "/store.db", random);
    check(world, folder + "/store.db");
  }
  std::filesystem::remove_all(folder);
  if (world.acknowledged.empty()) fatal("nothing was ever acknowledged: the test tests nothing");
  fmt::print(
      "store_crash: {} acknowledged writes survived {} kills\n", world.acknowledged.size(), rounds);
  return 0;
}
