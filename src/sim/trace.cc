#include "sim/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "engine/model/history.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kMib = 1024 * 1024;

/// Seconds since 1970 fit for a while to come; with it, so do these many milliseconds, or bytes of
/// as many mebibytes.
constexpr std::int64_t kNumberMax = 4'000'000'000;
constexpr std::int64_t kNodesMax = 1'000'000;
constexpr std::int64_t kGpusANodeMax = 1'000;

/// A CSV table without quoting, which none of the published traces uses.
class Table {
 public:
  static Result<Table> parse(std::string_view csv) {
    Table table;
    std::size_t line_number = 0;
    while (!csv.empty()) {
      const std::size_t end = csv.find('\n');
      const std::string_view line = trim(csv.substr(0, end));
      csv.remove_prefix(end == std::string_view::npos ? csv.size() : end + 1);
      ++line_number;
      if (line.empty()) continue;
      std::vector<std::string> cells = split(line, ',');
      if (table.columns_.empty()) {
        for (std::size_t i = 0; i < cells.size(); ++i) {
          const auto [column, fresh] = table.columns_.emplace(trim(cells[i]), i);
          if (!fresh)
            return fail(
                Code::kInvalid,
                fmt::format("line {}: column {} is named twice", line_number, column->first));
        }
        continue;
      }
      if (cells.size() != table.columns_.size()) {
        return fail(Code::kInvalid,
                    fmt::format("line {}: wanted {} columns as in the first line, found {}",
                                line_number,
                                table.columns_.size(),
                                cells.size()));
      }
      table.rows_.push_back(std::move(cells));
      table.lines_.push_back(line_number);
    }
    if (table.columns_.empty())
      return fail(Code::kInvalid, "the table is empty: wanted a first line with column names");
    return table;
  }

  [[nodiscard]] bool has(const std::string& column) const { return columns_.contains(column); }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> out(columns_.size());
    for (const auto& [name, i] : columns_) out[i] = name;
    return out;
  }
  [[nodiscard]] std::string text(std::size_t row, const std::string& column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::string() : rows_[row][found->second];
  }
  Result<std::int64_t> number(std::size_t row,
                              const std::string& column,
                              std::int64_t otherwise = 0) const {
    const std::string cell = text(row, column);
    if (cell.empty()) return otherwise;
    const auto value = parse_int(cell.substr(0, cell.find('.')));
    if (!value)
      return fail(
          Code::kInvalid,
          fmt::format(
              "line {}: column {}: wanted a number, found \"{}\"", lines_[row], column, cell));
    if (*value > kNumberMax || *value < -kNumberMax)
      return fail(Code::kInvalid,
                  fmt::format("line {}: column {}: {} is too large", lines_[row], column, cell));
    return *value;
  }

 private:
  std::map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> lines_;
};

/// Reads a row's numbers and remembers the first that is none.
class Row {
 public:
  Row(const Table& table, std::size_t row) : table_(table), row_(row) {}
  std::int64_t number(const std::string& column, std::int64_t otherwise = 0) {
    const auto value = table_.number(row_, column, otherwise);
    if (value) return *value;
    if (error_.message.empty()) error_ = value.error();
    return otherwise;
  }
  [[nodiscard]] std::string text(const std::string& column) const {
    return table_.text(row_, column);
  }
  [[nodiscard]] bool has(const std::string& column) const { return table_.has(column); }
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  const Table& table_;
  std::size_t row_;
  Error error_;
};

Job philly_job(Row& row, const TraceOptions& options) {
  Job job;
  job.id = parse_int(row.text("job_id")).value_or(-1);
  job.name = "job-" + row.text("job_id");
  job.queue = row.has("vc") ? row.text("vc") : "default";
  job.user = row.text("user");
  job.submit = std::chrono::seconds(row.number("submit_s"));
  job.duration = std::chrono::seconds(std::max<std::int64_t>(1, row.number("duration_s")));
  const std::int64_t gpus = row.number("gpus");
  job.gpus = std::min(gpus, options.gpus_a_node);
  job.tasks = static_cast<std::int32_t>((gpus + options.gpus_a_node - 1) / options.gpus_a_node);
  return job;
}

Job openb_job(Row& row) {
  Job job;
  job.name = row.text("name");
  job.queue = row.text("qos");
  job.submit = std::chrono::seconds(row.number("creation_time"));
  job.duration = std::chrono::seconds(
      std::max<std::int64_t>(1, row.number("deletion_time") - row.number("creation_time")));
  job.cpu_milli = row.number("cpu_milli");
  job.memory_bytes = row.number("memory_mib") * kMib;
  const std::int64_t gpus = row.number("num_gpu"), milli = row.number("gpu_milli");
  if (gpus == 1 && milli > 0 && milli < 1000)
    job.gpu_milli = static_cast<std::int32_t>(milli);
  else
    job.gpus = gpus;
  job.models = split_nonempty(row.text("gpu_spec"), '|');
  return job;
}

Job own_job(Row& row) {
  Job job;
  job.name = row.text("name");
  job.queue = row.text("queue");
  job.user = row.text("user");
  job.stem = engine::stem_of(job.name);
  job.priority = static_cast<std::int32_t>(row.number("priority"));
  job.submit = std::chrono::seconds(row.number("submit_s"));
  job.duration = std::chrono::seconds(std::max<std::int64_t>(1, row.number("duration_s")));
  job.tasks = static_cast<std::int32_t>(row.number("tasks", 1));
  job.gpus = row.number("gpus");
  job.cpu_milli = row.number("cpu") * 1000;
  job.memory_bytes = row.number("memory_mib") * kMib;
  return job;
}

