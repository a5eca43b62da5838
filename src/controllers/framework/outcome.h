/// How a pod or an attempt ended, and whether it is tried again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "json/json.h"

namespace muster::controllers::framework {

/// {code, phrase, type: {name, attributes}, diagnostics}.
json::Value completion_status(std::int64_t code, std::string diagnostics);

/// Of a pod that has succeeded or failed; with `pod`, what its containers said.
json::Value completion_of_pod(const json::Value& pod);

/// Of a pod that is being deleted and has ended: whether that was its own doing. What containers do once
/// they are told to end is not: one that saves its work and exits with 0 was taken away all the same.
bool ended_by_itself(const json::Value& pod);

/// What the node says of an image that no registry has, so that waiting for it is in vain; empty if
/// the pod waits for nothing or for something that may come.
std::string missing_image(const json::Value& pod);

bool has_succeeded(const json::Value& completion);

/// What follows a completed attempt.
struct Retry {
  bool again = false;
  bool accountable = false;  // counts against maxRetryCount
  std::int64_t delay_s = 0;
};

/// `delays`: a conflict waits before it is tried again (Frameworks only); how long is drawn from
/// `seed`, between 60 and 900 seconds.
Retry decide_retry(const json::Value& policy,
                   const json::Value& policy_status,
                   const json::Value& completion,
                   bool delays,
                   const std::string& seed);

}  // namespace muster::controllers::framework
