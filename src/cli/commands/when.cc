/// when: when jobs that wait will start.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/answers.h"
#include "cli/view/starts.h"
#include "cli/view/tabwriter.h"
#include "cli/view/view_job.h"

namespace muster::cli {
namespace {

using json::at;

/// What people call a job of an answer: of "team/job/train" the last part, unless it has another name.
std::string called(const json::Value& row) {
  const std::string name = json::text_at(row, "name");
  if (!name.empty()) return name;
  const std::string job = json::text_at(row, "job");
  return job.substr(job.rfind('/') == std::string::npos ? 0 : job.rfind('/') + 1);
}

/// Whether the job is meant: by what people call it, or by the name of its object.
bool is_named(const json::Value& item, std::string_view name) {
  return called(item) == name || split(json::string_at(item, "job"), '/').back() == name;
}

std::string table_of(const json::Array& items, bool with_namespace, Time now, int columns) {
  Rows rows;
  std::vector<std::string> head{
      "NAME", "GPUS", "PLACE", "WAITED", "START", "RANGE", "BASIS", "WAITS-FOR"};
  if (with_namespace) head.insert(head.begin(), "NAMESPACE");
  rows.add(std::move(head));
  for (const json::Value& item : items) {
    const std::vector<std::string> parts = split(json::string_at(item, "job"), '/');
    const json::Value& start = at(item, "start");
    const auto submitted = parse_time(json::string_at(item, "submitted"));
    std::vector<std::string> waits_for;
    for (const json::Value& one : json::array_at(item, "waitsFor"))
      waits_for.push_back(called(one));
    const std::string why = json::string_at(start, "basis") == "none"
                                ? json::text_at(item, "refusal", "reason")
                                : join(waits_for, ", ");
    std::vector<std::string> cells{
        called(item),
        amount_text(at(item, "gpus")),
        fmt::format("{} of {}", json::int_at(item, "place"), json::int_at(item, "of")),
        submitted ? short_human_duration(now - *submitted) : "-",
        moment_text(at(start, "p50"), now),
        range_text(start, now),
        json::text_at(start, "basis"),
        why.empty() ? "-" : why};
    if (with_namespace) cells.insert(cells.begin(), parts.front());
    rows.add(std::move(cells));
  }
  rows.shrinkable = {0, with_namespace ? std::size_t{8} : std::size_t{7}};
  rows.fit(columns);
  return rows.text();
}

/// What a watcher looks for: anything but the passing of time.
std::string story_of(const json::Array& items) {
  std::string out;
  for (const json::Value& item : items)
    out += fmt::format("{} {} {} {} {}\n",
                       json::string_at(item, "job"),
                       json::int_at(item, "place"),
                       json::string_at(item, "start", "p50").substr(0, 16),
                       json::string_at(item, "start", "basis"),
                       json::string_at(item, "refusal", "reason"));
  return out;
}

constexpr Duration kLook = std::chrono::seconds(5);

/// One look; `last` is what was shown before. Gives the exit code, or -1 while something waits.
Task<int> show(Invocation& call, std::string& last) {
  Session& session = call.session;
  const Values& values = call.values;
  const std::string output = values.text("output");
  const bool all = values.yes("all-namespaces") || !values.text("queue").empty();
  const std::string path = all ? "when" : fmt::format("namespaces/{}/when", session.ns);
  const auto answer = co_await ask(
      session, path, {{"queue", values.text("queue")}, {"limit", values.text("limit")}});
  if (!answer) co_return session.failed(answer.error());
  json::Array items;
  for (const json::Value& item : json::array_at(*answer, "items")) {
    const bool asked = std::any_of(values.args.begin(),
                                   values.args.end(),
                                   [&](const std::string& name) { return is_named(item, name); });
    if (values.args.empty() || asked) items.push_back(item);
  }
  for (const std::string& name : values.args) {
    const bool found = std::any_of(
        items.begin(), items.end(), [&](const json::Value& item) { return is_named(item, name); });
    // One that was watched has started, or is gone.
    if (!found && last.empty())
      co_return session.failed(fmt::format(
          "{} is not waiting here; `{} explain {}` shows its state", name, session.program, name));
  }
  const std::string story = story_of(items);
  if (output == "json") {
    const bool over = items.empty();
    json::Object shown = answer->as_object();
    shown["items"] = std::move(items);
    if (last.empty() || story != last) session.console.out(dump_arena_json(shown) + "\n");
    session.console.flush();
    last = story;
    co_return over ? 0 : -1;
  }
  if (items.empty()) {
    session.console.info(last.empty()          ? "Nothing waits"
                         : values.args.empty() ? "Nothing waits any more"
                                               : join(values.args, ", ") + ": no longer waiting");
    co_return 0;
  }
  std::string text = table_of(items, all, session.now(), session.console.columns());
  if (const std::int64_t others = json::int_at(*answer, "others", "jobs"); all && others > 0)
    text += fmt::format("and {} of other teams\n", others);
  if (story != last) {
    if (!last.empty()) session.console.out("\n");
    session.console.out(session.console.paint_table(text));
    session.console.flush();
    last = story;
  }
  co_return -1;
}

}  // namespace

Task<int> run_when(Invocation& call) {
  Session& session = call.session;
  const Values& values = call.values;
  const std::string output = values.text("output");
  if (!output.empty() && output != "json")
    co_return session.failed(fmt::format("-o {}: wanted json", output));
  const bool not_submitted = values.given("file") || values.given("gpus");
  for (const char* flag : {"exit-code", "tasks", "for"}) {
    if (!not_submitted && values.given(flag))
      co_return session.failed(fmt::format(
          "--{} is about a job that is not submitted: use it with --file or --gpus", flag));
  }
  if (not_submitted) {
    const int code = co_await check_jobs(call);
    co_return code;
  }
  std::string last;
  for (;;) {
    const int code = co_await show(call, last);
    if (code >= 0) co_return code;
    if (!values.yes("watch")) co_return 0;
    co_await session.env.sleep(kLook);
  }
}

}  // namespace muster::cli
