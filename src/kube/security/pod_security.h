/// Kubernetes' Pod Security Standards: what a pod may ask of its node at each of three levels, in
/// the words of Kubernetes' own admission. Pure.
///
/// A namespace names a level (and the version of Kubernetes whose rules are meant) for each of
/// three modes by labels `pod-security.kubernetes.io/{enforce,audit,warn}[-version]`.
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace muster::kube {

/// In the order of strictness.
enum class SecurityLevel { kPrivileged, kBaseline, kRestricted };

struct LevelVersion {
  /// Of Kubernetes 1.x; this one for "latest".
  static constexpr int kLatest = 1 << 20;
  SecurityLevel level = SecurityLevel::kPrivileged;
  int minor = kLatest;

  [[nodiscard]] bool privileged() const { return level == SecurityLevel::kPrivileged; }
  /// "baseline:latest", "restricted:v1.31".
  [[nodiscard]] std::string text() const;
  bool operator==(const LevelVersion&) const = default;
};

struct SecurityPolicy {
  LevelVersion enforce, audit, warn;
  /// The namespace says itself what is enforced.
  bool labelled = false;
  [[nodiscard]] bool privileged() const {
    return enforce.privileged() && audit.privileged() && warn.privileged();
  }
};

/// nullopt unless it is "privileged", "baseline" or "restricted".
std::optional<SecurityLevel> parse_security_level(std::string_view text);

/// What the labels of a namespace say; `defaults` where they say nothing. A label that cannot be
/// read is enforced as restricted; `causes` (may be null) receives what is wrong with it.
SecurityPolicy security_policy(const json::Value& ns,
                               const SecurityPolicy& defaults,
                               std::vector<Cause>* causes);

/// What a pod does that its level forbids.
struct Violation {
  std::string reason, detail;
};
/// `metadata` and `spec` of a pod or a template.
std::vector<Violation> security_violations(const LevelVersion& level,
                                           const json::Value& metadata,
                                           const json::Value& spec);
/// "host namespaces (hostPID=true), privileged (container "c" must not set …)".
std::string describe(const std::vector<Violation>& violations);
/// The reasons alone.
std::string reasons(const std::vector<Violation>& violations);

}  // namespace muster::kube
