/// The cluster in a bottle: every part of `muster up`, on virtual time, a disk that loses what was
/// not synced and a network that loses messages, all from a seed.
///
/// `bottle --help` says how to call it.
///
/// Each seed runs in a child of its own. A seed that fails is run again, must fail the same way,
/// byte for byte, is cut to the fewest steps that fail, and is told; after a few of them it ends.
/// The results are summed up once a minute and at the end.
#include <fmt/core.h>
#include <openssl/rand.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "run.h"

namespace {

using namespace muster;
using namespace muster::bottle;

// --------------------------------------------------------------------- OpenSSL draws from the seed

Random drawn(0);
int draw(unsigned char* out, int count) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<unsigned char>(drawn.next());
  return 1;
}
int always() { return 1; }

void seed_openssl(std::uint64_t seed) {
  static RAND_METHOD method = {nullptr, draw, nullptr, nullptr, draw, always};
  drawn = Random(seed);
  RAND_set_rand_method(&method);
}

// -------------------------------------------------------------------------------- one seed, a child

/// What a child tells its parent, as text.
struct Report {
  bool ended = false;  // false: it crashed
  std::string check, what, story;
  std::uint64_t events = 0, digest = 0, seen = 0, actions = 0;
  std::int64_t virtual_s = 0;
  std::map<std::string, std::uint64_t> faults;
};

std::string text_of(const Outcome& outcome) {
  std::string out = fmt::format("{} {} {} {} {}\n",
                                outcome.events,
                                outcome.digest,
                                outcome.seen,
                                outcome.actions,
                                outcome.virtual_s);
  out += (outcome.violation ? outcome.violation->check : "") + "\n";
  std::string what = outcome.violation ? outcome.violation->what : "";
  for (char& c : what) c = c == '\n' ? ' ' : c;
  out += what + "\n" + std::to_string(outcome.faults.size()) + "\n";
  for (const auto& [name, count] : outcome.faults) out += fmt::format("{} {}\n", count, name);
  for (const std::string& line : outcome.story) out += line + "\n";
  return out;
}

Report parse(const std::string& text) {
  Report report;
  std::istringstream in(text);
  std::string line;
  if (!(in >> report.events >> report.digest >> report.seen >> report.actions >> report.virtual_s))
    return report;
  std::getline(in, line);
  std::getline(in, report.check);
  std::getline(in, report.what);
  std::size_t faults = 0;
  in >> faults;
  for (std::size_t i = 0; i < faults; ++i) {
    std::uint64_t count = 0;
    in >> count;
    std::getline(in >> std::ws, line);
    report.faults[line] = count;
  }
  std::getline(in, line);
  while (std::getline(in, line)) report.story += line + "\n";
  report.ended = true;
  return report;
}

struct Child {
  RunOptions options;
  pid_t pid = 0;
  int from = -1;
  std::string text;
  std::optional<std::uint64_t> digest;  // of its first run, when this is its second
};

/// Somebody wants it to end: children are ended, and what is known is said.
volatile sig_atomic_t ending = 0;

void end_when_told() {
  struct sigaction action = {};
  action.sa_handler = [](int) { ending = 1; };
  for (const int signal : {SIGTERM, SIGINT}) ::sigaction(signal, &action, nullptr);
}

Child start(const RunOptions& options) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    // Its parent says when it ends: a signal to the whole group must not look like a crash of it.
    ::signal(SIGTERM, SIG_IGN);
    ::signal(SIGINT, SIG_IGN);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char* log =
        std::getenv("BOTTLE_LOG") != nullptr ? std::getenv("BOTTLE_LOG") : "/dev/null";
    if (std::freopen(log, "w", stderr) == nullptr) std::abort();
    seed_openssl(options.seed);
    const std::string text = text_of(run(options));
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t wrote = ::write(ends[1], text.data() + done, text.size() - done);
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  return {.options = options, .pid = child, .from = ends[0]};
}

/// Reads on; false: it has said everything.
bool hears(Child& child) {
  char buffer[65536];
  const ssize_t got = ::read(child.from, buffer, sizeof buffer);
  if (got > 0) child.text.append(buffer, static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR && ending == 0);
}

/// `unfinished`: it is not waited for, and nothing is known of it.
Report end(Child& child, bool unfinished = false) {
  if (unfinished) ::kill(child.pid, SIGKILL);
  ::close(child.from);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  // One that was ended or died has left them behind.
  std::error_code ignored;
  std::filesystem::remove_all(folder_of(child.pid), ignored);
  Report report = WIFEXITED(status) ? parse(child.text) : Report{};
  if (!report.ended && !unfinished) {
    report.check = "lives";
    report.what =
        fmt::format("the program died (status {}); BOTTLE_LOG=FILE keeps what it said", status);
  }
  return report;
}

Report run_apart(const RunOptions& options) {
  Child child = start(options);
  while (ending == 0 && hears(child)) {
  }
  return end(child, ending != 0);
}

// --------------------------------------------------------------------------------------- many seeds

