#include "scheduler/hands.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "scheduler/reports.h"
#include "scheduler/translate.h"

namespace muster::scheduler {

using client::ObjectPtr;
namespace resources = client::resources;

namespace {

constexpr Duration kBackoffFirst = std::chrono::milliseconds(100);
constexpr Duration kBackoffMax = std::chrono::seconds(30);
/// So many failed bindings of a pod in a row are told.
constexpr int kToldFailures = 3;
/// So many errors of the server's own in a row are taken for a refusal: one that fails each time has
/// not bound the pod.
constexpr int kInternalMax = 3;

Duration backoff(int failures) {
  return std::min<Duration>(kBackoffMax, kBackoffFirst * (1 << std::min(failures - 1, 10)));
}

/// Whether the server may have done what it did not say that it has: a connection that broke, a time
/// that ran out and an error of its own (a sync that failed) leave that open.
bool leaves_open(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kTimeout ||
         error.code == Code::kInternal;
}

/// Whether the pod changed by its binding alone: it has `node` now, and the devices that were
/// posted with it.
bool only_bound(const json::Value& before,
                const json::Value& after,
                const std::string& node,
                std::string_view devices) {
  const auto same = [&](auto... path) {
    return json::equal(json::at(before, path...), json::at(after, path...));
  };
  if (json::string_at(after, "spec", "nodeName") != node || !same("metadata", "uid") ||
      !same("metadata", "labels") || !same("metadata", "deletionTimestamp") ||
      !same("status", "phase") || !same("status", "nominatedNodeName") ||
      !same("status", "startTime")) {
    return false;
  }
  const auto same_but =
      [](const json::Object& old_members, const json::Object& new_members, std::string_view fresh) {
        std::size_t alike = 0;
        for (const auto& member : new_members) {
          if (member.key() == fresh) continue;
          const auto* old_value = old_members.if_contains(member.key());
          if (old_value == nullptr || !json::equal(*old_value, member.value())) return false;
          ++alike;
        }
        return alike == old_members.size();
      };
  // A server that counts generations counts every change of the spec but the binding.
  const bool counted =
      json::int_at(before, "metadata", "generation") > 0 && same("metadata", "generation");
  const json::Object& annotations = json::object_at(after, "metadata", "annotations");
  return (counted ||
          same_but(json::object_at(before, "spec"), json::object_at(after, "spec"), "nodeName")) &&
         json::string_at(after, "metadata", "annotations", kube::names::kGpuIndices) == devices &&
         same_but(json::object_at(before, "metadata", "annotations"),
                  annotations,
                  kube::names::kGpuIndices);
}

/// "ns/name"
std::pair<std::string, std::string> split_key(const std::string& key) {
  const std::size_t slash = key.find('/');
  return {key.substr(0, slash), key.substr(slash + 1)};
}

}  // namespace

Task<Result<void>> patch_pod_status(client::Client& client, std::string pod, json::Value patch) {
  auto [ns, name] = split_key(pod);
  const auto done = co_await client.patch(resources::kPods,
                                          ns,
                                          name,
                                          "status",
                                          client::PatchType::kStrategic,
                                          std::move(patch),
                                          client::Answer::kNone);
  if (!done) co_return fail(done.error());
  co_return Result<void>();
}

// ---------------------------------------------------------------------------------------- bindings

void Hands::bind(const engine::Bind& bind, json::Object annotations) {
  assumed_[bind.pod] = {bind.uid, bind.node, bind.devices};
  auto order = std::make_shared<Order>(bind, std::move(annotations), context_.env.monotonic());
  context_.quick.add_call([this, order = std::move(order)](std::function<void()> ended) {
    const ObjectPtr pod =
        options_.volumes != nullptr ? context_.pods.find(order->bind.pod) : nullptr;
    if (pod && Volumes::concern(*pod))
      context_.env.spawn(bind_with_volumes(order, pod, std::move(ended)));
    else
      post(order, std::move(ended));
  });
}

Task<void> Hands::bind_with_volumes(std::shared_ptr<Order> order,
                                    ObjectPtr pod,
                                    std::function<void()> ended) {
  const auto open = co_await options_.volumes->choose(pod, order->bind.node);
  if (open && open->empty()) {
    post(std::move(order), std::move(ended));
    co_return;
  }
  if (!open) {
    bind_ended(*order, fail(open.error()));
    ended();
    co_return;
  }
  awaiting_volumes_.enter();
  ended();
  const auto bound = co_await options_.volumes->bound(
      split_key(order->bind.pod).first, *open, order->bind.node, [this, order] {
        return !stopped_ && stands(order->bind);
      });
  awaiting_volumes_.leave();
  if (stopped_) co_return;
  if (bound)
    context_.quick.add_call(
        [this, order](std::function<void()> posted) { post(order, std::move(posted)); });
  else
    bind_ended(*order, bound);
}

void Hands::post(std::shared_ptr<Order> order, std::function<void()> ended) {
  // What is left open is for whoever leads now.
  if (!leads() || !stands(order->bind)) return ended();
  auto [ns, name] = split_key(order->bind.pod);
  client::Post post{resources::kPods, std::move(ns), std::move(name), "binding", {}, ""};
  if (order->annotations.empty() && context_.client.sends_text()) {
    post.text = binding_text(order->bind, post.name);
  } else {
    post.body = binding(order->bind, post.name);
    for (const auto& member : order->annotations)
      json::make_object(post.body, {"metadata", "annotations"})[member.key()] = member.value();
  }
  context_.client.submit(
      std::move(post),
      [this, order = std::move(order), ended = std::move(ended)](const Result<void>& done) {
        if (done || (order->doubts == 0 && !leaves_open(done.error())))
          bind_ended(*order, done);
        else
          context_.env.spawn(post_ended(order, done));
        ended();
      });
}

/// The same binding is posted until the server says what became of it: that it is done, now or
/// before, or that it is not. Meanwhile the pod keeps its place, or somebody else would get GPUs
/// that it turns out to hold.
Task<void> Hands::post_ended(std::shared_ptr<Order> order, Result<void> done) {
  if (stopped_ || !stands(order->bind)) {
    bind_ended(*order, done);
    co_return;
  }
  const bool vain = done.error().code == Code::kInternal && order->doubts >= kInternalMax;
  if (leaves_open(done.error()) && !vain) {
    post_again(std::move(order), done.error());
    co_return;
  }
  // Refused, perhaps because it was done before.
  auto [ns, name] = split_key(order->bind.pod);
  const auto pod = co_await context_.client.get(resources::kPods, ns, name);
  if (!pod && leaves_open(pod.error())) {
    post_again(std::move(order), pod.error());
    co_return;
  }
  const bool bound = pod && kube::uid_of(*pod) == order->bind.uid &&
                     json::string_at(*pod, "spec", "nodeName") == order->bind.node;
  bind_ended(*order, bound ? Result<void>() : done);
}

void Hands::post_again(std::shared_ptr<Order> order, const Error& error) {
  const engine::Bind& bind = order->bind;
  if (stopped_ || !stands(bind)) return;
  ++options_.counters->bind_failures;
  log::warn("scheduler",
            "bind in doubt, posted again pod={} node={} reason={}",
            bind.pod,
            bind.node,
            error.message);
  doubted_[bind.pod] = context_.env.after(backoff(++order->doubts), [this, order] {
    const auto again = order;
    doubted_.erase(again->bind.pod);
    context_.quick.add_call(
        [this, again](std::function<void()> ended) { post(again, std::move(ended)); });
  });
}

void Hands::bind_ended(const Order& order, const Result<void>& done) {
  const engine::Bind& bind = order.bind;
  if (done) {
    ++options_.counters->bound;
    options_.counters->bind.add(context_.env.monotonic() - order.since);
    if (const ObjectPtr pod = context_.pods.find(bind.pod)) {
      context_.events.record(*pod,
                             "Normal",
                             "Scheduled",
                             fmt::format("Successfully assigned {} to {}", bind.pod, bind.node));
      options_.answers.bound(bind.pod);
    }
    return;
  }
  if (stopped_) return;
  ++options_.counters->bind_failures;
  if (!stands(bind)) {
    // The pod is gone, or has got a node otherwise, and the watch has said so. One that was made
    // anew under its name has nothing to do with it.
    log::debug("scheduler",
               "bind too late pod={} node={} reason={}",
               bind.pod,
               bind.node,
               done.error().message);
    return;
  }
  log::warn("scheduler",
            "bind failed pod={} node={} reason={}",
            bind.pod,
            bind.node,
            done.error().message);
  assumed_.erase(bind.pod);
  // A pod whose binding fails again and again must not win every round from those that could run.
  const int failures = ++bind_failures_[bind.pod];
  auto timer = context_.env.after(backoff(failures), [this, pod = bind.pod] {
    held_.erase(pod);
    options_.answers.may_try_again(pod);
  });
  held_[bind.pod] = {
      std::move(timer),
      failures < kToldFailures
          ? ""
          : fmt::format("binding to node {} failed: {}", bind.node, done.error().message)};
  options_.answers.bind_failed(bind.pod);
}

bool Hands::stands(const engine::Bind& bind) const {
  const auto found = assumed_.find(bind.pod);
  return found != assumed_.end() && found->second.uid == bind.uid;
}

void Hands::stop() {
  stopped_ = true;
  doubted_.clear();
  if (options_.volumes != nullptr) options_.volumes->look_again();
}

// ----------------------------------------------------------------------- evictions and nominations

void Hands::evict(const engine::Evict& evict) {
  evicting_[evict.pod] = evict.uid;
  context_.quick.add([this, evict]() -> Task<void> { co_await do_evict(evict); });
}

Task<void> Hands::do_evict(engine::Evict evict) {
  if (!leads()) co_return;
  auto [ns, name] = split_key(evict.pod);
  const ObjectPtr pod = context_.pods.find(evict.pod);
  if (pod && kube::uid_of(*pod) == evict.uid) {
    json::Value patch = disruption_patch(options_.scheduler, context_.env.now());
    const auto marked = co_await patch_pod_status(context_.client, evict.pod, std::move(patch));
    if (!marked)
      log::warn("scheduler",
                "marking a victim failed pod={} reason={}",
                evict.pod,
                marked.error().message);
  }
  client::DeleteOptions options;
  options.uid = evict.uid;
  const auto gone = co_await context_.client.remove(resources::kPods, ns, name, std::move(options));
  if (gone || gone.error().code == Code::kNotFound) {
    ++options_.counters->evicted;
    if (pod) context_.events.record(*pod, "Normal", "Preempted", preempted_message(evict));
    log::info("scheduler", "evicted pod={} node={} for={}", evict.pod, evict.node, evict.for_whom);
    co_return;
  }
  ++options_.counters->evict_failures;
  // Gone meanwhile, and perhaps made anew under its name.
  if (const auto found = evicting_.find(evict.pod);
      found == evicting_.end() || found->second != evict.uid)
    co_return;
  log::warn("scheduler", "evict failed pod={} reason={}", evict.pod, gone.error().message);
  // Whoever reads the mark would take a later failure of its own for a preemption.
  if (pod) (void)co_await patch_pod_status(context_.client, evict.pod, spared_patch());
  evicting_.erase(evict.pod);
  // A pod that somebody protects must not be asked for again and again, as fast as the server says
  // no.
  spared_[evict.pod] =
      context_.env.after(backoff(++evict_failures_[evict.pod]), [this, pod = evict.pod] {
        spared_.erase(pod);
        options_.answers.may_evict_again(pod);
      });
  options_.answers.evict_failed(evict.pod);
}

void Hands::nominate(const engine::Nominate& nominate) {
  context_.slow.add_latest("nominate " + nominate.pod, [this, nominate]() -> Task<void> {
    const ObjectPtr pod = context_.pods.find(nominate.pod);
    if (!pod || json::string_at(*pod, "status", "nominatedNodeName") == nominate.node) co_return;
    // The API server clears the nomination with the binding.
    if (nominate.node.empty() && !json::string_at(*pod, "spec", "nodeName").empty()) co_return;
    json::Value patch = nomination_patch(nominate.node);
    const auto done = co_await patch_pod_status(context_.client, nominate.pod, std::move(patch));
    if (!done)
      log::debug(
          "scheduler", "nomination failed pod={} reason={}", nominate.pod, done.error().message);
  });
}

// ------------------------------------------------------------------------------ what is remembered

bool Hands::came_back(const std::string& pod, const json::Value& before, const json::Value& after) {
  const auto found = assumed_.find(pod);
  if (found == assumed_.end() || found->second.uid != kube::uid_of(after) ||
      evicting_.contains(pod) || held_.contains(pod))
    return false;
  if (!only_bound(before, after, found->second.node, indexes_text(found->second.devices)))
    return false;
  assumed_.erase(found);
  bind_failures_.erase(pod);
  doubted_.erase(pod);
  return true;
}

void Hands::seen_bound(const std::string& pod) {
  if (assumed_.erase(pod) > 0) bind_failures_.erase(pod);
  doubted_.erase(pod);
}

void Hands::gone(const std::string& pod) {
  assumed_.erase(pod);
  evicting_.erase(pod);
  bind_failures_.erase(pod);
  doubted_.erase(pod);
  evict_failures_.erase(pod);
  held_.erase(pod);
  spared_.erase(pod);
}

void Hands::complete(engine::Pod& pod) const {
  if (const auto found = assumed_.find(pod.key);
      pod.node.empty() && found != assumed_.end() && found->second.uid == pod.uid) {
    pod.node = found->second.node;
    pod.device_indexes = found->second.devices;
  }
  if (const auto found = evicting_.find(pod.key);
      found != evicting_.end() && found->second == pod.uid)
    pod.terminating = true;
  if (held_.contains(pod.key)) pod.gated = true;
  if (spared_.contains(pod.key)) pod.preemptable = false;
}

const std::string* Hands::held_because(const std::string& pod) const {
  const auto found = held_.find(pod);
  return found == held_.end() ? nullptr : &found->second.why;
}

}  // namespace muster::scheduler
