#include "sim/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "json/json.h"

namespace muster::sim {
namespace {

constexpr std::string_view kColours[] = {"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2"};

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

std::string number(double value) {
  if (value >= 10'000) return fmt::format("{:.0f}k", value / 1000);
  return value >= 100 || value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

/// A line chart with axes and a legend; steps when `steps`.
std::string chart(const std::string& title, const std::string& x_label, const std::string& y_label, const std::vector<Line>& lines, bool log_x) {
  constexpr double kWidth = 760, kHeight = 260, kLeft = 60, kBottom = 40, kTop = 16;
  double x_max = 1, y_max = 0;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      x_max = std::max(x_max, x);
      y_max = std::max(y_max, y);
    }
  }
  if (y_max == 0) y_max = 1;
  const auto px = [&](double x) {
    const double share = log_x ? std::log10(1 + x) / std::log10(1 + x_max) : x / x_max;
    return kLeft + share * (kWidth - kLeft - 10);
  };
  const auto py = [&](double y) { return kTop + (1 - y / y_max) * (kHeight - kTop - kBottom); };
  std::string svg = fmt::format("<h2>{}</h2><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">", title, kWidth, kHeight, title);
  for (int i = 0; i <= 4; ++i) {
    const double y = y_max * i / 4;
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft,
                       kWidth - 10, py(y), py(y), kLeft - 6, py(y) + 4, number(y));
  }
  for (int i = 0; i <= 4; ++i) {
    const double x = log_x ? std::pow(1 + x_max, i / 4.0) - 1 : x_max * i / 4;
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", px(x), kHeight - kBottom + 16, number(x));
  }
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"4\" y=\"10\">{}</text>", kWidth / 2, kHeight - 6, x_label, y_label);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // A screen has a thousand columns; more points only make the file large.
    const std::size_t stride = std::max<std::size_t>(1, lines[i].points.size() / 1000);
    std::string path;
    for (std::size_t k = 0; k < lines[i].points.size(); k += stride) {
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", px(lines[i].points[k].first), py(lines[i].points[k].second));
    }
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>", path, kColours[i % std::size(kColours)]);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" fill=\"{}\" text-anchor=\"end\">{}</text>", kWidth - 14, kTop + 14 + 15 * static_cast<double>(i),
                       kColours[i % std::size(kColours)], lines[i].name);
  }
  return svg + "</svg>";
}

double hours(Duration duration) { return static_cast<double>(duration.count()) / 3.6e9; }

Line wait_distribution(const Outcome& outcome) {
  Line line{outcome.policy, {}};
  std::vector<double> waits;
  for (const JobResult& job : outcome.jobs) {
    if (job.started) waits.push_back(static_cast<double>((job.start - job.submit).count()) / 1e6);
  }
  std::sort(waits.begin(), waits.end());
  for (std::size_t i = 0; i < waits.size(); ++i) line.points.emplace_back(waits[i], 100.0 * static_cast<double>(i + 1) / static_cast<double>(waits.size()));
  return line;
}

std::string tenant_table(const Outcome& outcome) {
  std::map<std::string, std::pair<double, std::int64_t>> by_queue;
  double total = 0;
  for (const JobResult& job : outcome.jobs) {
    if (!job.started) continue;
    const double gpu_hours = static_cast<double>(job.gpus) * hours(job.end - job.start);
    by_queue[job.queue].first += gpu_hours;
    ++by_queue[job.queue].second;
    total += gpu_hours;
  }
  std::string out = fmt::format("<h2>Share of each tenant ({})</h2><table><tr><th>tenant</th><th>jobs</th><th>GPU hours</th><th>share</th></tr>", outcome.policy);
  for (const auto& [queue, value] : by_queue) {
    const double share = total > 0 ? 100 * value.first / total : 0;
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{:.0f}</td><td><span class=\"bar\" style=\"width:{:.0f}px\"></span>{:.1f} %</td></tr>",
                       queue.empty() ? "-" : queue, value.second, value.first, share * 2, share);
  }
  return out + "</table>";
}

}  // namespace

