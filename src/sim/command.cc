#include "sim/command.h"

#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "hived/config.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/trace.h"

namespace muster::sim {
namespace {

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
  bool tenants = false, resume = false, score = false;
  std::int32_t score_every = 1, score_draws = 20;
  TraceOptions parse;
};

Result<std::int64_t> positive(const command::Values& values, std::string_view flag) {
  const int number = values.number(flag);
  if (number > 0) return number;
  return fail(Code::kBadRequest,
              fmt::format("--{}: wanted a positive number, found \"{}\"", flag, values.text(flag)));
}

Result<Options> read_options(const command::Values& values) {
  Options options;
  options.trace = values.text("trace");
  options.nodes = values.text("nodes");
  options.hived_config = values.text("hived-config");
  options.quotas = values.text("quotas");
  options.json = values.text("json");
  options.html = values.text("html");
  options.policies = split_nonempty(values.text("policy"), ',');
  options.tenants = values.yes("tenants");
  options.resume = values.yes("resume");
  if (options.trace.empty() || options.nodes.empty() == options.hived_config.empty())
    return fail(Code::kBadRequest, "--trace and one of --nodes and --hived-config are required");
  if (options.policies.empty()) options.policies = {options.nodes.empty() ? "skip" : "backfill"};
  if (values.given("from")) options.parse.from = values.duration("from");
  if (values.given("to")) options.parse.to = values.duration("to");
  if (values.given("limit")) {
    const auto limit = positive(values, "limit");
    if (!limit) return fail(limit.error());
    options.parse.limit = *limit;
  }
  const auto gpus = positive(values, "gpus-per-node");
  if (!gpus) return fail(gpus.error());
  options.parse.gpus_a_node = *gpus;
  options.score = values.yes("score");
  for (const auto& [flag, to] : {std::pair("score-every", &options.score_every),
                                 std::pair("score-draws", &options.score_draws)}) {
    const auto number = positive(values, flag);
    if (!number) return fail(number.error());
    *to = static_cast<std::int32_t>(*number);
  }
  constexpr std::int32_t kDrawsForARange = 8;
  if (options.score_draws < kDrawsForARange)
    return fail(Code::kBadRequest,
                fmt::format("--score-draws: wanted at least {}, found {}; fewer give no range",
                            kDrawsForARange,
                            options.score_draws));
  if (options.score && !options.hived_config.empty())
    return fail(Code::kBadRequest, "--score: wanted --nodes; forecasts are not scored on cells");
  if (options.score && !(options.quotas.empty() && options.html.empty()))
    return fail(Code::kBadRequest, "--score: cannot be combined with --quotas or --html");
  options.parse.speed = std::atof(values.text("speed").c_str());
  if (options.parse.speed <= 0)
    return fail(
        Code::kBadRequest,
        fmt::format("--speed: wanted a positive number, found \"{}\"", values.text("speed")));
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

/// One table, or one JSON value of a list, for each policy.
Result<void> write_scores(const Options& options,
                          const std::vector<Job>& jobs,
                          const std::vector<engine::Node>& nodes,
                          const std::vector<Policy>& policies,
                          const Score& score) {
  std::vector<std::string> found;
  for (const Policy& policy : policies) {
    const Scoring scoring{jobs, nodes, policy, options.score_every, options.score_draws};
    if (!options.json.empty()) {
      found.push_back(score(scoring, true));
      continue;
    }
    fmt::print("{}{}, {} jobs on {} nodes, {}\n{}",
               &policy == &policies.front() ? "" : "\n",
               policy.name,
               jobs.size(),
               nodes.size(),
               policy.durations_known ? "durations are declared" : "durations are unknown",
               score(scoring, false));
  }
  if (options.json.empty()) return {};
  return write_file(options.json, "[" + join(found, ",\n") + "]\n");
}

Result<void> simulate(const Options& options, const Score& score) {
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

  if (options.score) return write_scores(options, *jobs, nodes, *policies, score);

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

int run_sim(command::Call& call, const Score& score) {
  const auto options = read_options(call.values);
  if (!options) return call.misused(options.error().message);
  const auto done = simulate(*options, score);
  return done ? 0 : call.failed(done.error().message);
}

/// A table: what each flag is called and says of itself.
std::vector<command::Flag> sim_flags() {
  using command::Completes;
  using command::FlagType;
  return {
      {.name = "trace",
       .help =
           "the jobs: a CSV (or .gz) with columns job_id,submit_s,vc,gpus,duration_s or name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib or those of openb",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "nodes",
       .help =
           "the machines: NODESxGPUS, or a CSV with columns sn,cpu_milli,memory_mib,gpu,model or node,gpu_model,gpus,cpus",
       .completes = Completes::kFiles,
       .value_name = "64x8|FILE"},
      {.name = "hived-config",
       .help =
           "virtual clusters and cells instead of nodes; each queue of the trace is a virtual cluster",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "policy",
       .help =
           "policies to compare, by name or from YAML files, separated by commas (default backfill, or skip with cells); the names are " +
           join(policy_names(), ", "),
       .completes = Completes::kWords,
       .words = policy_names(),
       .value_name = "LIST"},
      {.name = "tenants",
       .type = FlagType::kBool,
       .value = "false",
       .help = "make each queue of the trace a queue of the engine, instead of one queue for all"},
      {.name = "quotas",
       .help =
           "GPUs of the virtual clusters: a CSV with columns vc,nodes, or date,VC,VC,… and one line per day; implies --tenants",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "resume",
       .type = FlagType::kBool,
       .value = "false",
       .help = "preempted jobs keep their progress"},
      {.name = "from",
       .type = FlagType::kDuration,
       .help = "only jobs submitted at this time of the trace or later, such as 12h"},
      {.name = "to",
       .type = FlagType::kDuration,
       .help = "only jobs submitted before this time of the trace"},
      {.name = "limit", .type = FlagType::kInt, .help = "only the first N jobs", .value_name = "N"},
      {.name = "speed",
       .value = "1",
       .help = "divide arrival times by this number",
       .value_name = "NUMBER"},
      {.name = "gpus-per-node",
       .type = FlagType::kInt,
       .value = "8",
       .help = "cut larger jobs into whole nodes of this many GPUs",
       .value_name = "N"},
      {.name = "score",
       .type = FlagType::kBool,
       .value = "false",
       .help =
           "compare forecasts of starts with what happened, instead of comparing waits: every 20th job at its submission and three of those that wait every two hours"},
      {.name = "score-every",
       .type = FlagType::kInt,
       .value = "1",
       .help = "score only every Nth of these moments",
       .value_name = "N"},
      {.name = "score-draws",
       .type = FlagType::kInt,
       .value = "20",
       .help = "simulations per forecast",
       .value_name = "N"},
      {.name = "json",
       .help = "write the summary as JSON (- for standard output)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "html",
       .help = "write a page with charts",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
  };
}

}  // namespace

command::Command sim_command(Score score) {
  command::Command made;
  made.name = "sim";
  made.summary = "Replay a job trace through the scheduling engine";
  made.details =
      "Time is virtual: a month of jobs takes seconds. --trace and one of --nodes and --hived-config are required.";
  made.examples =
      "  # How would strict FIFO and backfill compare on last month's jobs?\n"
      "  muster sim --trace jobs.csv.gz --nodes 64x8 --policy fifo,backfill --html report.html\n"
      "  # Only the busiest two weeks, twice as fast\n"
      "  muster sim --trace jobs.csv.gz --nodes nodes.csv --from 3590959s --to 4800558s --speed 2\n"
      "  # Policies of a file side by side, each queue with the GPUs of its virtual cluster\n"
      "  muster sim --trace jobs.csv.gz --nodes 352x8 --policy policies.yaml --quotas vc_nodes.csv\n"
      "  # How accurate would forecasts of starts have been, with durations declared and without?\n"
      "  muster sim --trace jobs.csv.gz --nodes 64x8 --policy backfill,backfill-unknown --score\n";
  made.flags = sim_flags();
  made.run = [score = std::move(score)](command::Call& call) { return run_sim(call, score); };
  return made;
}

}  // namespace muster::sim