double cpu_seconds() {
  rusage own{}, children{};
  ::getrusage(RUSAGE_SELF, &own);
  ::getrusage(RUSAGE_CHILDREN, &children);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return of(own.ru_utime) + of(own.ru_stime) + of(children.ru_utime) + of(children.ru_stime);
}

/// The fewest steps after which it fails by the same check.
int minimised(RunOptions options, const std::string& check) {
  int low = 0, high = options.steps;
  while (low + 1 < high) {
    options.steps = (low + high) / 2;
    (run_apart(options).check == check ? high : low) = options.steps;
  }
  return high;
}

void tell_failure(RunOptions options, const Report& first) {
  fmt::print("seed {}: {}: {}\n", options.seed, first.check, first.what);
  std::fflush(stdout);
  const Report again = run_apart(options);
  if (ending == 0 && (again.digest != first.digest || again.check != first.check))
    fmt::print("  a second run was another one: {} ({})\n", again.check, again.what);
  options.steps = minimised(options, first.check);
  const Report least = run_apart(options);
  if (ending != 0) {
    fmt::print("{}  again: bottle --replay {}\n", first.story, options.seed);
    return;
  }
  fmt::print("{}  {}: {}\n  again: bottle --replay {} --steps {}\n",
             least.story,
             least.check,
             least.what,
             options.seed,
             options.steps);
  std::fflush(stdout);
}

/// Failed seeds that are told before it ends: each is cut and told, which takes a while.
constexpr std::uint64_t kFailuresMax = 5;

struct Limits {
  double cpu_s = 60;
  std::uint64_t events = ~std::uint64_t{0};
};

/// Seed after seed, some beside each other, and what came of them.
class Seeds {
 public:
  Seeds(RunOptions next, std::size_t jobs) : next_(std::move(next)), jobs_(jobs) {}

  int run(const Limits& limits) {
    while (ending == 0) {
      const bool more = cpu_seconds() < limits.cpu_s && events_ < limits.events;
      while (more && failed_ < kFailuresMax && children_.size() < jobs_) start_one();
      if (children_.empty()) break;
      await_some();
      if (Clock::now() >= next_told_) tell_so_far();
    }
    for (Child& child : children_) end(child, true);
    tell();
    return failed_ == 0 ? 0 : 1;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void start_one() {
    if (!twice_.empty()) {
      children_.push_back(start(twice_.front().first));
      children_.back().digest = twice_.front().second;
      twice_.pop_front();
      return;
    }
    children_.push_back(start(next_));
    ++next_.seed;
  }

  void await_some() {
    std::vector<pollfd> waits;
    for (const Child& child : children_) waits.push_back({.fd = child.from, .events = POLLIN});
    if (::poll(waits.data(), waits.size(), 1000) <= 0) return;
    for (std::size_t i = waits.size(); i-- > 0;) {
      if (waits[i].revents == 0 || hears(children_[i]) || ending != 0) continue;
      Child child = std::move(children_[i]);
      children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(i));
      take(child, end(child));
    }
  }

  void take(const Child& child, const Report& report) {
    if (child.digest) {
      ++again_;
      if (report.digest == *child.digest) return;
      fmt::print("seed {} does not replay: two runs differ\n", child.options.seed);
      ++failed_;
      return;
    }
    if (!report.check.empty()) {
      tell_failure(child.options, report);
      ++failed_;
      return;
    }
    // Now and then a seed is run twice: the same must happen. Its events count once.
    if (seeds_ % 16 == 0) twice_.emplace_back(child.options, report.digest);
    ++seeds_;
    events_ += report.events;
    seen_ += report.seen;
    actions_ += report.actions;
    virtual_s_ += report.virtual_s;
    for (const auto& [name, count] : report.faults) faults_[name] += count;
  }

  void tell_so_far() {
    next_told_ = Clock::now() + std::chrono::minutes(1);
    fmt::print("  {} seeds, {} events, {} violations so far; {:.1f} minutes of processor time\n",
               seeds_,
               events_,
               failed_,
               cpu_seconds() / 60);
    std::fflush(stdout);
  }

  void tell() const {
    fmt::print(
        "{} seeds, {} of them twice, {} events ({:.0f} a minute of processor time), {} changes of "
        "pods looked at,\n{} things done by users, {:.1f} hours of virtual time, {} violations\n",
        seeds_,
        again_,
        events_,
        static_cast<double>(events_) / (cpu_seconds() / 60),
        seen_,
        actions_,
        static_cast<double>(virtual_s_) / 3600,
        failed_);
    for (const auto& [name, count] : faults_) fmt::print("  {:>10} {}\n", count, name);
    fmt::print("{} passed, {} failed, 0 skipped\n", seeds_, failed_);
    std::fflush(stdout);
  }

  RunOptions next_;
  std::size_t jobs_;
  std::vector<Child> children_;
  std::deque<std::pair<RunOptions, std::uint64_t>> twice_;  // with the digest of the first time
  Clock::time_point next_told_ = Clock::now() + std::chrono::minutes(1);
  std::uint64_t seeds_ = 0, failed_ = 0, events_ = 0, seen_ = 0, actions_ = 0, again_ = 0;
  std::int64_t virtual_s_ = 0;
  std::map<std::string, std::uint64_t> faults_;
};

