// hived_replay [--yaml] [--only TEXT] FOLDER: replays philly_jobs.csv.gz of FOLDER in the 11
// virtual clusters of philly_vc_nodes.csv.
//
// The method is that of the figures for HiveD v0.3.4 in the table: schedule + add + delete, FIFO in
// each virtual cluster, cells GPU - switch(2) - socket(4) - node(8) - rack(16 nodes), every virtual
// cluster owns node cells. CPU is that of the process during the replay, this driver included. With
// --yaml every pod's annotations are also written and read as text, as the product does.

#include <fmt/core.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <fstream>
#include <map>
#include <queue>

#include "base/strings.h"
#include "books.h"
#include "hived/annotations.h"
#include "hived/config.h"
#include "lib/data.h"

namespace muster {
namespace {

using namespace engine::cells;

struct Job {
  std::int64_t submit_s;
  std::string vc;
  std::size_t vc_number;
  std::int32_t gpus;
  std::int64_t duration_s;
};

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<Job> read_jobs(const std::string& path, const std::map<std::string, int>& vcs) {
  std::vector<Job> jobs;
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return jobs;
  char line[256];
  while (gzgets(file, line, sizeof line) != nullptr) {
    const std::vector<std::string> f = split(trim(line), ',');
    if (f.size() != 5 || !parse_int(f[1]) || !vcs.contains(f[2])) continue;
    const auto vc_number = static_cast<std::size_t>(std::distance(vcs.begin(), vcs.find(f[2])));
    jobs.push_back({*parse_int(f[1]),
                    f[2],
                    vc_number,
                    static_cast<std::int32_t>(*parse_int(f[3])),
                    *parse_int(f[4])});
  }
  gzclose(file);
  return jobs;
}

std::string config_text(const std::map<std::string, int>& vcs, int factor) {
  int nodes = 0;
  for (const auto& [vc, count] : vcs) nodes += count * factor;
  std::string out =
      "physicalCluster:\n  cellTypes:\n    SWITCH: {childCellType: GPU, childCellNumber: 2}\n    SOCKET: {childCellType: SWITCH, childCellNumber: 2}\n"
      "    NODE: {childCellType: SOCKET, childCellNumber: 2, isNodeLevel: true}\n    RACK: {childCellType: NODE, childCellNumber: 16}\n  physicalCells:\n";
  for (int n = 0; n < nodes; ++n) {
    if (n % 16 == 0) out += "  - cellType: RACK\n    cellChildren:\n";
    out += fmt::format("    - cellAddress: node-{}\n", n);
  }
  out += "virtualClusters:\n";
  for (const auto& [vc, count] : vcs)
    out +=
        fmt::format("  \"{}\":\n    virtualCells:\n    - {{cellType: RACK.NODE, cellNumber: {}}}\n",
                    vc,
                    count * factor);
  return out;
}

struct Figures {
  std::size_t jobs = 0, calls = 0, waits = 0, bound = 0, violations = 0;
  double cpu = 0, startup = 0;
  std::vector<std::uint32_t> schedule_ns;  // of each call, add included
};

class Replay {
 public:
  Replay(CellAllocator allocator, bool yaml) : allocator_(std::move(allocator)), yaml_(yaml) {}

  void run(const std::vector<Job>& jobs, std::int64_t speed, Figures& out) {
    out_ = &out;
    out.schedule_ns.reserve(jobs.size() * 2);
    running_.resize(jobs.size());
    queues_.resize(allocator_.cells().vcs.size());
    std::size_t next = 0;
    const double begin = cpu_s();
    while (next < jobs.size() || !ends_.empty()) {
      const std::int64_t arrival = next < jobs.size() ? jobs[next].submit_s / speed : INT64_MAX;
      const std::int64_t end = ends_.empty() ? INT64_MAX : ends_.top().time;
      if (end <= arrival) {
        const std::size_t job = ends_.top().job;
        ends_.pop();
        for (const Running& pod : running_[job])
          (void)allocator_.delete_allocated(pod.ref, pod.spec, pod.bind);
        running_[job] = {};
        try_queue(jobs, jobs[job].vc_number, end);
      } else {
        std::deque<std::size_t>& queue = queues_[jobs[next].vc_number];
        queue.push_back(next);
        if (queue.size() == 1) try_queue(jobs, jobs[next].vc_number, arrival);
        ++next;
      }
    }
    out.cpu = cpu_s() - begin - checking_;
    out.jobs = jobs.size();
  }

 private:
  struct End {
    std::int64_t time;
    std::size_t job;
    bool operator<(const End& other) const {
      return time != other.time ? time > other.time : job > other.job;
    }
  };
  struct Running {
    PodRef ref;
    PodSpec spec;
    BindInfo bind;
  };

  void try_queue(const std::vector<Job>& jobs, std::size_t vc, std::int64_t now) {
    std::deque<std::size_t>& queue = queues_[vc];
    while (!queue.empty() && start(queue.front(), jobs[queue.front()], now)) queue.pop_front();
  }

  bool start(std::size_t number, const Job& job, std::int64_t now) {
    PodSpec spec;
    spec.vc = job.vc;
    spec.leaf_type = "GPU";
    spec.group = fmt::format("job-{}", number);
    const std::int32_t whole = job.gpus > 8 ? job.gpus / 8 : 0;
    const std::int32_t rest = job.gpus > 8 ? job.gpus % 8 : job.gpus;
    if (whole > 0) spec.members.push_back({whole, 8});
    if (rest > 0) spec.members.push_back({1, rest});
    std::vector<Running> started;
    for (const GroupMember& member : spec.members) {
      for (std::int32_t i = 0; i < member.pods; ++i) {
        Running pod;
        pod.ref.uid = fmt::format("{}-{}-{}", number, member.leaves, i);
        pod.ref.name = "default/" + pod.ref.uid;
        pod.spec = spec;
        pod.spec.leaves = member.leaves;
        if (!call(pod, now)) return false;  // the first pod decides for the gang
        started.push_back(std::move(pod));
      }
    }
    ends_.push({now + std::max<std::int64_t>(job.duration_s / 1, 1), number});
    running_[number] = std::move(started);
    return true;
  }

