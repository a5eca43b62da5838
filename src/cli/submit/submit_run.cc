#include "cli/submit/submit_run.h"

#include <fmt/core.h>

#include <memory>
#include <optional>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/submit/submit.h"
#include "cli/view/fetch.h"
#include "cli/view/job_watch.h"
#include "cli/view/reads.h"
#include "cli/view/view_job.h"
#include "kube/meta.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

const client::Resource* resource_of(const json::Value& object) {
  const kube::Gvk gvk = kube::gvk_of(object);
  if (gvk.kind == "ConfigMap") return &client::resources::kConfigMaps;
  if (gvk.kind == "Service") return &client::resources::kServices;
  if (gvk.kind == "Deployment") return &client::resources::kDeployments;
  if (gvk.kind == "PodGroup") return &client::resources::kPodGroups;
  return nullptr;
}

std::string dry_run_text(const SubmitPlan& plan) {
  std::string text;
  const auto add = [&](const json::Value& object) {
    text += (text.empty() ? "" : "---\n") + dump_ordered_yaml(object);
  };
  add(plan.record);
  for (const json::Value& object : plan.before) add(object);
  add(plan.job);
  for (const json::Value& object : plan.after) add(object);
  return text;
}

/// What a submit asks of the server before anything is made, in one round trip.
struct Preconditions {
  Result<json::Value> job, record;
  std::optional<Result<json::Value>> priority, queue;  // absent: the command line names none
};

Task<Result<Preconditions>> read_preconditions(Session& session,
                                               const SubmitPlan& plan,
                                               const Values& values) {
  const std::string priority = values.text("priority"), queue = values.text("queue");
  const bool names_queue = !queue.empty() && queue != "true" && queue != "false";
  std::vector<Read> reads{
      read_object(plan.trainer->resource, session.ns, plan.name),
      read_object(
          client::resources::kConfigMaps, session.ns, std::string(kube::name_of(plan.record)))};
  if (!priority.empty())
    reads.push_back(read_object(client::resources::kPriorityClasses, "", priority));
  if (names_queue) reads.push_back(read_object(client::resources::kQueues, "", queue));
  const auto block = std::make_shared<json::Block>();
  session.keep(block);
  auto answers = co_await read_all(session, *block, std::move(reads));
  if (!answers) co_return fail(answers.error());
  Preconditions found{std::move((*answers)[0]), std::move((*answers)[1]), {}, {}};
  if (!priority.empty()) found.priority = std::move((*answers)[2]);
  if (names_queue) found.queue = std::move(answers->back());
  co_return found;
}

/// What must hold on the server before anything is made.
Task<Result<void>> check_server(Session& session, const SubmitPlan& plan, const Values& values) {
  const auto read = co_await read_preconditions(session, plan, values);
  if (!read) co_return fail(read.error());
  const auto missing = [](const std::optional<Result<json::Value>>& named) {
    return named && !*named && named->error().code == Code::kNotFound;
  };
  if (missing(read->priority)) {
    co_return fail(
        Code::kInvalid,
        fmt::format(
            "failed to validate command args: priority {} doesn't exist, please check with `kubectl get pc` or use another one",
            values.text("priority")));
  }
  if (read->priority && !*read->priority) co_return fail(read->priority->error());
  if (missing(read->queue)) {
    co_return fail(
        Code::kInvalid,
        fmt::format(
            "failed to validate command args: queue {} doesn't exist, please check with `{} queue list`",
            values.text("queue"),
            session.program));
  }
  if (read->job) {
    co_return fail(Code::kAlreadyExists,
                   fmt::format("the job {} already exists, please delete it first: `{} delete {}`",
                               plan.name,
                               session.program,
                               plan.name));
  }
  if (read->job.error().code != Code::kNotFound) co_return fail(read->job.error());
  if (read->job.error().message.find(plan.name) == std::string::npos) {
    co_return fail(
        Code::kNotFound,
        fmt::format(
            "this cluster has no {} ({}), so nothing here can run the job; submit it as mpi or pytorch",
            plan.trainer->resource.plural,
            plan.trainer->resource.api_version()));
  }
  if (read->record) {
    co_return fail(
        Code::kAlreadyExists,
        fmt::format(
            "configmap {} of an earlier job {} still exists, please delete it first: `{} delete {}`",
            kube::name_of(plan.record),
            plan.name,
            session.program,
            plan.name));
  }
  co_return Result<void>{};
}

