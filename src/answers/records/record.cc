#include "answers/records/record.h"

#include <algorithm>

#include "base/strings.h"

namespace muster::answers {
namespace {

using json::at;

void put(json::Object& out, std::string_view key, std::string_view text) {
  if (!text.empty()) out[key] = text;
}
void put(json::Object& out, std::string_view key, Time time) {
  if (time) out[key] = format_time(time);
}

Time time_at(const json::Value& value, std::string_view key) {
  const std::string_view text = json::string_at(value, key);
  if (text.empty()) return {};
  const auto time = parse_time(text);
  return time ? *time : Time{};
}

json::Array parts_json(const Run& run) {
  json::Array parts;
  for (const Part& part : run.parts) {
    json::Object one{{"start", format_time(part.start)}, {"gpuMilli", part.milli}};
    put(one, "end", part.end);
    parts.push_back(std::move(one));
  }
  return parts;
}

/// Most runs are one part: all tasks came and went together.
bool is_one_part(const Run& run) {
  return run.parts.size() == 1 && run.parts[0].start == run.start && run.parts[0].end == run.end &&
         run.parts[0].milli == run.milli;
}

json::Value run_json(const Run& run) {
  json::Object out{{"start", format_time(run.start)}};
  put(out, "end", run.end);
  out["gpus"] = static_cast<double>(run.milli) / 1000;
  json::Array nodes;
  for (const std::string& node : run.nodes) nodes.emplace_back(node);
  out["nodes"] = std::move(nodes);
  put(out, "how", run.how);
  put(out, "by", run.by);
  if (run.opportunistic) out["opportunistic"] = true;
  if (!is_one_part(run)) out["parts"] = parts_json(run);
  return out;
}

std::int64_t milli_of(const json::Value& gpus) {
  if (gpus.is_double()) return static_cast<std::int64_t>(gpus.get_double() * 1000 + 0.5);
  return json::as_int(gpus) * 1000;
}

Run parse_run(const json::Value& value) {
  Run run;
  run.start = time_at(value, "start");
  run.end = time_at(value, "end");
  run.milli = milli_of(at(value, "gpus"));
  for (const json::Value& node : json::array_at(value, "nodes"))
    run.nodes.push_back(json::text(node));
  run.how = json::text_at(value, "how");
  run.by = json::text_at(value, "by");
  run.opportunistic = json::bool_at(value, "opportunistic");
  const json::Value& parts = at(value, "parts");
  if (!parts.is_array()) {
    run.parts.push_back({run.start, run.end, run.milli});
    return run;
  }
  for (const json::Value& part : parts.get_array())
    run.parts.push_back(
        {time_at(part, "start"), time_at(part, "end"), json::int_at(part, "gpuMilli")});
  return run;
}

json::Value waited_json(const Waited& wait) {
  json::Object out{{"reason", wait.reason}, {"from", format_time(wait.from)}};
  put(out, "subject", wait.subject);
  put(out, "text", wait.text);
  put(out, "to", wait.to);
  return out;
}

json::Value said_json(const Foretold& said) {
  json::Object out{{"at", format_time(said.at)}, {"basis", said.basis}};
  put(out, "p10", said.p10);
  put(out, "p50", said.p50);
  put(out, "p90", said.p90);
  put(out, "because", said.because);
  return out;
}

}  // namespace

json::Value record_json(const Record& record) {
  json::Object out{{"job", record.job},
                   {"uid", record.uid},
                   {"namespace", record.ns},
                   {"kind", record.kind},
                   {"user", record.user}};
  put(out, "queue", record.queue);
  put(out, "vc", record.vc);
  put(out, "stem", record.stem);
  if (!record.pods_user.empty() || !record.pods_stem.empty()) {
    json::Object pods;
    put(pods, "user", record.pods_user);
    put(pods, "stem", record.pods_stem);
    out["pods"] = std::move(pods);
  }
  put(out, "priority", record.priority);
  json::Object shape{{"tasks", record.tasks}, {"gpus", static_cast<double>(record.milli) / 1000}};
  put(shape, "model", record.model);
  if (record.model_asked) shape["modelAsked"] = true;
  out["shape"] = std::move(shape);
  put(out, "image", record.image);
  put(out, "command", record.command);
  if (record.declared > Duration::zero())
    out["declaredSeconds"] = record.declared / std::chrono::seconds(1);
  put(out, "submitted", record.submitted);
  put(out, "ended", record.ended);
  out["state"] = record.state;
  if (record.has_exit) out["exit"] = record.exit;
  put(out, "exitPhrase", record.exit_phrase);
  json::Array runs, waits, said;
  for (const Run& run : record.runs) runs.push_back(run_json(run));
  for (const Waited& wait : record.waits) waits.push_back(waited_json(wait));
  for (const Foretold& one : record.said) said.push_back(said_json(one));
  out["runs"] = std::move(runs);
  if (!waits.empty()) out["waits"] = std::move(waits);
  if (!said.empty()) out["said"] = std::move(said);
  return out;
}

Record parse_record(const json::Value& value) {
  Record record;
  record.job = json::text_at(value, "job");
  record.uid = json::text_at(value, "uid");
  record.ns = json::text_at(value, "namespace");
  record.kind = json::text_at(value, "kind");
  record.user = json::text_at(value, "user");
  record.queue = json::text_at(value, "queue");
  record.vc = json::text_at(value, "vc");
  record.stem = json::text_at(value, "stem");
  record.pods_user = json::text_at(value, "pods", "user");
  record.pods_stem = json::text_at(value, "pods", "stem");
  record.priority = json::text_at(value, "priority");
  record.tasks = json::int_at(value, "shape", "tasks");
  record.milli = milli_of(at(value, "shape", "gpus"));
  record.model = json::text_at(value, "shape", "model");
  record.model_asked = json::bool_at(value, "shape", "modelAsked");
  record.image = json::text_at(value, "image");
  record.command = json::text_at(value, "command");
  record.declared = std::chrono::seconds(json::int_at(value, "declaredSeconds"));
  record.submitted = time_at(value, "submitted");
  record.ended = time_at(value, "ended");
  record.state = json::text_at(value, "state");
  record.has_exit = at(value, "exit").is_number();
  record.exit = static_cast<std::int32_t>(json::int_at(value, "exit"));
  record.exit_phrase = json::text_at(value, "exitPhrase");
  for (const json::Value& run : json::array_at(value, "runs"))
    record.runs.push_back(parse_run(run));
  for (const json::Value& wait : json::array_at(value, "waits"))
    record.waits.push_back({json::text_at(wait, "reason"),
                            json::text_at(wait, "subject"),
                            json::text_at(wait, "text"),
                            time_at(wait, "from"),
                            time_at(wait, "to")});
  for (const json::Value& one : json::array_at(value, "said"))
    record.said.push_back({time_at(one, "at"),
                           time_at(one, "p10"),
                           time_at(one, "p50"),
                           time_at(one, "p90"),
                           json::text_at(one, "basis"),
                           json::text_at(one, "because")});
  return record;
}

}  // namespace muster::answers
