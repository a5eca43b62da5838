/// whatif: a change, tried on a copy of the cluster.
#include <fmt/core.h>

#include <algorithm>

#include "base/files.h"
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/answers.h"
#include "cli/view/starts.h"
#include "cli/view/tabwriter.h"
#include "cli/view/view_job.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

using json::at;

/// "node-1@2h" is node-1, in two hours.
struct Timed {
  std::string what, at;
};
Timed timed(const std::string& text) {
  const std::size_t mark = text.rfind('@');
  if (mark == std::string::npos) return {text, ""};
  return {text.substr(0, mark), text.substr(mark + 1)};
}

json::Object change(std::string_view word, json::Value body, const std::string& at) {
  json::Object out{{word, std::move(body)}};
  if (!at.empty()) out["at"] = at;
  return out;
}

/// Reads the flags into changes as the API takes them. The first that is wrong stays in `wrong`.
class ChangeFlags {
 public:
  ChangeFlags(const Values& values, std::string ns) : values_(values), ns_(std::move(ns)) {}

  Result<json::Array> read() {
    each("add-nodes", [&](const std::string& text) { return add_nodes(text); });
    each("remove-node", [&](const std::string& text) { return of_node("removeNodes", text); });
    each("drain", [&](const std::string& text) { return of_node("drain", text); });
    each("stop", [&](const std::string& text) {
      const Timed t = timed(text);
      return put("stop", json::Object{{"jobs", json::Array{json::Value(job(t.what))}}}, t.at);
    });
    each("submit", [&](const std::string& text) { return submit(text); });
    each("priority", [&](const std::string& text) { return of_job("priority", "class", text); });
    each("lasts", [&](const std::string& text) { return of_job("lasts", "duration", text); });
    each("queue", [&](const std::string& text) { return of_queue(text); });
    for (const char* word : {"hived", "policy"}) {
      if (!wrong_ && values_.given(word)) from_file(word);
    }
    if (!wrong_ && values_.given("file")) more();
    if (wrong_) return fail(*wrong_);
    return std::move(out_);
  }

 private:
  template <typename F>
  void each(const char* flag, F&& read_one) {
    for (const std::string& text : values_.list(flag)) {
      if (wrong_) return;
      read_one(text);
    }
  }
  void put(std::string_view word, json::Value body, const std::string& at) {
    out_.push_back(change(word, std::move(body), at));
  }
  void refuse(std::string message) {
    Error error;
    error.code = Code::kBadRequest;
    error.message = std::move(message);
    wrong_ = std::move(error);
  }
  [[nodiscard]] std::string job(const std::string& name) const {
    return name.find('/') == std::string::npos ? ns_ + "/" + name : name;
  }

  void add_nodes(const std::string& text) {
    const Timed t = timed(text);
    const std::size_t colon = t.what.find(':');
    const std::string shape = t.what.substr(0, colon);
    const std::size_t x = shape.find('x');
    const auto count = parse_int(shape.substr(0, x));
    const auto gpus = x == std::string::npos ? count : parse_int(shape.substr(x + 1));
    if (!count || !gpus || x == std::string::npos)
      return refuse(
          fmt::format("--add-nodes {}: wanted how many of how many GPUs, such as 4x8", text));
    json::Object body{{"count", *count}, {"gpus", *gpus}};
    if (colon != std::string::npos) body["model"] = t.what.substr(colon + 1);
    put("addNodes", std::move(body), t.at);
  }

  void of_node(std::string_view word, const std::string& text) {
    const Timed t = timed(text);
    put(word, json::Object{{"nodes", json::Array{json::Value(t.what)}}}, t.at);
  }

  void of_job(std::string_view word, std::string_view key, const std::string& text) {
    const Timed t = timed(text);
    const std::size_t colon = t.what.rfind(':');
    if (colon == std::string::npos)
      return refuse(fmt::format("--{} {}: wanted JOB:{}", word, text, key));
    put(word,
        json::Object{{"job", job(t.what.substr(0, colon))}, {key, t.what.substr(colon + 1)}},
        t.at);
  }