engine::Node make_node(std::string name,
                       std::int64_t gpus,
                       std::int64_t cpu_milli,
                       std::int64_t memory_bytes,
                       const std::string& model) {
  engine::Node node;
  node.name = std::move(name);
  node.allocatable = {{"cpu", cpu_milli}, {"memory", memory_bytes}, {"pods", 1000}};
  if (gpus > 0) node.allocatable.push_back({"nvidia.com/gpu", gpus});
  for (std::int64_t i = 0; i < gpus; ++i)
    node.devices.push_back({static_cast<std::int32_t>(i), model, true});
  if (!model.empty()) node.labels.emplace_back("nvidia.com/gpu.product", model);
  return node;
}

}  // namespace

Result<std::vector<Job>> parse_jobs(std::string_view csv, const TraceOptions& options) {
  const auto table = Table::parse(csv);
  if (!table) return fail(table.error());
  const bool philly = table->has("job_id") && table->has("gpus") && table->has("duration_s");
  const bool openb = table->has("num_gpu") && table->has("gpu_milli");
  const bool own = table->has("name") && table->has("submit_s") && table->has("duration_s");
  if (!philly && !openb && !own) {
    return fail(
        Code::kInvalid,
        "the columns fit no known trace; wanted job_id,submit_s,vc,gpus,duration_s or "
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,… or name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib");
  }
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < table->size(); ++i) {
    Row row(*table, i);
    Job job = philly ? philly_job(row, options) : openb ? openb_job(row) : own_job(row);
    if (!philly || job.id < 0) job.id = static_cast<std::int64_t>(i);
    if (!row.error().message.empty()) return fail(row.error());
    if (job.submit < options.from || (options.to.count() > 0 && job.submit >= options.to)) continue;
    job.submit = Duration{static_cast<std::int64_t>(
        std::llround(static_cast<double>((job.submit - options.from).count()) / options.speed))};
    jobs.push_back(std::move(job));
  }
  std::stable_sort(
      jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.submit < b.submit; });
  if (options.limit > 0 && static_cast<std::int64_t>(jobs.size()) > options.limit)
    jobs.resize(static_cast<std::size_t>(options.limit));
  return jobs;
}

Result<std::vector<QuotaChange>> parse_quotas(std::string_view csv, const TraceOptions& options) {
  const auto table = Table::parse(csv);
  if (!table) return fail(table.error());
  std::vector<QuotaChange> out;
  if (table->has("vc") && table->has("nodes")) {
    for (std::size_t i = 0; i < table->size(); ++i) {
      Row row(*table, i);
      out.push_back({Duration{}, row.text("vc"), row.number("nodes") * options.gpus_a_node});
      if (!row.error().message.empty()) return fail(row.error());
    }
    return out;
  }
  if (!table->has("date"))
    return fail(Code::kInvalid,
                "the columns fit no known quota table; wanted vc,nodes or date,VC,VC,…");
  std::map<std::string, std::int64_t> last;
  for (std::size_t i = 0; i < table->size(); ++i) {
    Row row(*table, i);
    const Duration at = std::chrono::hours(24) * static_cast<std::int64_t>(i);
    for (const std::string& name : table->names()) {
      if (name == "date" || name == "total") continue;
      const std::int64_t gpus = row.number(name);
      const auto [it, fresh] = last.try_emplace(name, -1);
      if (it->second == gpus) continue;
      it->second = gpus;
      out.push_back(
          {Duration{static_cast<std::int64_t>(static_cast<double>(at.count()) / options.speed)},
           name,
           gpus});
    }
    if (!row.error().message.empty()) return fail(row.error());
  }
  return out;
}

Result<std::vector<engine::Node>> parse_nodes(std::string_view text) {
  std::vector<engine::Node> nodes;
  const std::vector<std::string> counts = split(trim(text), 'x');
  if (counts.size() == 2 && parse_int(counts[0]) && parse_int(counts[1])) {
    if (*parse_int(counts[0]) > kNodesMax || *parse_int(counts[1]) > kGpusANodeMax) {
      return fail(
          Code::kInvalid,
          fmt::format("wanted at most {}x{}, found \"{}\"", kNodesMax, kGpusANodeMax, trim(text)));
    }
    for (std::int64_t i = 0; i < *parse_int(counts[0]); ++i) {
      nodes.push_back(make_node(
          fmt::format("node-{:05}", i), *parse_int(counts[1]), 128'000, 2048LL * 1024 * kMib, ""));
    }
    return nodes;
  }
  const auto table = Table::parse(text);
  if (!table) return fail(table.error());
  const bool openb = table->has("sn") && table->has("gpu");
  if (!openb && !(table->has("node") && table->has("gpus"))) {
    return fail(
        Code::kInvalid,
        "the columns fit no known node list; wanted sn,cpu_milli,memory_mib,gpu,model or node,gpu_model,gpus,cpus, or NODESxGPUS such as 64x8");
  }
  for (std::size_t i = 0; i < table->size(); ++i) {
    Row row(*table, i);
    if (const auto gpus = row.number(openb ? "gpu" : "gpus"); gpus > kGpusANodeMax) {
      return fail(Code::kInvalid,
                  fmt::format("node {}: wanted at most {} GPUs, found {}",
                              row.text(openb ? "sn" : "node"),
                              kGpusANodeMax,
                              gpus));
    }
    if (openb)
      nodes.push_back(make_node(row.text("sn"),
                                row.number("gpu"),
                                row.number("cpu_milli"),
                                row.number("memory_mib") * kMib,
                                row.text("model")));
    else
      nodes.push_back(make_node("node-" + row.text("node"),
                                row.number("gpus"),
                                row.number("cpus") * 1000,
                                2048LL * 1024 * kMib,
                                row.text("gpu_model")));
    if (!row.error().message.empty()) return fail(row.error());
  }
  return nodes;
}

}  // namespace muster::sim
