/// What the parts of one pod's worker share: the pod as last heard of, where it is in its life, and
/// what its containers did.
///
/// The parts are PodStatusWriter, PodSandbox, PodImages and PodContainers; PodWorker owns them and
/// decides which does what next. Each step that waits asks again afterwards where the pod is.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "agent/context.h"
#include "agent/pod/container_spec.h"
#include "agent/pod/pod_env.h"
#include "agent/pod/pod_status.h"

namespace muster::agent {

struct PodLife {
  PodLife(Context& context, client::ObjectPtr pod);

  Context& context;
  client::ObjectPtr pod;
  const std::string uid;
  const PodDirectories places;
  PodState state;
  bool gone = false;      // the object no longer exists
  bool detached = false;  // the agent ends; containers run on
  bool terminal = false;  // Succeeded or Failed; nothing is started any more
  Slots::Slot start_slot;
  std::weak_ptr<void> owner;

  /// Held by what runs beside the worker, so that the worker outlives it.
  [[nodiscard]] std::shared_ptr<void> keep() const { return owner.lock(); }
  /// Nothing more is to be started.
  [[nodiscard]] bool over() const;
  /// It will run no more, and what it holds will be free.
  void end(std::string reason, std::string message);

  /// Null when there is no such container.
  ContainerRecord* find(std::string_view name);
  [[nodiscard]] const ContainerRecord* find(std::string_view name) const {
    return const_cast<PodLife*>(this)->find(name);
  }
  ContainerRecord* find_by_id(const std::string& container_id);
  [[nodiscard]] const json::Value& spec_of(const ContainerRecord& record) const;
  [[nodiscard]] bool any_running() const;
  /// What its containers' roots had of their own on disk.
  [[nodiscard]] std::vector<std::string> root_folders() const;
  /// What is left of the grace that its deletion gives it.
  [[nodiscard]] Duration grace_left() const;
  [[nodiscard]] PodFacts facts() const;

  /// An event of the pod, or of one of its containers.
  void event(const ContainerRecord* record,
             const char* type,
             const char* reason,
             const std::string& message);

  void wake() { changed->notify(); }
  std::unique_ptr<Signal> changed;  // the worker waits for it
};

}  // namespace muster::agent
