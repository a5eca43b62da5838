#include "main/audit_flags.h"

#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"

namespace muster {

std::vector<command::Flag> audit_flags() {
  using command::Completes;
  using command::FlagType;
  return {
      {.name = "audit-log-path",
       .help =
           "write every request to this file, one line of JSON each (default audit.log in the data folder); - for standard output, none for no audit log",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "audit-policy-file",
       .help =
           "how much to write about which request: an audit policy as for kube-apiserver (default: who did what and how it was decided, no bodies)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "audit-log-maxsize",
       .type = FlagType::kInt,
       .value = "100",
       .help = "rotate the audit log at this size in MiB",
       .value_name = "MIB"},
      {.name = "audit-log-maxage",
       .type = FlagType::kInt,
       .value = "0",
       .help = "delete rotated audit logs after this many days; 0 keeps them",
       .value_name = "DAYS"},
      {.name = "audit-log-maxbackup",
       .type = FlagType::kInt,
       .value = "10",
       .help = "keep at most this many rotated audit logs; 0 keeps all",
       .value_name = "N"},
  };
}

Result<std::optional<apiserver::audit::Options>> audit_options(const command::Values& values,
                                                               const std::string& data) {
  apiserver::audit::Options options;
  const std::string policy = values.text("audit-policy-file");
  if (!policy.empty()) {
    const auto text = read_file(policy);
    if (!text) return fail(Code::kBadRequest, "--audit-policy-file: " + text.error().message);
    auto parsed = apiserver::audit::parse_policy(*text);
    if (!parsed)
      return fail(Code::kBadRequest,
                  fmt::format("--audit-policy-file {}: {}", policy, parsed.error().message));
    options.policy = std::move(*parsed);
  }
  for (const std::string_view flag :
       {"audit-log-maxsize", "audit-log-maxage", "audit-log-maxbackup"}) {
    const int least = flag == "audit-log-maxsize" ? 1 : 0;
    if (values.number(flag) < least)
      return fail(
          Code::kBadRequest,
          fmt::format("--{} {}: wanted a number from {} on", flag, values.number(flag), least));
  }
  const std::string path = values.text("audit-log-path");
  if (path == "none") return std::optional<apiserver::audit::Options>();
  options.file.path = path.empty() ? data + "/audit.log" : path;
  options.file.bytes_max = static_cast<std::int64_t>(values.number("audit-log-maxsize")) << 20;
  options.file.age_max = std::chrono::days(values.number("audit-log-maxage"));
  options.file.backups_max = values.number("audit-log-maxbackup");
  return std::optional(std::move(options));
}

}  // namespace muster
