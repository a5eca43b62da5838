/// report: who used how much, how long jobs waited, and how good what was foretold was.
#include <fmt/core.h>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/answers.h"
#include "cli/view/tabwriter.h"
#include "cli/view/view_job.h"

namespace muster::cli {
namespace {

struct Column {
  const char* heading;
  std::string member;
};

std::string cell_of(const json::Value& row, const std::string& member) {
  const json::Value& value = json::at(row, member);
  if (value.is_string()) return json::text(value).empty() ? "-" : json::text(value);
  if (value.is_null()) return "-";
  if (member.ends_with("Seconds") && member != "gpuSeconds") {
    const double seconds =
        value.is_double() ? value.get_double() : static_cast<double>(json::as_int(value));
    return short_human_duration(Duration(static_cast<std::int64_t>(seconds * 1e6)));
  }
  if (member.ends_with("Hours") && value.is_double())
    return fmt::format("{:.1f}", value.get_double());
  return amount_text(value);
}

Task<int> report(Invocation& call, std::string path, std::vector<Column> columns, bool grouped) {
  Session& session = call.session;
  const Values& values = call.values;
  const std::string output = values.text("output");
  if (!output.empty() && output != "json" && output != "csv")
    co_return session.failed(fmt::format("-o {}: wanted json or csv", output));
  Parameters parameters{{"from", values.text("from")}, {"to", values.text("to")}};
  std::vector<Column> shown;
  if (grouped) {
    parameters.emplace_back("by", values.text("by"));
    if (path == "usage" && !values.text("step").empty()) {
      parameters.emplace_back("step", values.text("step"));
      shown.push_back({"DAY", "day"});
    }
    for (const std::string& field : split_nonempty(values.text("by"), ','))
      shown.push_back({nullptr, field});
  }
  shown.insert(shown.end(), columns.begin(), columns.end());
  auto answer = co_await ask(session, path, parameters);
  // Whoever may not look at the whole cluster sees the namespace they work in.
  if (!answer && answer.error().code == Code::kForbidden)
    answer = co_await ask(
        session, fmt::format("namespaces/{}/{}", session.ns, path), std::move(parameters));
  if (!answer) co_return session.failed(answer.error());
  const json::Array& items = json::array_at(*answer, "items");
  if (output == "json") {
    session.console.out(dump_arena_json(*answer) + "\n");
    co_return 0;
  }
  if (output == "csv") {
    std::vector<std::string> members;
    for (const Column& column : shown) members.push_back(column.member);
    if (path == "usage") members.emplace_back("gpuSeconds");
    session.console.out(csv_table(items, members));
    co_return 0;
  }
  Rows rows;
  std::vector<std::string> head;
  for (const Column& column : shown) {
    std::string name = column.heading != nullptr ? column.heading : column.member;
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    head.push_back(std::move(name));
  }
  rows.add(std::move(head));
  for (const json::Value& row : items) {
    std::vector<std::string> cells;
    for (const Column& column : shown) cells.push_back(cell_of(row, column.member));
    rows.add(std::move(cells));
  }
  rows.fit(session.console.columns());
  session.console.out(session.console.paint_table(rows.text()));
  co_return 0;
}

}  // namespace

Task<int> run_report_usage(Invocation& call) {
  std::vector<Column> columns{{"GPU-HOURS", "gpuHours"},
                              {"GUARANTEED", "guaranteedHours"},
                              {"OPPORTUNISTIC", "opportunisticHours"},
                              {"DISCARDED", "discardedHours"},
                              {"WAITED-FOR", "waitedHours"},
                              {"STARTED", "started"},
                              {"PREEMPTED", "preempted"},
                              {"OK", "succeeded"},
                              {"FAILED", "failed"},
                              {"STOPPED", "stopped"}};
  const int code = co_await report(call, "usage", std::move(columns), true);
  co_return code;
}

Task<int> run_report_waits(Invocation& call) {
  std::vector<Column> columns{{"JOBS", "jobs"},
                              {"P50", "p50Seconds"},
                              {"P90", "p90Seconds"},
                              {"P99", "p99Seconds"},
                              {"MOST", "mostSeconds"}};
  const int code = co_await report(call, "waits", std::move(columns), true);
  co_return code;
}

Task<int> run_report_accuracy(Invocation& call) {
  std::vector<Column> columns{{"BASIS", "basis"},
                              {"JUDGED", "judged"},
                              {"UNANSWERED", "unanswered"},
                              {"ERR", "err"},
                              {"ERR-P75", "errP75"},
                              {"X2", "x2"},
                              {"HOLDS", "holds"}};
  const int code = co_await report(call, "accuracy", std::move(columns), false);
  co_return code;
}

}  // namespace muster::cli
