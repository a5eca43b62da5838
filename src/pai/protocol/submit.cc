#include "pai/protocol/submit.h"

#include <fmt/core.h>

#include "base/md5.h"
#include "json/yaml.h"
#include "kube/framework.h"
#include "pai/protocol/job.h"
#include "pai/protocol/schema.h"

namespace muster::pai {
namespace {

constexpr std::size_t kBytesMax = 1024 * 1024;
/// As many as the API takes; it is read on the loop.
constexpr std::size_t kValuesMax = 20'000;
/// Kubernetes' limit for all annotations of an object.
constexpr std::size_t kAnnotationsMax = 256 * 1024;

std::size_t annotations_of(const json::Value& framework) {
  std::size_t bytes = 0;
  for (const auto& member : json::object_at(framework, "metadata", "annotations"))
    bytes += member.key().size() + json::as_string(member.value()).size();
  return bytes;
}

/// What the server looks up: whether the job is new, and whether its owner may go there.
std::optional<Refusal> not_permitted(const Job& job, const Facts& facts) {
  const std::string id = job_id(job.user, job.name);
  if (facts.job_exists && facts.job_exists(framework_name(job.user, job.name)))
    return Refusal{409, "ConflictJobError", fmt::format("Job {} already exists.", id)};
  if (!facts.virtual_clusters.contains(job.virtual_cluster) ||
      (facts.may_use && !facts.may_use(job.virtual_cluster)))
    return Refusal{
        403,
        "ForbiddenUserError",
        fmt::format("User {} is not allowed to do operation in {}", job.user, job.virtual_cluster)};
  return std::nullopt;
}

}  // namespace

std::string job_id(std::string_view user, std::string_view job) {
  return fmt::format("{}~{}", user, job);
}

std::string framework_name(std::string_view user, std::string_view job) {
  return md5_hex(job_id(user, job));
}

std::string label_value(std::string_view name) {
  constexpr std::size_t kLabelMax = 63;
  const auto outer = [](char c) { return c != '-' && c != '_' && c != '.'; };
  const bool fits =
      !name.empty() && name.size() <= kLabelMax && outer(name.front()) && outer(name.back());
  return fits ? std::string(name) : md5_hex(name);
}

std::optional<int> priority_number(std::string_view priority_class) {
  if (priority_class == "crit") return 120;
  if (priority_class == "prod") return 100;
  if (priority_class == "test") return 10;
  if (priority_class == "oppo") return -1;
  return std::nullopt;
}

Answer<Submission> submit(std::string_view protocol, const std::string& user, const Facts& facts) {
  if (protocol.size() > kBytesMax)
    return tl::unexpected(Refusal{
        413,
        "InvalidParametersError",
        fmt::format(
            "The job is {} bytes long, at most {} are allowed.", protocol.size(), kBytesMax)});
  const auto parsed = json::parse_yaml_one(protocol, kValuesMax);
  if (!parsed) return tl::unexpected(invalid(parsed.error().message));
  if (const json::Array errors = schema_errors(*parsed, protocol_schema()); !errors.empty())
    return tl::unexpected(invalid(json::dump(errors)));
  auto job = read_job(*parsed, user);
  if (job) job = check_cells(std::move(*job), facts);
  if (!job) return tl::unexpected(job.error());
  if (auto refusal = not_permitted(*job, facts)) return tl::unexpected(std::move(*refusal));
  job = check_storages(std::move(*job), facts);
  if (!job) return tl::unexpected(job.error());
  Submission submission = make_submission(*job, facts);
  if (const std::size_t bytes = annotations_of(submission.framework); bytes > kAnnotationsMax)
    return tl::unexpected(
        invalid(fmt::format("The job's configuration and commands take {} bytes, at most {} can be "
                            "stored: move long commands into a script.",
                            bytes,
                            kAnnotationsMax)));
  return submission;
}

json::Value owned_by(json::Value object, const json::Value& framework) {
  json::make_object(object, {"metadata"})["ownerReferences"] =
      json::Array{json::Object{{"apiVersion", kube::resources::kFrameworks.api_version()},
                               {"kind", kube::resources::kFrameworks.kind},
                               {"name", json::at(framework, "metadata", "name")},
                               {"uid", json::at(framework, "metadata", "uid")}}};
  return object;
}

}  // namespace muster::pai
