/// history: jobs that have ended, also deleted ones, and what happened to one of them.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/answers.h"
#include "cli/view/tabwriter.h"
#include "cli/view/view_job.h"

namespace muster::cli {
namespace {

using json::at;

std::string span_text(const json::Value& from, const json::Value& to) {
  const auto begin = parse_time(json::as_string(from)), end = parse_time(json::as_string(to));
  return begin && end ? short_human_duration(*end - *begin) : std::string("-");
}

std::string table_of(const json::Value& answer, bool with_namespace, int columns) {
  Rows rows;
  std::vector<std::string> head{
      "NAME", "KIND", "USER", "QUEUE", "STATE", "GPUS", "WAITED", "RAN", "RUNS", "ENDED"};
  if (with_namespace) head.insert(head.begin(), "NAMESPACE");
  rows.add(std::move(head));
  for (const json::Value& row : json::array_at(answer, "items")) {
    std::vector<std::string> cells{json::text_at(row, "job"),
                                   json::text_at(row, "kind"),
                                   json::text_at(row, "user"),
                                   json::text_at(row, "queue"),
                                   json::text_at(row, "state"),
                                   amount_text(at(row, "shape", "gpus")),
                                   span_text(at(row, "submitted"), at(row, "started")),
                                   span_text(at(row, "started"), at(row, "ended")),
                                   amount_text(at(row, "attempts")),
                                   answer_time(at(row, "ended"))};
    if (with_namespace) cells.insert(cells.begin(), json::text_at(row, "namespace"));
    rows.add(std::move(cells));
  }
  rows.shrinkable = {0, 2, 3};
  rows.fit(columns);
  return rows.text();
}

std::string entry_text(const json::Value& entry) {
  const std::string_view what = json::string_at(entry, "what");
  const auto text = [&](const char* key) { return json::text_at(entry, key); };
  if (what == "submitted") return fmt::format("submitted\tby {}", text("user"));
  if (what == "waits") {
    std::string line = fmt::format("waits\t{}", text("reason"));
    if (!text("subject").empty()) line += fmt::format(" ({})", text("subject"));
    if (!text("text").empty()) line += ": " + replace_all(text("text"), "\n", " ");
    if (!text("until").empty())
      line += fmt::format(", for {}", span_text(at(entry, "at"), at(entry, "until")));
    return line;
  }
  if (what == "foretold") {
    if (text("p50").empty()) return fmt::format("forecast\tnone: {}", text("because"));
    return fmt::format("forecast\tstarts about {}, 8 in 10 between {} and {} ({}){}",
                       answer_time(at(entry, "p50")),
                       answer_time(at(entry, "p10")),
                       answer_time(at(entry, "p90")),
                       text("basis"),
                       text("because").empty() ? "" : ": " + text("because"));
  }
  if (what == "started") {
    std::vector<std::string> nodes;
    for (const json::Value& node : json::array_at(entry, "nodes"))
      nodes.push_back(json::text(node));
    const std::size_t more = nodes.size() > 4 ? nodes.size() - 4 : 0;
    if (more > 0) nodes.resize(4);
    return fmt::format("started\tattempt {}, {} GPUs on {}{}",
                       amount_text(at(entry, "attempt")),
                       amount_text(at(entry, "gpus")),
                       join(nodes, ", "),
                       more > 0 ? fmt::format(" and {} more nodes", more) : "");
  }
  if (what == "left")
    return fmt::format("{}\tattempt {}{}",
                       text("how"),
                       amount_text(at(entry, "attempt")),
                       text("by").empty() ? "" : ", for " + text("by"));
  std::string line = fmt::format("ended\t{}", text("state"));
  if (!at(entry, "exit").is_null()) line += ", exit code " + amount_text(at(entry, "exit"));
  if (!text("phrase").empty()) line += ", " + text("phrase");
  return line;
}

std::string records_of(const std::string& ns) { return fmt::format("namespaces/{}/records", ns); }

Task<int> show_timeline(Session& session, std::string name, std::string output) {
  const auto found =
      co_await ask(session, records_of(session.ns), {{"name", name}, {"limit", "1"}});
  if (!found) co_return session.failed(found.error());
  const json::Array& items = json::array_at(*found, "items");
  if (items.empty())
    co_return session.failed(fmt::format(
        "there is no record of a job {} in namespace {}; `{} history -A` lists those of all you may see",
        name,
        session.ns,
        session.program));
  const auto timeline = co_await ask(
      session,
      fmt::format("{}/{}/timeline", records_of(session.ns), json::string_at(items[0], "uid")),
      {});
  if (!timeline) co_return session.failed(timeline.error());
  if (output == "json") {
    session.console.out(dump_arena_json(*timeline) + "\n");
    co_return 0;
  }
  std::string table;
  for (const json::Value& entry : json::array_at(*timeline, "entries"))
    table += fmt::format("{}\t{}\n", answer_time(at(entry, "at")), entry_text(entry));
  session.console.out(fmt::format("{} ({}, {}) is {}\n",
                                  json::string_at(*timeline, "job"),
                                  json::string_at(*timeline, "kind"),
                                  json::string_at(*timeline, "user"),
                                  json::string_at(*timeline, "state")));
  session.console.out(session.console.paint_table(tabulate(table)));
  co_return 0;
}

/// A trace as `muster sim` reads it; times count from the first submission.
std::string trace_of(const json::Value& answer) {
  struct Line {
    Time submitted;
    std::string text;
  };
  std::vector<const json::Value*> ended;
  for (const json::Value& row : json::array_at(answer, "items")) {
    if (at(row, "started").is_string() && at(row, "ended").is_string()) ended.push_back(&row);
  }
  std::sort(ended.begin(), ended.end(), [](const json::Value* a, const json::Value* b) {
    const auto key = [](const json::Value& row) {
      return std::pair(json::string_at(row, "submitted"), json::string_at(row, "uid"));
    };
    return key(*a) < key(*b);
  });
  std::string out = "name,user,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib\n";
  Time first;
  for (const json::Value* row : ended) {
    const auto submitted = parse_time(json::string_at(*row, "submitted"));
    const auto started = parse_time(json::string_at(*row, "started"));
    const auto over = parse_time(json::string_at(*row, "ended"));
    if (!submitted || !started || !over) continue;
    if (!first) first = *submitted;
    const std::int64_t tasks = std::max<std::int64_t>(1, json::int_at(*row, "shape", "tasks"));
    const json::Value& gpus = at(*row, "shape", "gpus");
    const double all =
        gpus.is_double() ? gpus.get_double() : static_cast<double>(json::as_int(gpus));
    out += fmt::format("{},{},{},0,{},{},{},{},0,0\n",
                       csv_cell(json::string_at(*row, "job")),
                       csv_cell(json::string_at(*row, "user")),
                       csv_cell(json::string_at(*row, "queue")),
                       submitted->seconds() - first.seconds(),
                       std::max<std::int64_t>(1, over->seconds() - started->seconds()),
                       tasks,
                       static_cast<std::int64_t>(all) / tasks);
  }
  return out;
}

}  // namespace

Task<int> run_history(Invocation& call) {
  Session& session = call.session;
  const Values& values = call.values;
  const std::string output = values.text("output"), exported = values.text("export");
  if (!exported.empty() && exported != "trace")
    co_return session.failed(fmt::format("--export {}: wanted trace", exported));
  if (!output.empty() && output != "json" && output != "csv")
    co_return session.failed(fmt::format("-o {}: wanted json or csv", output));
  if (!values.args.empty()) {
    const int code = co_await show_timeline(session, values.args[0], output);
    co_return code;
  }
  const bool all = values.yes("all-namespaces");
  const auto answer = co_await ask(session,
                                   all ? "records" : records_of(session.ns),
                                   {{"user", values.text("user")},
                                    {"queue", values.text("queue")},
                                    {"state", values.text("state")},
                                    {"since", values.text("since")},
                                    {"until", values.text("until")},
                                    {"limit", exported.empty() ? values.text("limit") : "10000"}});
  if (!answer) co_return session.failed(answer.error());
  const json::Array& items = json::array_at(*answer, "items");
  if (!exported.empty()) {
    session.console.out(trace_of(*answer));
  } else if (output == "json") {
    session.console.out(dump_arena_json(*answer) + "\n");
  } else if (output == "csv") {
    session.console.out(csv_table(items,
                                  {"namespace",
                                   "job",
                                   "kind",
                                   "user",
                                   "queue",
                                   "state",
                                   "attempts",
                                   "preempted",
                                   "gpuSeconds",
                                   "submitted",
                                   "started",
                                   "ended"}));
  } else if (items.empty()) {
    session.console.info("No job is on record here yet");
  } else {
    session.console.out(
        session.console.paint_table(table_of(*answer, all, session.console.columns())));
  }
  co_return 0;
}

}  // namespace muster::cli
