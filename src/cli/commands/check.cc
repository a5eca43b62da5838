/// when --file, when --gpus: what would become of a job that is not submitted.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "base/files.h"
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/answers.h"
#include "cli/view/starts.h"
#include "cli/view/view_job.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

using json::at;

constexpr int kWaits = 10, kNever = 11, kRefused = 12;

int code_of_verdict(std::string_view verdict) {
  if (verdict == "starts") return 0;
  if (verdict == "refused") return kRefused;
  return verdict == "never" ? kNever : kWaits;
}

Result<std::vector<json::Value>> read_jobs(const std::string& path) {
  Result<std::string> text = std::string();
  if (path == "-")
    text = std::string(std::istreambuf_iterator<char>(std::cin), {});
  else
    text = read_file(path);
  if (!text) return fail(text.error());
  auto parsed = json::parse_yaml(*text);
  if (!parsed)
    return fail(parsed.error().code, fmt::format("{}: {}", path, parsed.error().message));
  std::vector<json::Value> out;
  for (json::Value& one : *parsed) {
    if (one.is_null()) continue;
    if (json::string_at(one, "kind") == "List") {
      for (const json::Value& item : json::array_at(one, "items")) out.push_back(item);
    } else {
      out.push_back(std::move(one));
    }
  }
  if (out.empty()) return fail(Code::kBadRequest, fmt::format("{}: there is no job in it", path));
  return out;
}

/// A pod that asks for GPUs and says how long it lasts.
json::Value pod_of(std::int64_t gpus, const std::string& lasts) {
  json::Value pod = json::Object{};
  if (!lasts.empty())
    json::make(pod, {"metadata", "annotations", kube::names::kExpectedDuration}) = lasts;
  json::Object limits;
  if (gpus > 0) limits["nvidia.com/gpu"] = gpus;
  json::make(pod, {"spec"}) =
      json::Object{{"restartPolicy", "Never"},
                   {"containers",
                    json::Array{json::Object{{"name", "task"},
                                             {"image", "shape"},
                                             {"resources", json::Object{{"limits", limits}}}}}}};
  return pod;
}

/// A job of that shape, of the kind that says no more than a shape.
Result<json::Value> job_of_shape(const Values& values) {
  const int gpus = values.number("gpus"), tasks = values.number("tasks");
  if (gpus < 0 || tasks < 1 || gpus % tasks != 0)
    return fail(
        Code::kBadRequest,
        fmt::format(
            "--gpus {} --tasks {}: wanted GPUs that can be shared out evenly among the tasks",
            gpus,
            tasks));
  const std::string lasts = values.given("for") ? values.text("for") : "";
  json::Value pod = pod_of(gpus / tasks, lasts);
  const std::string queue = values.text("queue");
  json::Value job = json::Object{};
  job.as_object()["apiVersion"] = kube::resources::kVolcanoJobs.api_version();
  job.as_object()["kind"] = kube::resources::kVolcanoJobs.kind;
  json::make(job, {"metadata", "name"}) = "shape";
  json::Object& spec = json::make_object(job, {"spec"});
  spec["minAvailable"] = tasks;
  if (!queue.empty()) spec["queue"] = queue;
  spec["tasks"] =
      json::Array{json::Object{{"name", "task"}, {"replicas", tasks}, {"template", pod}}};
  return job;
}

std::string called(const json::Value& answer, const Values& values) {
  const std::string gpus = amount_text(at(answer, "gpus"));
  if (values.given("gpus"))
    return values.number("tasks") == 1
               ? fmt::format("A job of {} GPUs", values.text("gpus"))
               : fmt::format("A job of {} x {} GPUs",
                             values.number("tasks"),
                             values.number("gpus") / values.number("tasks"));
  const std::string job = json::text_at(answer, "job");
  const std::string name = job.substr(job.rfind('/') + 1);
  return json::string_at(answer, "verdict") == "refused" ? name
                                                         : fmt::format("{} ({} GPUs)", name, gpus);
}

}  // namespace

Task<int> check_jobs(Invocation& call) {
  Session& session = call.session;
  const Values& values = call.values;
  if (values.given("file") && values.given("gpus"))
    co_return session.failed("--file and --gpus: wanted one of them");
  if (!values.args.empty() || values.yes("watch"))
    co_return session.failed(
        "--file and --gpus are about a job that is not submitted: they take no JOB and no --watch");
  Result<std::vector<json::Value>> jobs = std::vector<json::Value>();
  if (values.given("file")) {
    jobs = read_jobs(values.text("file"));
  } else {
    auto shape = job_of_shape(values);
    if (shape)
      jobs->push_back(std::move(*shape));
    else
      jobs = fail(shape.error());
  }
  if (!jobs) co_return session.failed(jobs.error());
  json::Array items;
  int worst = 0;
  for (json::Value& job : *jobs) {
    const std::string ns(kube::namespace_of(job).empty() ? session.ns
                                                         : std::string(kube::namespace_of(job)));
    auto answer = co_await put_question(
        session,
        fmt::format("namespaces/{}/check{}", ns, values.given("gpus") ? "?shape=true" : ""),
        std::move(job));
    if (!answer) co_return session.failed(answer.error());
    worst = std::max(worst, code_of_verdict(json::string_at(*answer, "verdict")));
    if (values.text("output").empty())
      session.console.out(decision_text(*answer, called(*answer, values), session.now()));
    items.push_back(std::move(*answer));
  }
  if (!values.text("output").empty())
    session.console.out(dump_arena_json(json::Object{{"items", std::move(items)}}) + "\n");
  co_return values.yes("exit-code") ? worst : 0;
}

}  // namespace muster::cli
