/// The kinds of objects that are jobs, or parts of them.
#pragma once

#include <span>
#include <string>

#include "answers/jobs/facts.h"
#include "kube/resources.h"

namespace muster::answers {

struct Followed {
  const kube::Resource& resource;
  JobKind kind;  // kPod and kPodGroup: those objects
};
/// Jobs before their pods, so that most pods find theirs.
std::span<const Followed> followed_kinds();

/// The key ("ns/kind/name") of the job that controls this object; empty: none does. A Job that an
/// MPIJob made is part of that one, so it has one.
std::string key_of_owner(const json::Value& object);

}  // namespace muster::answers