std::string table(const std::vector<Summary>& rows) {
  std::string out = fmt::format("{:18} {:>8} {:>8} {:>10} {:>10} {:>10} {:>12} {:>10} {:>11} {:>6} {:>7}\n", "POLICY", "JOBS", "STARTED", "MEAN WAIT", "P50 WAIT", "P99 WAIT",
                                "WAIT >8 GPU", "MEAN JCT", "MAKESPAN", "UTIL", "EVICTED");
  for (const Summary& row : rows) {
    out += fmt::format("{:18} {:>8} {:>8} {:>9.0f}s {:>9.0f}s {:>9.0f}s {:>11.0f}s {:>9.0f}s {:>10.0f}s {:>5.1f}% {:>7}\n", row.policy, row.jobs, row.started, row.mean_wait_s,
                       row.p50_wait_s, row.p99_wait_s, row.mean_wait_big_s, row.mean_jct_s, row.makespan_s, row.utilisation * 100, row.evictions);
  }
  return out;
}

std::string to_json(const std::vector<Outcome>& outcomes) {
  json::Array array;
  for (const Outcome& outcome : outcomes) {
    const Summary summary = summarize(outcome);
    json::Object object;
    object["policy"] = summary.policy;
    object["jobs"] = summary.jobs;
    object["started"] = summary.started;
    object["evictions"] = summary.evictions;
    object["meanWaitSeconds"] = summary.mean_wait_s;
    object["p50WaitSeconds"] = summary.p50_wait_s;
    object["p99WaitSeconds"] = summary.p99_wait_s;
    object["meanWaitSecondsOver8Gpus"] = summary.mean_wait_big_s;
    object["meanJobSeconds"] = summary.mean_jct_s;
    object["makespanSeconds"] = summary.makespan_s;
    object["utilisation"] = summary.utilisation;
    array.push_back(std::move(object));
  }
  return json::dump_pretty(array) + "\n";
}

std::string to_html(const std::vector<Outcome>& outcomes) {
  std::vector<Line> used, waiting, stranded, waits;
  std::vector<Summary> summaries;
  for (const Outcome& outcome : outcomes) {
    summaries.push_back(summarize(outcome));
    Line u{outcome.policy, {}}, w{outcome.policy, {}}, s{outcome.policy, {}};
    for (const Sample& sample : outcome.samples) {
      const double at = hours(sample.at);
      u.points.emplace_back(at, outcome.gpus_total > 0 ? static_cast<double>(sample.gpu_milli_used) / 10.0 / static_cast<double>(outcome.gpus_total) : 0);
      w.points.emplace_back(at, static_cast<double>(sample.jobs_waiting));
      s.points.emplace_back(at, static_cast<double>(sample.gpus_stranded));
    }
    used.push_back(std::move(u));
    waiting.push_back(std::move(w));
    stranded.push_back(std::move(s));
    waits.push_back(wait_distribution(outcome));
  }
  std::string out =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Muster simulation</title><style>"
      "body{font:14px system-ui,sans-serif;max-width:820px;margin:2em auto;padding:0 1em;color:#1f2937;background:#fff}"
      "svg{width:100%;height:auto;font-size:11px}.grid{stroke:#e5e7eb}table{border-collapse:collapse}td,th{padding:2px 10px;text-align:right}"
      "td:first-child,th:first-child{text-align:left}.bar{display:inline-block;height:10px;background:#2563eb;margin-right:6px}pre{overflow-x:auto}"
      "@media(prefers-color-scheme:dark){body{background:#111827;color:#e5e7eb}svg text{fill:#e5e7eb}.grid{stroke:#374151}}</style>"
      "<h1>Muster simulation</h1><pre>" + table(summaries) + "</pre>";
  out += chart("GPUs in use", "hours", "percent", used, false);
  out += chart("Jobs waiting", "hours", "jobs", waiting, false);
  out += chart("How long jobs wait", "seconds waited (log)", "percent of jobs", waits, true);
  out += chart("Free GPUs on partly used nodes", "hours", "GPUs", stranded, false);
  for (const Outcome& outcome : outcomes) out += tenant_table(outcome);
  return out + "</html>\n";
}

}  // namespace muster::sim
