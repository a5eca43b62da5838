// forecast_bench [--full] [--trace FILE] [--nodes N] [--told all,none,half] [--every K] [--draws D]
// [--from S] [--to S]: replays a trace and scores what was foretold at moments of it. By default the
// Philly trace at 86 nodes of 8 GPUs, told and not, every 5th moment with 20 draws; --full also 96
// nodes and half told, every moment with 40 draws.
#include <fmt/core.h>
#include <sys/resource.h>
#include <zlib.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "answers/score.h"
#include "base/strings.h"
#include "lib/data.h"
#include "sim/policy.h"
#include "sim/trace.h"

namespace {

using namespace muster;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return s(usage.ru_utime) + s(usage.ru_stime);
}

std::string read(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    fmt::print(stderr, "{}: cannot be read\n", path);
    std::exit(1);
  }
  std::string text;
  std::array<char, 65536> buffer{};
  for (int n = gzread(file, buffer.data(), buffer.size()); n > 0;
       n = gzread(file, buffer.data(), buffer.size()))
    text.append(buffer.data(), static_cast<std::size_t>(n));
  gzclose(file);
  return text;
}

struct Options {
  std::string trace = (tests::data_folder() / "traces/philly_jobs.csv.gz").string();
  std::vector<std::int64_t> nodes = {86};
  std::vector<std::string> told = {"all", "none"};
  answers::ScoreSettings score;
};

Options read_options(int argc, char** argv) {
  Options o;
  o.score.from = std::chrono::seconds(3'590'959);
  o.score.to = std::chrono::seconds(4'800'558);
  o.score.every = 5;
  o.score.draws = 20;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--full") {
      o.nodes = {86, 96};
      o.told = {"all", "none", "half"};
      o.score.every = 1;
      o.score.draws = 40;
      continue;
    }
    if (flag == "--bare") {
      o.score.baselines = o.score.check_harness = false;
      continue;
    }
    const char* value = i + 1 < argc ? argv[++i] : "";
    if (flag == "--trace") {
      o.trace = value;
      o.score.from = o.score.to = Duration{};
    } else if (flag == "--nodes") {
      o.nodes = {std::atoll(value)};
    } else if (flag == "--told") {
      o.told = split(value, ',');
    } else if (flag == "--every") {
      o.score.every = std::atoi(value);
    } else if (flag == "--draws") {
      o.score.draws = std::atoi(value);
    } else if (flag == "--from") {
      o.score.from = std::chrono::seconds(std::atoll(value));
    } else if (flag == "--to") {
      o.score.to = std::chrono::seconds(std::atoll(value));
    } else {
      fmt::print(stderr, "unknown flag {}; the head of bench/forecast/main.cc lists them\n", flag);
      std::exit(2);
    }
  }
  return o;
}

const answers::Figures* row(const answers::Score& s,
                            const std::string& set,
                            std::string_view name) {
  for (const auto& scored : s.sets) {
    for (const auto& f : scored.rows) {
      if (scored.moments == set && f.name == name) return &f;
    }
  }
  return nullptr;
}

int missed = 0;

void must(const std::string& what, bool holds) {
  fmt::print("  {:<4} {}\n", holds ? "ok" : "MISS", what);
  missed += holds ? 0 : 1;
}

/// What the figures must be, told and not.
void judge(const answers::Score& s, const std::string& told) {
  using namespace answers;
  for (const std::string set : {"S", "L"}) {
    const Figures* shared = row(s, set, kShared);
    if (shared == nullptr) continue;
    must(fmt::format("{}: answered {:.0f} % (95 or more)", set, shared->answered * 100),
         shared->answered >= 0.95);
    if (told == "all") {
      must(
          fmt::format(
              "{}: err {:.3f} (.05 or less), x2 {:.0f} % (85 or more), holds {:.0f} % (75 or more)",
              set,
              shared->err,
              shared->x2 * 100,
              shared->holds * 100),
          shared->err <= 0.05 && shared->x2 >= 0.85 && shared->holds >= 0.75);
      continue;
    }
    if (told != "none") continue;
    must(fmt::format("{}: holds {:.0f} % (72 to 88)", set, shared->holds * 100),
         shared->holds >= 0.72 && shared->holds <= 0.88);
    const Figures* median = row(s, set, kOneMedian);
    const Figures* past = row(s, set, kPastWaits);
    if (median == nullptr || past == nullptr) continue;
    const double most = set == "S" ? 0.5 : 0.65;
    must(
        fmt::format("{}: LP {:.3f} of one course with the median's {:.3f} ({:.2f}; {:.2f} or less)",
                    set,
                    shared->loss,
                    median->loss,
                    shared->loss / median->loss,
                    most),
        shared->loss <= most * median->loss);
    if (set == "S")
      must(
          fmt::format("{}: LP {:.2f} of past waits' (.35 or less)", set, shared->loss / past->loss),
          shared->loss <= 0.35 * past->loss);
  }
  if (s.worst_harness > 0 || row(s, "S", kTrue) != nullptr)
    must(fmt::format("true durations and arrivals: largest error {:.4f} (0)", s.worst_harness),
         s.worst_harness == 0);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  const auto jobs = sim::parse_jobs(read(options.trace), {});
  if (!jobs) {
    fmt::print(stderr, "{}: {}\n", options.trace, jobs.error().message);
    return 1;
  }
  const double begin = cpu_seconds();
  for (const std::int64_t count : options.nodes) {
    const auto nodes = sim::parse_nodes(fmt::format("{}x8", count));
    for (const std::string& told : options.told) {
      const auto policy = sim::named_policy(told == "none" ? "backfill-unknown" : "backfill");
      answers::ScoreSettings settings = options.score;
      settings.told = told == "all"    ? answers::Told::kAll
                      : told == "none" ? answers::Told::kNone
                                       : answers::Told::kHalf;
      const double before = cpu_seconds();
      const answers::Score s = answers::score(*jobs, *nodes, *policy, settings, cpu_seconds);
      fmt::print(
          "{} nodes of 8 GPUs, {} jobs, durations told: {}; every {}. moment, {} draws, {:.0f} s CPU\n{}",
          count,
          jobs->size(),
          told,
          settings.every,
          settings.draws,
          cpu_seconds() - before,
          answers::score_table(s));
      judge(s, told);
      fmt::print("\n");
    }
  }
  fmt::print(
      "{:.0f} s of CPU in all; {} of what must hold is missed\n", cpu_seconds() - begin, missed);
  return missed == 0 ? 0 : 1;
}