  void of_queue(const std::string& text) {
    const Timed t = timed(text);
    const std::size_t colon = t.what.find(':'), equals = t.what.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon)
      return refuse(fmt::format(
          "--queue {}: wanted QUEUE:KEY=VALUE, such as research:capability.gpu=64", text));
    put("queue",
        json::Object{{"name", t.what.substr(0, colon)},
                     {"set",
                      json::Object{{t.what.substr(colon + 1, equals - colon - 1),
                                    t.what.substr(equals + 1)}}}},
        t.at);
  }

  void submit(const std::string& text) {
    Timed t = timed(text);
    std::int64_t count = 1;
    if (const std::size_t x = t.what.rfind('x'); x != std::string::npos) {
      if (const auto times = parse_int(t.what.substr(x + 1)); times && *times > 0) {
        count = *times;
        t.what.resize(x);
      }
    }
    const auto file = read_file(t.what);
    if (!file) return refuse(fmt::format("--submit {}: {}", text, file.error().message));
    const auto parsed = json::parse_yaml(*file);
    if (!parsed) return refuse(fmt::format("--submit {}: {}", text, parsed.error().message));
    for (json::Value manifest : *parsed) {
      if (!manifest.is_object()) continue;
      if (kube::namespace_of(manifest).empty())
        json::make(manifest, {"metadata", "namespace"}) = ns_;
      put("submit", json::Object{{"manifest", std::move(manifest)}, {"count", count}}, t.at);
    }
  }

  void from_file(std::string_view word) {
    const std::string path = values_.text(word);
    const auto text = read_file(path);
    if (!text) return refuse(fmt::format("--{} {}: {}", word, path, text.error().message));
    put(word, json::Object{{"text", *text}}, "");
  }

  void more() {
    const std::string path = values_.text("file");
    const auto text = read_file(path);
    if (!text) return refuse(fmt::format("--file {}: {}", path, text.error().message));
    const auto parsed = json::parse_yaml_one(*text);
    if (!parsed) return refuse(fmt::format("--file {}: {}", path, parsed.error().message));
    const json::Value& list = parsed->is_array() ? *parsed : at(*parsed, "changes");
    if (!list.is_array()) return refuse(fmt::format("--file {}: wanted a list of changes", path));
    for (const json::Value& one : list.get_array()) out_.push_back(one);
  }

  const Values& values_;
  std::string ns_;
  json::Array out_;
  std::optional<Error> wrong_;
};

std::string last_of(std::string_view job) {
  return std::string(job.substr(job.rfind('/') == std::string_view::npos ? 0 : job.rfind('/') + 1));
}

/// "2h earlier", "later", "evicted".
std::string difference(const json::Value& row) {
  const auto before = parse_time(json::string_at(row, "before", "p50"));
  const auto after = parse_time(json::string_at(row, "after", "p50"));
  std::vector<std::string> out;
  if (before && after && *before != *after)
    out.push_back(
        fmt::format("{} {}",
                    human_duration(*before > *after ? *before - *after : *after - *before),
                    *before > *after ? "earlier" : "later"));
  else if (before && !after)
    out.emplace_back("not within the horizon");
  else if (!before && after)
    out.emplace_back("starts only then");
  if (json::bool_at(row, "evicted")) out.emplace_back("evicted");
  return out.empty() ? "-" : join(out, ", ");
}

std::string seconds_text(const json::Value& number) {
  const double value = number.is_double()  ? number.get_double()
                       : number.is_int64() ? static_cast<double>(number.get_int64())
                                           : 0;
  return human_duration(Duration(static_cast<std::int64_t>(value * 1e6)));
}

std::string text_of(const json::Value& answer, Time now, int columns) {
  std::string out = json::text_at(answer, "summary") + "\n";
  if (const json::Array& jobs = json::array_at(answer, "jobs"); !jobs.empty()) {
    Rows rows;
    rows.add({"JOB", "START-NOW", "START-THEN", "DIFFERENCE"});
    for (const json::Value& row : jobs)
      rows.add({last_of(json::string_at(row, "job")),
                moment_text(at(row, "before", "p50"), now),
                moment_text(at(row, "after", "p50"), now),
                difference(row)});
    rows.shrinkable = {0};
    rows.fit(columns);
    out += "\n" + rows.text();
  }
  if (const json::Array& queues = json::array_at(answer, "queues"); !queues.empty()) {
    Rows rows;
    rows.add({"QUEUE", "WAITS-NOW", "WAITS-THEN"});
    for (const json::Value& row : queues)
      rows.add({json::text_at(row, "queue"),
                seconds_text(at(row, "waitBeforeSeconds")),
                seconds_text(at(row, "waitAfterSeconds"))});
    out += "\n" + rows.text();
  }
  for (const json::Value& one : json::array_at(answer, "warnings"))
    out += fmt::format("warning: {}\n", json::as_string(one));
  if (at(answer, "cut").is_string())
    out += fmt::format("The time for this question ran out: {}.\n", json::string_at(answer, "cut"));
  return out;
}

}  // namespace

Task<int> run_whatif(Invocation& call) {
  Session& session = call.session;
  const Values& values = call.values;
  const std::string output = values.text("output");
  if (!output.empty() && output != "json")
    co_return session.failed(fmt::format("-o {}: wanted json", output));
  auto changes = ChangeFlags(values, session.ns).read();
  if (!changes) co_return session.failed(changes.error());
  json::Object question{{"changes", std::move(*changes)}, {"horizon", values.text("horizon")}};
  json::Array jobs;
  for (const std::string& job : values.list("jobs"))
    jobs.emplace_back(job.find('/') == std::string::npos ? session.ns + "/" + job : job);
  if (!jobs.empty()) question["jobs"] = std::move(jobs);
  const auto answer = co_await put_question(session, "whatifs", std::move(question));
  if (!answer) co_return session.failed(answer.error());
  session.console.out(output == "json"
                          ? dump_arena_json(*answer) + "\n"
                          : text_of(*answer, session.now(), session.console.columns()));
  co_return 0;
}

}  // namespace muster::cli