/// Creates one of the helpers; one left over from an earlier job of this name gives way.
Task<Result<json::Value>> create_fresh(Session& session, const json::Value& object) {
  const client::Resource& resource = *resource_of(object);
  auto made = co_await session.cluster().create(resource, session.ns, object);
  if (made || made.error().code != Code::kAlreadyExists) co_return made;
  client::DeleteOptions options;
  const auto removed = co_await session.cluster().remove(
      resource, session.ns, std::string(kube::name_of(object)), options);
  if (!removed) co_return fail(removed.error());
  auto again = co_await session.cluster().create(resource, session.ns, object);
  co_return again;
}

/// The job owns what was made for it, so that nothing stays behind when it goes.
Task<void> set_owner(Session& session, const json::Value& object, const json::Value& job) {
  json::Value patch = json::Object{
      {"metadata",
       json::Object{{"ownerReferences", json::Array{kube::owner_reference(job, false, false)}}}}};
  const auto patched = co_await session.cluster().patch(*resource_of(object),
                                                        session.ns,
                                                        std::string(kube::name_of(object)),
                                                        "",
                                                        client::PatchType::kMerge,
                                                        std::move(patch));
  if (!patched)
    session.console.debug(
        fmt::format("{}: owner not set: {}", shown(object), patched.error().message));
}

Task<void> undo(Session& session, const SubmitPlan& plan, std::size_t made) {
  client::DeleteOptions options;
  const auto removed = co_await session.cluster().remove(
      client::resources::kConfigMaps, session.ns, std::string(kube::name_of(plan.record)), options);
  (void)removed;
  for (std::size_t i = 0; i < made; ++i) {
    const auto gone = co_await session.cluster().remove(*resource_of(plan.before[i]),
                                                        session.ns,
                                                        std::string(kube::name_of(plan.before[i])),
                                                        options);
    (void)gone;
  }
}

Task<Result<void>> create_all(Session& session, const SubmitPlan& plan) {
  auto record =
      co_await session.cluster().create(client::resources::kConfigMaps, session.ns, plan.record);
  if (!record) co_return fail(record.error());
  session.console.out(
      fmt::format("{} created\n{} labeled\n", shown(plan.record), shown(plan.record)));
  std::size_t made = 0;
  for (const json::Value& object : plan.before) {
    const auto created = co_await create_fresh(session, object);
    const bool no_groups = !created && created.error().code == Code::kNotFound &&
                           json::string_at(object, "kind") == "PodGroup";
    if (!created && !no_groups) {
      co_await undo(session, plan, made);
      co_return fail(created.error());
    }
    ++made;
    if (no_groups) {
      session.console.warn(
          "this cluster has no PodGroups: --gang only labels the pods, for a scheduler that reads the labels");
      continue;
    }
    session.console.out(fmt::format("{} created\n", shown(object)));
  }
  const auto job = co_await session.cluster().create(plan.trainer->resource, session.ns, plan.job);
  if (!job) {
    co_await undo(session, plan, made);
    co_return fail(job.error());
  }
  session.console.out(fmt::format("{} created\n", shown(plan.job)));
  std::optional<Error> failure;
  for (const json::Value& object : plan.after) {
    const auto created = co_await create_fresh(session, object);
    if (created) {
      session.console.out(fmt::format("{} created\n", shown(object)));
      co_await set_owner(session, object, *job);
    } else if (!failure) {
      failure = created.error();
    }
  }
  co_await set_owner(session, plan.record, *job);
  for (const json::Value& object : plan.before) co_await set_owner(session, object, *job);
  if (failure)
    session.console.warn(fmt::format("the job runs without its tensorboard: {}", failure->message));
  co_return Result<void>{};
}

std::string progress_text(Session& session, const Job& job) {
  int running = 0;
  for (const Instance& instance : job.instances) running += instance.phase == "RUNNING" ? 1 : 0;
  return fmt::format("{}  {}  {}/{} instances running  {}",
                     job.name,
                     session.console.paint_status(job.status),
                     running,
                     job.instances.size(),
                     short_human_duration(job.age));
}

