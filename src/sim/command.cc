#include "sim/command.h"

#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/strings.h"
#include "hived/config.h"
#include "sim/cells_replay.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/trace.h"

namespace muster::sim {
namespace {

constexpr const char* kHelp =
    R"(Replay a job trace through the scheduling engine, on a virtual clock.

Usage:
  muster sim --trace FILE --nodes 64x8|FILE [--policy NAME,…] [flags]
  muster sim --trace FILE --hived-config FILE [--policy skip,fifo] [flags]

Examples:
  # How would strict FIFO and backfill compare on last month's jobs?
  muster sim --trace jobs.csv.gz --nodes 64x8 --policy fifo,backfill --html report.html
  # The busiest two weeks only, twice as fast
  muster sim --trace jobs.csv.gz --nodes nodes.csv --from 3590959s --to 4800558s --speed 2
  # Own policies side by side, with the sizes of virtual clusters as dues of their queues
  muster sim --trace jobs.csv.gz --nodes 352x8 --policy policies.yaml --quotas vc_nodes.csv

Flags:
  --trace FILE      CSV (or .gz) with columns job_id,submit_s,vc,gpus,duration_s or
                    name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib or those of openb
  --nodes SPEC      NODESxGPUS, or a CSV with sn,cpu_milli,memory_mib,gpu,model or node,gpu_model,gpus,cpus
  --hived-config FILE  virtual clusters and cells instead of nodes: each queue of the trace is a virtual cluster
  --policy LIST     names and YAML files with policies, compared side by side (default backfill; of cells: skip); names:
                    fifo, skip, backfill, backfill-unknown, spread, fragmentation
  --tenants         each queue of the trace is a queue of the engine (default: one queue for all)
  --quotas FILE     CSV with the GPUs of virtual clusters: vc,nodes or date,VC,VC,… with a line a day;
                    implies --tenants
  --resume          preempted jobs keep their progress
  --from, --to D    only jobs submitted in this span (durations such as 90s, 12h)
  --limit N         only the first N jobs
  --speed X         arrival times divided by X
  --gpus-a-node N   where larger jobs are cut into whole nodes (default 8)
  --json FILE       write the summary as JSON (- for standard output)
  --html FILE       write a page with charts
)";

Result<std::string> read_file(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files too
  if (file == nullptr)
    return fail(Code::kNotFound, fmt::format("{}: {}", path, std::strerror(errno)));
  std::string text;
  std::vector<char> buffer(1 << 16);
  int count = 0;
  while ((count = gzread(file, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0)
    text.append(buffer.data(), static_cast<std::size_t>(count));
  const bool broken = count < 0;
  gzclose(file);
  if (broken) return fail(Code::kInvalid, fmt::format("{}: cannot be read as gzip", path));
  return text;
}

Result<void> write_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    fmt::print("{}", text);
    return {};
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    return fail(Code::kInternal,
                fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  return {};
}

struct Options {
  std::string trace, nodes, hived_config, quotas, json, html;
  std::vector<std::string> policies;
  bool tenants = false, resume = false, help = false;
  TraceOptions parse;
};

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string flag = argv[i];
    if (flag == "-h" || flag == "--help") {
      options.help = true;
      return options;
    }
    if (flag == "--tenants") {
      options.tenants = true;
      continue;
    }
    if (flag == "--resume") {
      options.resume = true;
      continue;
    }
    std::string value;
    if (const std::size_t equals = flag.find('='); equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    } else if (i + 1 < argc) {
      value = argv[++i];
    } else {
      return fail(Code::kBadRequest, fmt::format("{} needs a value; see muster sim --help", flag));
    }
    const auto want_number = [&]() -> Result<std::int64_t> {
      const auto parsed = parse_int(value);
      if (!parsed || *parsed <= 0)
        return fail(Code::kBadRequest,
                    fmt::format("{}: want a positive number, found \"{}\"", flag, value));
      return *parsed;
    };
    if (flag == "--trace")
      options.trace = value;
    else if (flag == "--nodes")
      options.nodes = value;
    else if (flag == "--hived-config")
      options.hived_config = value;
    else if (flag == "--quotas")
      options.quotas = value;
    else if (flag == "--json")
      options.json = value;
    else if (flag == "--html")
      options.html = value;
    else if (flag == "--policy")
      options.policies = split_nonempty(value, ',');
    else if (flag == "--from" || flag == "--to") {
      const auto parsed = parse_duration(value);
      if (!parsed) return fail(parsed.error());
      (flag == "--from" ? options.parse.from : options.parse.to) = *parsed;
    } else if (flag == "--limit" || flag == "--gpus-a-node") {
      const auto parsed = want_number();
      if (!parsed) return fail(parsed.error());
      (flag == "--limit" ? options.parse.limit : options.parse.gpus_a_node) = *parsed;
    } else if (flag == "--speed") {
      options.parse.speed = std::atof(value.c_str());
      if (options.parse.speed <= 0)
        return fail(Code::kBadRequest,
                    fmt::format("--speed: want a positive number, found \"{}\"", value));
    } else {
      const auto near = nearest(flag,
                                {"--trace",
                                 "--nodes",
                                 "--hived-config",
                                 "--quotas",
                                 "--gpus-a-node",
                                 "--json",
                                 "--html",
                                 "--policy",
                                 "--from",
                                 "--to",
                                 "--limit",
                                 "--speed",
                                 "--tenants",
                                 "--resume"});
      return fail(Code::kBadRequest,
                  fmt::format("unknown flag {}{}; see muster sim --help",
                              flag,
                              near ? fmt::format(" (did you mean {}?)", *near) : ""));
    }
  }
  if (options.trace.empty() || options.nodes.empty() == options.hived_config.empty()) {
    return fail(Code::kBadRequest,
                "--trace and one of --nodes and --hived-config are needed; see muster sim --help");
  }
  if (options.policies.empty()) options.policies = {options.nodes.empty() ? "skip" : "backfill"};
  return options;
}

/// Names and files in the order given; flags hold for all of them.
Result<std::vector<Policy>> read_policies(const Options& options) {
  std::vector<Policy> policies;
  for (const std::string& name : options.policies) {
    if (access(name.c_str(), R_OK) == 0) {
      const auto text = read_file(name);
      if (!text) return fail(text.error());
      auto parsed = parse_policies(*text);
      if (!parsed) return fail(parsed.error().code, name + ": " + parsed.error().message);
      for (Policy& policy : *parsed) policies.push_back(std::move(policy));
      continue;
    }
    auto policy = named_policy(name);
    if (!policy) return fail(policy.error());
    policies.push_back(std::move(*policy));
  }
  for (Policy& policy : policies) {
    policy.tenants = policy.tenants || options.tenants || !options.quotas.empty();
    policy.resume = policy.resume || options.resume;
  }
  return policies;
}

Result<void> simulate(const Options& options) {
  const auto csv = read_file(options.trace);
  if (!csv) return fail(csv.error());
  auto jobs = parse_jobs(*csv, options.parse);
  if (!jobs) return fail(jobs.error().code, options.trace + ": " + jobs.error().message);
  std::optional<hived::Config> cells;
  std::vector<engine::Node> nodes;
  if (!options.hived_config.empty()) {
    const auto text = read_file(options.hived_config);
    if (!text) return fail(text.error());
    auto config = hived::parse_config(*text);
    if (!config)
      return fail(config.error().code, options.hived_config + ": " + config.error().message);
    cells = std::move(*config);
  } else {
    std::string node_text = options.nodes;
    if (access(options.nodes.c_str(), R_OK) == 0) {
      auto text = read_file(options.nodes);
      if (!text) return fail(text.error());
      node_text = std::move(*text);
    }
    auto parsed = parse_nodes(node_text);
    if (!parsed) return fail(parsed.error().code, "--nodes: " + parsed.error().message);
    nodes = std::move(*parsed);
  }

  std::vector<QuotaChange> quotas;
  if (!options.quotas.empty()) {
    const auto text = read_file(options.quotas);
    if (!text) return fail(text.error());
    auto parsed = parse_quotas(*text, options.parse);
    if (!parsed) return fail(parsed.error().code, options.quotas + ": " + parsed.error().message);
    quotas = std::move(*parsed);
  }
  const auto policies = read_policies(options);
  if (!policies) return fail(policies.error());

  std::vector<Outcome> outcomes;
  std::vector<Summary> rows;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  for (const Policy& policy : *policies) {
    const auto progress = [&](double share) {
      if (terminal)
        fmt::print(stderr,
                   "\r{:18} [{:<40}] {:3.0f} %",
                   policy.name,
                   std::string(static_cast<std::size_t>(share * 40), '#'),
                   share * 100);
    };
    if (cells) {
      auto outcome = replay_cells(*jobs, cells->cells, policy, progress);
      if (!outcome) return fail(outcome.error());
      outcomes.push_back(std::move(*outcome));
    } else {
      outcomes.push_back(replay(*jobs, nodes, policy, progress, quotas));
    }
    if (terminal) fmt::print(stderr, "\r{:70}\r", "");
    rows.push_back(summarize(outcomes.back()));
  }
  if (options.json != "-") fmt::print("{}", table(rows));
  if (!options.json.empty()) {
    const auto written = write_file(options.json, to_json(outcomes));
    if (!written) return written;
  }
  if (!options.html.empty()) {
    const auto written = write_file(options.html, to_html(outcomes));
    if (!written) return written;
    fmt::print("charts: {}\n", options.html);
  }
  return {};
}

}  // namespace

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv);
  if (!options) {
    fmt::print(stderr, "muster sim: {}\n", options.error().message);
    return 2;
  }
  if (options->help) {
    fmt::print("{}", kHelp);
    return 0;
  }
  const auto done = simulate(*options);
  if (!done) {
    fmt::print(stderr, "muster sim: {}\n", done.error().message);
    return 1;
  }
  return 0;
}

}  // namespace muster::sim
