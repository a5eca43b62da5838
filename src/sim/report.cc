#include "sim/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "json/json.h"

namespace muster::sim {
namespace {

constexpr std::string_view kColours[] = {"#2563eb",
                                         "#d97706",
                                         "#059669",
                                         "#dc2626",
                                         "#7c3aed",
                                         "#0891b2",
                                         "#be185d",
                                         "#65a30d",
                                         "#6b7280"};
constexpr std::size_t kColourCount = std::size(kColours);

struct Line {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

double seconds_of(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }
double hours(Duration duration) { return seconds_of(duration) / 3600; }

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string number(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 10'000) return fmt::format("{:g}k", value / 1000);
  return fmt::format("{:g}", value);
}

/// "45 s", "12 min", "3.5 h", "2.1 d".
std::string time_text(double s) {
  if (s < 100) return fmt::format("{:.0f} s", s);
  if (s < 6000) return fmt::format("{:.1f} min", s / 60);
  if (s < 360'000) return fmt::format("{:.1f} h", s / 3600);
  return fmt::format("{:.1f} d", s / 86'400);
}

/// 1, 2 or 5 times a power of ten, so that about `count` of them cover the range.
double nice_step(double range, int count) {
  const double raw = std::max(range, 1e-9) / count;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

/// The frame of a chart: where values fall, grid, axis labels, legend below.
class Frame {
 public:
  static constexpr double kWidth = 800, kHeight = 270, kLeft = 52, kRight = 12, kTop = 12,
                          kBottom = 34;

  Frame(double x_max, double y_max, bool log_x) : x_max_(std::max(x_max, 1e-9)), log_x_(log_x) {
    y_step_ = nice_step(y_max > 0 ? y_max : 1, 5);
    y_max_ = y_step_ * std::ceil((y_max > 0 ? y_max : 1) / y_step_ - 1e-9);
  }
  [[nodiscard]] double x(double value) const {
    const double share = log_x_ ? std::log10(1 + value) / std::log10(1 + x_max_) : value / x_max_;
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double value) const {
    return kTop + (1 - value / y_max_) * (kHeight - kTop - kBottom);
  }

  [[nodiscard]] std::string grid(const std::string& y_unit) const {
    std::string out;
    for (double v = 0; v <= y_max_ + y_step_ / 2; v += y_step_) {
      out += fmt::format(
          "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}{}</text>",
          kLeft,
          kWidth - kRight,
          y(v),
          y(v),
          kLeft - 6,
          y(v) + 4,
          number(v),
          y_unit);
    }
    for (const auto& [value, label] : x_ticks()) {
      out += fmt::format(
          "<line class=\"tick\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\"/><text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
          x(value),
          x(value),
          kHeight - kBottom,
          kHeight - kBottom + 4,
          x(value),
          kHeight - kBottom + 18,
          label);
    }
    return out;
  }

 private:
  /// Hours or days on a plain axis; seconds to days on a logarithmic one.
  [[nodiscard]] std::vector<std::pair<double, std::string>> x_ticks() const {
    std::vector<std::pair<double, std::string>> ticks;
    if (log_x_) {
      const std::pair<double, const char*> all[] = {{0, "0"},
                                                    {10, "10 s"},
                                                    {60, "1 min"},
                                                    {600, "10 min"},
                                                    {3600, "1 h"},
                                                    {21'600, "6 h"},
                                                    {86'400, "1 d"},
                                                    {604'800, "7 d"},
                                                    {2'592'000, "30 d"}};
      for (const auto& [value, label] : all) {
        if (value <= x_max_) ticks.emplace_back(value, label);
      }
      return ticks;
    }
    const bool days = x_max_ > 72;
    const double unit = days ? 24 : 1;
    const double step = std::max(1.0, nice_step(x_max_ / unit, 8));
    for (double v = 0; v * unit <= x_max_ + 1e-9; v += step)
      ticks.emplace_back(v * unit, fmt::format("{:g}{}", v, days ? " d" : " h"));
    return ticks;
  }

  double x_max_, y_max_ = 1, y_step_ = 1;
  bool log_x_;
};

std::string legend(const std::vector<std::string>& names) {
  std::string out = "<p class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>",
                       kColours[i % kColourCount],
                       escape(names[i]));
  }
  return out + "</p>";
}

std::string open_svg(const std::string& title, const std::string& note) {
  return fmt::format(
      "<section><h2>{}</h2><p class=\"note\">{}</p><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
      title,
      note,
      Frame::kWidth,
      Frame::kHeight,
      title);
}

std::string line_chart(const std::string& title,
                       const std::string& note,
                       const std::string& unit,
                       const std::vector<Line>& lines,
                       bool log_x) {
  double x_max = 0, y_max = 0;
  for (const Line& line : lines) {
    for (const auto& [x, y] : line.points) {
      x_max = std::max(x_max, x);
      y_max = std::max(y_max, y);
    }
  }
  const Frame frame(x_max, y_max, log_x);
  std::string svg = open_svg(title, note) + frame.grid(unit);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string path;
    for (const auto& [x, y] : lines[i].points)
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", frame.x(x), frame.y(y));
    svg += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-linejoin=\"round\"/>",
        path,
        kColours[i % kColourCount]);
    names.push_back(lines[i].name);
  }
  return svg + "</svg>" + legend(names) + "</section>";
}

/// Means over equal spans of time: a screen has some hundred columns, a trace has a hundred
/// thousand changes.
std::vector<std::pair<double, double>> over_time(
    const Outcome& outcome, const std::function<double(const Sample&)>& value) {
  constexpr int kColumns = 240;
  std::vector<std::pair<double, double>> points;
  const double end = std::max(seconds_of(outcome.makespan), 1.0);
  std::vector<double> sum(kColumns), weight(kColumns);
  for (std::size_t k = 0; k < outcome.samples.size(); ++k) {
    double from = seconds_of(outcome.samples[k].at);
    const double to = k + 1 < outcome.samples.size() ? seconds_of(outcome.samples[k + 1].at) : end;
    const double v = value(outcome.samples[k]);
    while (from < to) {
      const int column = std::min(kColumns - 1, static_cast<int>(from / end * kColumns));
      const double edge = std::min(to, column == kColumns - 1 ? to : end * (column + 1) / kColumns);
      const double span = std::max(edge - from, end * 1e-9);
      sum[static_cast<std::size_t>(column)] += v * span;
      weight[static_cast<std::size_t>(column)] += span;
      from += span;
    }
  }
  for (int c = 0; c < kColumns; ++c) {
    const auto i = static_cast<std::size_t>(c);
    if (weight[i] > 0) points.emplace_back(end * (c + 0.5) / kColumns / 3600, sum[i] / weight[i]);
  }
  return points;
}

Line wait_distribution(const Outcome& outcome) {
  Line line{outcome.policy, {}};
  std::vector<double> waits;
  for (const JobResult& job : outcome.jobs) {
    if (job.started) waits.push_back(seconds_of(job.start - job.submit));
  }
  std::sort(waits.begin(), waits.end());
  const std::size_t stride = std::max<std::size_t>(1, waits.size() / 400);
  for (std::size_t i = 0; i < waits.size(); i += stride) {
    line.points.emplace_back(
        waits[i], 100.0 * static_cast<double>(i + 1) / static_cast<double>(waits.size()));
  }
  if (!waits.empty()) line.points.emplace_back(waits.back(), 100.0);
  return line;
}

struct TenantUse {
  std::size_t queue = 0;
  double gpu_hours = 0, wait_s = 0;
  std::int64_t jobs = 0;
};

/// The largest first.
std::vector<TenantUse> tenants_of(const Outcome& outcome) {
  std::map<std::string, std::size_t> position;
  std::vector<TenantUse> uses(outcome.queues.size());
  for (std::size_t q = 0; q < outcome.queues.size(); ++q) {
    position[outcome.queues[q]] = q;
    uses[q].queue = q;
  }
  for (const JobResult& job : outcome.jobs) {
    if (!job.started) continue;
    TenantUse& use = uses[position[job.queue]];
    use.gpu_hours += static_cast<double>(job.gpus) * hours(job.end - job.start);
    use.wait_s += seconds_of(job.start - job.submit);
    ++use.jobs;
  }
  std::stable_sort(uses.begin(), uses.end(), [](const TenantUse& a, const TenantUse& b) {
    return a.gpu_hours > b.gpu_hours;
  });
  return uses;
}

std::string queue_name(const Outcome& outcome, std::size_t queue) {
  return outcome.queues[queue].empty() ? "-" : outcome.queues[queue];
}

/// GPUs of each tenant over time, stacked; the small ones together.
std::string tenant_chart(const Outcome& outcome, const std::vector<TenantUse>& uses) {
  constexpr std::size_t kShown = kColourCount - 1;
  const std::size_t bands = std::min(uses.size(), kShown + 1);
  const auto value = [&](const Sample& sample, std::size_t band) {
    double milli = 0;
    for (std::size_t k = band; k < (band == kShown ? uses.size() : band + 1); ++k)
      milli += static_cast<double>(sample.by_queue[uses[k].queue]);
    return milli / 1000;
  };
  std::vector<std::vector<std::pair<double, double>>> series;
  for (std::size_t b = 0; b < bands; ++b)
    series.push_back(over_time(outcome, [&](const Sample& sample) { return value(sample, b); }));
  if (series.empty() || series[0].empty()) return "";
  const Frame frame(hours(outcome.makespan), static_cast<double>(outcome.gpus_total), false);
  std::string svg =
      open_svg(fmt::format("GPUs of each tenant: {}", escape(outcome.policy)),
               "GPUs in use, stacked; the line at the top of the scale is the whole cluster.") +
      frame.grid("");
  std::vector<double> below(series[0].size());
  std::vector<std::string> names;
  for (std::size_t b = 0; b < bands; ++b) {
    std::string upper, lower;
    for (std::size_t i = 0; i < series[b].size(); ++i) {
      const double x = frame.x(series[b][i].first);
      lower = fmt::format("L{:.1f},{:.1f}", x, frame.y(below[i])) + lower;
      below[i] += series[b][i].second;
      upper += fmt::format("{}{:.1f},{:.1f}", upper.empty() ? "M" : "L", x, frame.y(below[i]));
    }
    svg += fmt::format("<path d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.8\"/>",
                       upper,
                       lower,
                       kColours[b % kColourCount]);
    names.push_back(b == kShown ? fmt::format("{} others", uses.size() - kShown)
                                : queue_name(outcome, uses[b].queue));
  }
  return svg + "</svg>" + legend(names) + "</section>";
}

std::string tenant_table(const Outcome& outcome, const std::vector<TenantUse>& uses) {
  double total = 0;
  for (const TenantUse& use : uses) total += use.gpu_hours;
  std::string out =
      "<table><tr><th>tenant</th><th>jobs</th><th>GPU hours</th><th>mean wait</th><th class=\"wide\">share</th></tr>";
  for (const TenantUse& use : uses) {
    const double share = total > 0 ? 100 * use.gpu_hours / total : 0;
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.0f}</td><td>{}</td><td class=\"wide\"><span class=\"bar\" style=\"width:{:.1f}%\"></span>{:.1f} %</td></tr>",
        escape(queue_name(outcome, use.queue)),
        use.jobs,
        use.gpu_hours,
        time_text(use.jobs > 0 ? use.wait_s / static_cast<double>(use.jobs) : 0),
        share * 0.7,
        share);
  }
  return out + "</table>";
}

/// One row a policy; the best of each column stands out.
std::string summary_table(const std::vector<Summary>& rows) {
  struct Column {
    const char* title;
    double (*value)(const Summary&);
    std::string (*text)(double);
    bool more_is_better;
  };
  const auto percent = [](double v) { return fmt::format("{:.1f} %", v * 100); };
  const auto count = [](double v) { return fmt::format("{:.0f}", v); };
  const Column columns[] = {
      {"mean wait", [](const Summary& s) { return s.mean_wait_s; }, time_text, false},
      {"median wait", [](const Summary& s) { return s.p50_wait_s; }, time_text, false},
      {"99 % wait", [](const Summary& s) { return s.p99_wait_s; }, time_text, false},
      {"mean wait, more than 8 GPUs",
       [](const Summary& s) { return s.mean_wait_big_s; },
       time_text,
       false},
      {"mean time to completion", [](const Summary& s) { return s.mean_jct_s; }, time_text, false},
      {"GPUs in use", [](const Summary& s) { return s.utilisation; }, percent, true},
      {"free GPUs stranded", [](const Summary& s) { return s.fragmentation; }, percent, false},
      {"jobs evicted",
       [](const Summary& s) { return static_cast<double>(s.evictions); },
       count,
       false},
  };
  std::string out = "<table class=\"summary\"><tr><th>policy</th><th>jobs started</th>";
  for (const Column& column : columns) out += fmt::format("<th>{}</th>", column.title);
  out += "</tr>";
  for (const Summary& row : rows) {
    out +=
        fmt::format("<tr><td>{}</td><td>{} of {}</td>", escape(row.policy), row.started, row.jobs);
    for (const Column& column : columns) {
      const double mine = column.value(row);
      const bool best =
          rows.size() > 1 && std::all_of(rows.begin(), rows.end(), [&](const Summary& other) {
            return column.more_is_better ? column.value(other) <= mine
                                         : column.value(other) >= mine;
          });
      out += fmt::format("<td{}>{}</td>", best ? " class=\"best\"" : "", column.text(mine));
    }
    out += "</tr>";
  }
  return out + "</table>";
}

}  // namespace

std::string table(const std::vector<Summary>& rows) {
  std::string out =
      fmt::format("{:18} {:>8} {:>8} {:>10} {:>10} {:>10} {:>12} {:>10} {:>11} {:>6} {:>7}\n",
                  "POLICY",
                  "JOBS",
                  "STARTED",
                  "MEAN WAIT",
                  "P50 WAIT",
                  "P99 WAIT",
                  "WAIT >8 GPU",
                  "MEAN JCT",
                  "MAKESPAN",
                  "UTIL",
                  "EVICTED");
  for (const Summary& row : rows) {
    out += fmt::format(
        "{:18} {:>8} {:>8} {:>9.0f}s {:>9.0f}s {:>9.0f}s {:>11.0f}s {:>9.0f}s {:>10.0f}s {:>5.1f}% {:>7}\n",
        row.policy,
        row.jobs,
        row.started,
        row.mean_wait_s,
        row.p50_wait_s,
        row.p99_wait_s,
        row.mean_wait_big_s,
        row.mean_jct_s,
        row.makespan_s,
        row.utilisation * 100,
        row.evictions);
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
    object["freeGpusStranded"] = summary.fragmentation;
    json::Array tenants;
    for (const TenantUse& use : tenants_of(outcome)) {
      json::Object tenant;
      tenant["name"] = outcome.queues[use.queue];
      tenant["jobs"] = use.jobs;
      tenant["gpuHours"] = use.gpu_hours;
      tenant["meanWaitSeconds"] = use.jobs > 0 ? use.wait_s / static_cast<double>(use.jobs) : 0.0;
      tenants.push_back(std::move(tenant));
    }
    object["tenants"] = std::move(tenants);
    array.push_back(std::move(object));
  }
  return json::dump_pretty(array) + "\n";
}

std::string to_html(const std::vector<Outcome>& outcomes) {
  std::vector<Line> used, waiting, stranded, waits;
  std::vector<Summary> summaries;
  for (const Outcome& outcome : outcomes) {
    summaries.push_back(summarize(outcome));
    const double all = static_cast<double>(std::max<std::int64_t>(outcome.gpus_total, 1));
    used.push_back({outcome.policy, over_time(outcome, [&](const Sample& s) {
                      return static_cast<double>(s.gpu_milli_used) / 10 / all;
                    })});
    waiting.push_back({outcome.policy, over_time(outcome, [](const Sample& s) {
                         return static_cast<double>(s.jobs_waiting);
                       })});
    stranded.push_back({outcome.policy, over_time(outcome, [&](const Sample& s) {
                          return 100 * static_cast<double>(s.gpus_stranded) / all;
                        })});
    waits.push_back(wait_distribution(outcome));
  }
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><title>Muster simulation</title><style>"
      ":root{--ink:#1f2937;--dim:#6b7280;--paper:#fff;--rule:#e5e7eb;--best:#ecfdf5}"
      "body{font:14px/1.45 system-ui,sans-serif;max-width:880px;margin:2em auto;padding:0 1em;color:var(--ink);background:var(--paper)}"
      "h1{margin-bottom:0}h2{font-size:1.1em;margin:1.8em 0 0}.note{color:var(--dim);margin:.1em 0 .4em}"
      "svg{width:100%;height:auto;font-size:11px}svg text{fill:var(--dim)}.grid{stroke:var(--rule)}.tick{stroke:var(--dim)}"
      ".legend{margin:.2em 0 0 52px}.legend span{margin-right:1.4em;white-space:nowrap}.legend i{display:inline-block;width:12px;height:12px;border-radius:3px;margin-right:6px;vertical-align:-1px}"
      "table{border-collapse:collapse;width:100%;margin-top:.8em}td,th{padding:4px 8px;text-align:right;border-bottom:1px solid var(--rule);font-variant-numeric:tabular-nums}"
      "th{color:var(--dim);font-weight:500;vertical-align:bottom}td:first-child,th:first-child{text-align:left}td.wide,th.wide{text-align:left;width:34%}.best{background:var(--best);font-weight:600}"
      ".bar{display:inline-block;height:10px;background:#2563eb;border-radius:2px;margin-right:6px}"
      "@media(prefers-color-scheme:dark){:root{--ink:#e5e7eb;--dim:#9ca3af;--paper:#111827;--rule:#374151;--best:#064e3b}}"
      "</style></head><body><h1>Muster simulation</h1>";
  if (!outcomes.empty()) {
    out += fmt::format(
        "<p class=\"note\">{} jobs of {} tenants on {} GPUs; the last job ended after {}.</p>",
        outcomes[0].jobs.size(),
        outcomes[0].queues.size(),
        outcomes[0].gpus_total,
        time_text(seconds_of(outcomes[0].makespan)));
  }
  out += summary_table(summaries);
  out +=
      line_chart("GPUs in use", "Share of all GPUs over the time of the trace.", "%", used, false);
  out += line_chart("Jobs waiting", "Jobs submitted and not running.", "", waiting, false);
  out += line_chart("How long jobs wait",
                    "Share of jobs that started within this time (logarithmic).",
                    "%",
                    waits,
                    true);
  out += line_chart(
      "Fragmentation",
      "Free GPUs on nodes that are partly used, as a share of all GPUs: too few in one place for a large job.",
      "%",
      stranded,
      false);
  for (const Outcome& outcome : outcomes) {
    const std::vector<TenantUse> uses = tenants_of(outcome);
    out += tenant_chart(outcome, uses);
    out += tenant_table(outcome, uses);
  }
  return out + "</body></html>\n";
}

}  // namespace muster::sim