/// The first reason that a waiting instance gives.
std::string waiting_reason(const Job& job) {
  for (const Instance& instance : job.instances) {
    const json::Value& scheduled = kube::condition(*instance.pod, "PodScheduled");
    if (json::string_at(scheduled, "status") == "False") return json::text_at(scheduled, "message");
  }
  return "";
}

}  // namespace

Task<int> wait_for_job(Session& session,
                       std::string name,
                       std::string type,
                       const client::Resource& resource,
                       bool until_running,
                       Duration timeout) {
  JobWatch watch(session);
  watch.start(name, resource, /*labelled=*/true);
  const Duration began = session.env.monotonic();
  std::string last_status, last_reason;
  for (;;) {
    const auto fetched = co_await fetch_job(session, name, type);
    if (!fetched) co_return session.failed(fetched.error());
    const Job& job = (*fetched)->jobs[0];
    session.console.progress(progress_text(session, job));
    if (job.status != last_status)
      session.console.info(fmt::format("The Job {} is {}", name, job.status));
    last_status = job.status;
    if (const std::string reason = waiting_reason(job); !reason.empty() && reason != last_reason) {
      session.console.info(fmt::format("The Job {} waits: {}", name, reason));
      last_reason = reason;
    }
    if (job.status == "FAILED") {
      if (!job.reason.empty()) session.console.error(job.reason);
      co_return kExitJobFailed;
    }
    if (job.status == "SUCCEEDED" || (until_running && job.status == "RUNNING")) co_return 0;
    Duration left = std::chrono::seconds(1);  // ages move on a terminal
    if (timeout.count() > 0) {
      left = std::min(left, timeout - (session.env.monotonic() - began));
      if (left.count() <= 0) {
        session.console.error(fmt::format(
            "the job {} is still {} after {}", name, job.status, short_human_duration(timeout)));
        co_return kExitNotInTime;
      }
    }
    co_await watch.wait(left);
  }
}

namespace {

std::string type_of_command(const std::string& command) {
  return command == "horovodjob" ? "mpijob" : command;
}

/// From a plan to a running job: prints it, or creates it and waits as the flags say.
Task<int> carry_out(Invocation& call, SubmitPlan plan, std::string type) {
  Session& session = call.session;
  const std::string wait = call.values.text("wait");
  if (!wait.empty() && wait != "finished" && wait != "running")
    co_return session.failed(fmt::format("--wait={}: wanted finished or running", wait));
  if (call.values.yes("dry-run")) {
    session.console.out(dry_run_text(plan));
    co_return 0;
  }
  const auto checked = co_await check_server(session, plan, call.values);
  if (!checked) co_return session.failed(checked.error());
  const auto created = co_await create_all(session, plan);
  if (!created) co_return session.failed(created.error());
  for (const std::string& note : plan.notes) session.console.warn(note);
  session.console.info(fmt::format("The Job {} has been submitted successfully", plan.name));
  session.console.info(fmt::format("You can run `{} get {} --type {}{}` to check the job status",
                                   session.program,
                                   plan.name,
                                   type,
                                   session.ns_given ? " -n " + session.ns : ""));
  if (wait.empty()) co_return 0;
  const int code = co_await wait_for_job(session,
                                         plan.name,
                                         type,
                                         plan.trainer->resource,
                                         wait == "running",
                                         call.values.duration("timeout"));
  co_return code;
}

}  // namespace

Task<int> run_submit(Invocation& call) {
  Session& session = call.session;
  SubmitContext context;
  context.type = type_of_command(call.command.name);
  context.ns = session.ns;
  context.command = join(call.values.args, " ");
  if (const auto secrets = session.config.find("imagePullSecrets");
      secrets != session.config.end()) {
    context.image_pull_secrets = split_nonempty(secrets->second, ',');
  }
  if (find_trainer(context.type) == nullptr) {
    co_return session.failed(fmt::format(
        "a {} needs its own operator and nothing here runs one; submit it with '{} submit mpi' or '{} submit pytorch'",
        context.type,
        session.program,
        session.program));
  }
  context.user = co_await session.user();
  auto plan = plan_submit(context, call.values);
  if (!plan) co_return session.failed("failed to validate command args: " + plan.error().message);
  const int code = co_await carry_out(call, std::move(*plan), context.type);
  co_return code;
}

}  // namespace muster::cli
