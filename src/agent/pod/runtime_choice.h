/// Which runtime a pod gets: by its RuntimeClass, by its images, else as the node has it.
#pragma once

#include <string>

#include "agent/context.h"
#include "base/task.h"
#include "kube/resources.h"

namespace muster::agent {

/// Handlers of RuntimeClasses that we know ourselves.
inline constexpr const char* kHostClass = "host";  // on the machine's own files
inline constexpr const char* kCriClass = "cri";    // the container runtime's default handler
inline constexpr const char* kRunc = "runc";

struct RuntimeChoice {
  bool cri = false;
  std::string handler;  // of the container runtime; empty: its default
};

kube::Resource runtime_class_resource();

Task<RuntimeChoice> choose_runtime(Context& context, client::ObjectPtr pod);

/// What the handler of its class means. `of_host`: one of its containers runs on the machine's own
/// files, which no container runtime has. Pure.
RuntimeChoice runtime_of(const std::string& handler, bool of_host, const Context& context);

}  // namespace muster::agent