  bool call(Running& pod, std::int64_t now) {
    ++out_->calls;
    const auto begin = std::chrono::steady_clock::now();
    if (yaml_)
      pod.spec = *hived::parse_scheduling_spec(
          hived::format_scheduling_spec(pod.spec), "default", pod.ref.uid);
    const Decision decision = allocator_.schedule(
        {pod.ref, pod.spec, Phase::kFiltering, nullptr, Time::from_seconds(now)});
    const bool bound = decision.kind == Decision::Kind::kBind;
    if (bound) {
      pod.bind =
          yaml_ ? *hived::parse_bind_info(hived::format_bind_info(decision.bind)) : decision.bind;
      if (!allocator_.add_allocated(pod.ref, pod.spec, pod.bind, Time::from_seconds(now)))
        ++out_->violations;
    }
    out_->schedule_ns.push_back(
        static_cast<std::uint32_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                       std::chrono::steady_clock::now() - begin)
                                       .count()));
    ++(bound ? out_->bound : out_->waits);
    if (out_->calls % 5000 == 0) check();
    return bound;
  }

  void check() {
    const double begin = cpu_s();
    for (const std::string& wrong : {dst::check_leaves(allocator_), dst::check_books(allocator_)}) {
      if (wrong.empty()) continue;
      ++out_->violations;
      fmt::print("violation: {}\n", wrong);
    }
    checking_ += cpu_s() - begin;
  }

  CellAllocator allocator_;
  bool yaml_;
  Figures* out_ = nullptr;
  double checking_ = 0;
  std::vector<std::deque<std::size_t>> queues_;  // by virtual cluster
  std::priority_queue<End> ends_;
  std::vector<std::vector<Running>> running_;  // by job
};

void row(const std::string& name,
         const std::vector<Job>& jobs,
         const std::map<std::string, int>& vcs,
         int factor,
         std::int64_t speed,
         bool yaml,
         const char* theirs) {
  const std::string text = config_text(vcs, factor);
  const double begin = cpu_s();
  const auto config = hived::parse_config(text);
  const double parsed = cpu_s();
  auto allocator = CellAllocator::create(config->cells, {});
  if (!allocator) {
    fmt::print("{}\n", allocator.error().message);
    return;
  }
  for (const Node& node : allocator->cells().nodes) allocator->set_node(node.name, true);
  Figures figures;
  figures.startup = cpu_s() - begin;
  const double build = cpu_s() - parsed;
  Replay replay(std::move(*allocator), yaml);
  replay.run(jobs, speed, figures);
  auto& ns = figures.schedule_ns;
  std::sort(ns.begin(), ns.end());
  const auto at = [&](double q) {
    return static_cast<double>(
               ns[static_cast<std::size_t>(q * static_cast<double>(ns.size() - 1))]) /
           1000.0;
  };
  fmt::print(
      "| {} | {} | {} ({}) | {} | {:.2f} | {:.2f} us | {:.2f} / {:.2f} / {:.1f} us | {:.3f} s (cells {:.3f}) | {} | {} |\n",
      name,
      figures.jobs,
      figures.calls,
      figures.waits,
      figures.bound,
      figures.cpu,
      figures.cpu * 1e6 / static_cast<double>(figures.calls),
      at(0.5),
      at(0.99),
      at(1.0),
      figures.startup,
      build,
      figures.violations,
      theirs);
}

int main_with(int argc, char** argv) {
  bool yaml = false;
  std::string only;  // rows whose name has this
  std::string folder = (tests::data_folder() / "traces").string();
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--yaml")
      yaml = true;
    else if (std::string(argv[i]) == "--only" && i + 1 < argc)
      only = argv[++i];
    else
      folder = argv[i];
  }
  std::map<std::string, int> vcs;
  std::ifstream list(folder + "/philly_vc_nodes.csv");
  for (std::string line; std::getline(list, line);) {
    const auto f = split(trim(line), ',');
    if (f.size() == 2 && parse_int(f[1])) vcs[f[0]] = static_cast<int>(*parse_int(f[1]));
  }
  const std::vector<Job> jobs = read_jobs(folder + "/philly_jobs.csv.gz", vcs);
  if (jobs.empty()) {
    fmt::print(
        stderr,
        "no jobs in \"{}\"; wanted a folder with philly_jobs.csv.gz and philly_vc_nodes.csv\n",
        folder);
    return 2;
  }
  const std::vector<Job> first(
      jobs.begin(),
      jobs.begin() + std::min<std::ptrdiff_t>(20'000, static_cast<std::ptrdiff_t>(jobs.size())));
  fmt::print(
      "| cluster | jobs | calls (waits) | pods bound | CPU s | CPU a call, add and delete included | call p50 / p99 / max | start-up | violations | HiveD v0.3.4 a call, start-up |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|---|\n");
  const auto wanted = [&](const std::string& name) { return name.find(only) != std::string::npos; };
  if (wanted("352 nodes, x4")) row("352 nodes, x4", first, vcs, 1, 4, yaml, "469 us, 0.14-0.22 s");
  if (wanted("352 nodes, x6")) row("352 nodes, x6", jobs, vcs, 1, 6, yaml, "597 us");
  if (wanted("2,816 nodes, x48"))
    row("2,816 nodes, x48", first, vcs, 8, 48, yaml, "3,975 us, 10.6 s");
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::main_with(argc, argv); }
