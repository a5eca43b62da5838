#include "pai/leftovers.h"

#include <fmt/core.h>

#include "base/log.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "pai/create.h"
#include "pai/rest/jobs.h"

namespace muster::pai {
namespace {

namespace r = client::resources;

/// Objects of a page, so that nobody waits for a hundred thousand.
constexpr int kPage = 500;
/// So many removals at once; what comes then is found by the next sweep.
constexpr std::size_t kForgettingMax = 1000;

client::ListOptions ours(std::string ns) {
  client::ListOptions options;
  options.ns = std::move(ns);
  options.label_selector = fmt::format("{}=kube-launcher", kube::names::pai::kType);
  options.limit = kPage;
  return options;
}

}  // namespace

std::string_view made_for(std::string_view name) {
  constexpr std::size_t kDigits = 32;
  const std::string_view head = name.substr(0, name.find('-'));
  const bool digest = head.size() == kDigits && head.size() < name.size() &&
                      head.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return digest ? head : std::string_view();
}

void Leftovers::follow(JobIndex& index) {
  index.on_change([this](const client::ObjectPtr& old_job, const client::ObjectPtr& new_job) {
    if (!old_job || new_job || gate_.closed() || gate_.inside() >= kForgettingMax) return;
    env_.spawn(forget(std::string(kube::name_of(*old_job))));
  });
}

Task<void> Leftovers::stop() {
  gate_.close();
  co_await gate_.wait_empty(std::chrono::seconds(5));
}

Task<void> Leftovers::forget(std::string framework) {
  const Gate::Pass pass(gate_);
  const auto removed =
      co_await client_.remove(r::kPriorityClasses, "", framework + "-priority", {});
  if (!removed && removed.error().code != Code::kNotFound)
    log::warn("pai", "the priority class of {} stays: {}", framework, removed.error().message);
}

Task<Result<void>> Leftovers::sweep() {
  const Gate::Pass pass(gate_);
  const auto classes = co_await client_.list(r::kPriorityClasses, ours(""));
  if (!classes) co_return fail(classes.error());
  for (const json::Value& each : classes->items) {
    const std::string framework(made_for(kube::name_of(each)));
    if (framework.empty() || index_.find(framework) != nullptr) continue;
    co_await forget(framework);
  }
  const auto secrets = co_await client_.list(r::kSecrets, ours(rest::kJobsNamespace));
  if (!secrets) co_return fail(secrets.error());
  for (const json::Value& each : secrets->items) {
    const std::string name(kube::name_of(each));
    const std::string_view framework = made_for(name);
    if (framework.empty() || !json::array_at(each, "metadata", "ownerReferences").empty()) continue;
    Result<void> done;
    if (const ListedJob* job = index_.find(framework)) {
      const client::ObjectPtr object = job->object;
      done = co_await adopt(client_, rest::kJobsNamespace, name, *object);
    } else {
      done = co_await client_.remove(r::kSecrets, rest::kJobsNamespace, name, {});
    }
    if (!done) log::warn("pai", "secret {} is left over: {}", name, done.error().message);
  }
  co_return Result<void>();
}

}  // namespace muster::pai