/// Lines of a seed, a number of steps and what was found by it; lines that begin with # say nothing.
int run_found(const char* file) {
  std::ifstream in(file);
  int passed = 0, failed = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    RunOptions options;
    if (line.starts_with('#') || !(words >> options.seed >> options.steps)) continue;
    const Report report = run_apart(options);
    if (!report.check.empty()) fmt::print("{}\n  {}: {}\n", line, report.check, report.what);
    ++(report.check.empty() ? passed : failed);
  }
  fmt::print("{} passed, {} failed, 0 skipped\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}

int run_broken() {
  int failed = 0;
  for (const std::string& check : breakable()) {
    bool found = false;
    for (std::uint64_t seed = 1; seed <= 5 && !found; ++seed) {
      const Report report = run_apart({.seed = seed, .steps = 60, .broken = check});
      // A disk that lies loses what was acknowledged, or so much that nothing can be read.
      found = report.check == check || (check == "durable" && report.check == "serves");
      if (found) fmt::print("ok    {}: {}\n", check, report.what);
      if (!found) fmt::print("      seed {}: {} {}\n", seed, report.check, report.what);
    }
    if (!found) fmt::print("FAIL  {}: broken, and not found out\n", check);
    failed += found ? 0 : 1;
  }
  fmt::print("{} passed, {} failed, 0 skipped\n",
             breakable().size() - static_cast<std::size_t>(failed),
             failed);
  return failed == 0 ? 0 : 1;
}

// ------------------------------------------------------------------------------------ command line

constexpr const char* kUsage =
    R"(bottle runs a whole cluster in virtual time, from a seed, and breaks what can break.

  bottle                    seed after seed, for a minute of processor time
    --cpu S, --hours H      for so long
    --events N              until so much has happened
    --seed S                the first seed (1)
    --steps N               how much befalls each of them (120)
    --jobs N                so many beside each other (1)
  bottle --replay S         one seed, told as it happens
    --steps N               only its first steps
    --pods                  with each change of a pod
  bottle --found FILE       the seeds of FILE
  bottle --break            does what each check forbids; each must say so

docs/reliability.md says what is checked.
)";

struct Asked {
  enum class What : std::uint8_t { kSeeds, kReplay, kFound, kBreak, kHelp, kWrong };
  What what = What::kSeeds;
  RunOptions options;
  Limits limits;
  std::size_t jobs = 1;
  const char* file = "";
};

Asked read(const std::vector<std::string_view>& words) {
  Asked out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h") return {.what = Asked::What::kHelp};
    if (word == "--break") {
      out.what = Asked::What::kBreak;
      continue;
    }
    if (word == "--pods") {
      out.options.pods = true;
      continue;
    }
    if (i + 1 == words.size()) return {.what = Asked::What::kWrong};
    const char* value = words[++i].data();
    if (word == "--cpu") {
      out.limits.cpu_s = std::strtod(value, nullptr);
    } else if (word == "--hours") {
      out.limits.cpu_s = 3600 * std::strtod(value, nullptr);
    } else if (word == "--events") {
      out.limits = {.cpu_s = HUGE_VAL,
                    .events = static_cast<std::uint64_t>(std::strtod(value, nullptr))};
    } else if (word == "--jobs") {
      out.jobs = std::max<std::size_t>(1, std::strtoull(value, nullptr, 10));
    } else if (word == "--found") {
      out.what = Asked::What::kFound;
      out.file = value;
    } else if (word == "--steps") {
      out.options.steps = std::atoi(value);
    } else if (word == "--seed" || word == "--replay") {
      out.options.seed = std::strtoull(value, nullptr, 10);
      if (word == "--replay") out.what = Asked::What::kReplay;
    } else {
      return {.what = Asked::What::kWrong};
    }
  }
  return out;
}

int replay(RunOptions options) {
  options.tell = true;
  seed_openssl(options.seed);
  const Outcome outcome = run(options);
  fmt::print("{} events, digest {:x}\n{}\n",
             outcome.events,
             outcome.digest,
             outcome.violation ? outcome.violation->check + ": " + outcome.violation->what
                               : "no violation");
  std::fflush(stdout);
  ::_exit(outcome.violation ? 1 : 0);
}

}  // namespace

int main(int argc, char** argv) {
  const Asked asked = read({argv + 1, argv + argc});
  switch (asked.what) {
    case Asked::What::kHelp:
      fmt::print("{}", kUsage);
      return 0;
    case Asked::What::kWrong:
      fmt::print(stderr, "{}", kUsage);
      return 2;
    case Asked::What::kBreak:
      return run_broken();
    case Asked::What::kFound:
      return run_found(asked.file);
    case Asked::What::kReplay:
      return replay(asked.options);
    case Asked::What::kSeeds:
      break;
  }
  end_when_told();
  return Seeds(asked.options, asked.jobs).run(asked.limits);
}
