/// How containers and pods ended, for people.
#pragma once

#include <string>

#include "json/json.h"

namespace muster::kube {

/// "exit code 255", "killed by signal 9 (OOMKilled)", "exit code 1: no host keys": the last line of
/// what it left behind comes after the colon. Of a status that has ended, or ended before it was
/// started again; empty when it did not end, or ended well.
std::string how_container_ended(const json::Value& container_status);

/// Of the first container that ended badly, else what the pod itself says ("Evicted: …"). Empty: it
/// does not say.
std::string how_pod_ended(const json::Value& pod);

}  // namespace muster::kube
