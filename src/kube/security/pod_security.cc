#include "kube/security/pod_security.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

std::string_view name_of(SecurityLevel level) {
  switch (level) {
    case SecurityLevel::kPrivileged:
      return "privileged";
    case SecurityLevel::kBaseline:
      return "baseline";
    case SecurityLevel::kRestricted:
      break;
  }
  return "restricted";
}

/// "latest" or "v1.27".
std::optional<int> parse_version(std::string_view text) {
  if (text == "latest") return LevelVersion::kLatest;
  if (!text.starts_with("v1.")) return std::nullopt;
  text.remove_prefix(3);
  if (text.empty() || text.size() > 5 || (text.size() > 1 && text[0] == '0') ||
      text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return static_cast<int>(*parse_int(text));
}

/// Reads the labels of one mode after the other.
class Labels {
 public:
  Labels(const json::Value& ns, std::vector<Cause>* causes)
      : labels_(json::at(ns, "metadata", "labels")), causes_(causes) {}

  /// True if the label is there and can be read. What cannot becomes `otherwise`.
  bool level(std::string_view mode, SecurityLevel otherwise, SecurityLevel* out) {
    const json::Value& label = json::at(labels_, key(mode));
    if (label.is_null()) return false;
    const auto parsed = parse_security_level(json::as_string(label));
    if (!parsed) refuse(mode, label, "must be one of privileged, baseline, restricted");
    *out = parsed.value_or(otherwise);
    return parsed.has_value();
  }
  bool version(std::string_view mode, int* out) {
    const std::string label_key = std::string(mode) + "-version";
    const json::Value& label = json::at(labels_, key(label_key));
    if (label.is_null()) return false;
    const auto parsed = parse_version(json::as_string(label));
    if (!parsed) refuse(label_key, label, "must be \"latest\" or \"v1.x\"");
    *out = parsed.value_or(LevelVersion::kLatest);
    return true;
  }
  bool has(std::string_view mode) const { return !json::at(labels_, key(mode)).is_null(); }

 private:
  static std::string key(std::string_view mode) {
    return std::string(names::kubernetes::kPodSecurityPrefix) + std::string(mode);
  }
  void refuse(std::string_view mode, const json::Value& label, std::string_view want) {
    if (causes_ == nullptr) return;
    causes_->push_back({"FieldValueInvalid",
                        fmt::format("Invalid value: {}: {}", quoted(json::as_string(label)), want),
                        fmt::format("metadata.labels[{}]", key(mode))});
  }
  const json::Value& labels_;
  std::vector<Cause>* causes_;
};

}  // namespace

std::string LevelVersion::text() const {
  return minor == kLatest ? fmt::format("{}:latest", name_of(level))
                          : fmt::format("{}:v1.{}", name_of(level), minor);
}

std::optional<SecurityLevel> parse_security_level(std::string_view text) {
  for (const SecurityLevel level :
       {SecurityLevel::kPrivileged, SecurityLevel::kBaseline, SecurityLevel::kRestricted}) {
    if (text == name_of(level)) return level;
  }
  return std::nullopt;
}

SecurityPolicy security_policy(const json::Value& ns,
                               const SecurityPolicy& defaults,
                               std::vector<Cause>* causes) {
  SecurityPolicy policy = defaults;
  const json::Object& labels = json::object_at(ns, "metadata", "labels");
  if (labels.empty()) return policy;
  Labels read(ns, causes);
  const bool enforced = read.level("enforce", SecurityLevel::kRestricted, &policy.enforce.level);
  read.version("enforce", &policy.enforce.minor);
  // What is only told stays silent when it cannot be read.
  read.level("audit", SecurityLevel::kPrivileged, &policy.audit.level);
  read.version("audit", &policy.audit.minor);
  read.level("warn", SecurityLevel::kPrivileged, &policy.warn.level);
  const bool warn_version = read.version("warn", &policy.warn.minor);
  policy.labelled = read.has("enforce");
  if (!read.has("warn") && enforced && policy.enforce.level > policy.warn.level) {
    policy.warn.level = policy.enforce.level;
    if (!warn_version) policy.warn.minor = policy.enforce.minor;
  }
  return policy;
}

std::string describe(const std::vector<Violation>& violations) {
  std::vector<std::string> parts;
  for (const Violation& each : violations)
    parts.push_back(each.detail.empty() ? each.reason
                                        : fmt::format("{} ({})", each.reason, each.detail));
  return join(parts, ", ");
}

std::string reasons(const std::vector<Violation>& violations) {
  std::vector<std::string> parts;
  for (const Violation& each : violations) parts.push_back(each.reason);
  return join(parts, ", ");
}

}  // namespace muster::kube
