#include "controllers/common/field.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/names.h"

namespace muster::controllers {
namespace {

std::string value_text(const json::Value& value) {
  return value.is_string() ? quoted(json::as_string(value)) : json::dump(value);
}

void check_managed_by(Verdict& verdict, const json::Value& job, const json::Value* old_job) {
  const auto& manager = json::at(job, "spec", "runPolicy", "managedBy");
  const auto name = json::as_string(manager);
  if (!manager.is_null() && name != kube::names::kubeflow::kTrainingOperator &&
      name != kube::names::kubeflow::kMultiKueue) {
    verdict.unsupported(
        "spec.runPolicy.managedBy",
        manager,
        {kube::names::kubeflow::kTrainingOperator, kube::names::kubeflow::kMultiKueue});
  }
  if (old_job != nullptr &&
      !json::equal(manager, json::at(*old_job, "spec", "runPolicy", "managedBy"))) {
    verdict.invalid("spec.runPolicy.managedBy", manager, "field is immutable");
  }
}

}  // namespace

void Verdict::required(std::string field, std::string_view detail) {
  errors.push_back(
      {"FieldValueRequired", fmt::format("Required value: {}", detail), std::move(field)});
}
void Verdict::invalid(std::string field, const json::Value& value, std::string_view detail) {
  errors.push_back({"FieldValueInvalid",
                    fmt::format("Invalid value: {}: {}", value_text(value), detail),
                    std::move(field)});
}
void Verdict::forbidden(std::string field, std::string_view detail) {
  errors.push_back({"FieldValueForbidden", fmt::format("Forbidden: {}", detail), std::move(field)});
}
void Verdict::unsupported(std::string field,
                          const json::Value& value,
                          const std::vector<std::string_view>& supported) {
  std::vector<std::string> names;
  for (const auto& name : supported) names.push_back(quoted(name));
  errors.push_back(
      {"FieldValueNotSupported",
       fmt::format(
           "Unsupported value: {}: supported values: {}", value_text(value), join(names, ", ")),
       std::move(field)});
}

std::string Verdict::text() const {
  std::vector<std::string> lines;
  for (const auto& error : errors)
    lines.push_back(fmt::format("{}: {}", error.field, error.message));
  if (lines.empty()) return {};
  return lines.size() == 1 ? lines[0] : "[" + join(lines, ", ") + "]";
}

std::string check_dns1035_label(std::string_view name) {
  if (name.size() > 63) return "must be no more than 63 characters";
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool fine = !name.empty() && lower(name.front()) && name.back() != '-' &&
                    std::all_of(name.begin(), name.end(), [&](char c) {
                      return lower(c) || digit(c) || c == '-';
                    });
  if (fine) return {};
  return "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an "
         "alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
}

void check_training_job(Verdict& verdict,
                        const WebhookRules& rules,
                        const json::Value& job,
                        const json::Value* old_job) {
  const auto& name = json::at(job, "metadata", "name");
  // A name that the server is going to generate is checked as the server will check it.
  if (const auto problem = check_dns1035_label(json::as_string(name));
      !problem.empty() && json::string_at(job, "metadata", "generateName").empty()) {
    verdict.invalid("metadata.name", name, "should match: " + problem);
  }
  if (rules.check_managed_by) check_managed_by(verdict, job, old_job);
  const auto base = "spec." + rules.specs_field;
  const auto& specs = json::at(job, "spec", std::string_view(rules.specs_field));
  if (!specs.is_object()) {
    verdict.required(base, "must be required");
    return;
  }
  for (const auto& [key, spec] : specs.get_object()) {
    const std::string type(key.data(), key.size());
    const auto role = fmt::format("{}[{}]", base, type);
    if (!rules.types.empty() &&
        std::find(rules.types.begin(), rules.types.end(), type) == rules.types.end()) {
      verdict.unsupported(role, json::Value(type), {rules.types.begin(), rules.types.end()});
    }
    const auto containers_path = role + ".template.spec.containers";
    const auto& containers = json::array_at(spec, "template", "spec", "containers");
    if (containers.empty()) verdict.required(containers_path, "must be specified");
    bool present = false;
    for (std::size_t i = 0; i < containers.size(); ++i) {
      if (json::string_at(containers[i], "image").empty())
        verdict.required(fmt::format("{}[{}].image", containers_path, i), "must be required");
      present = present || json::string_at(containers[i], "name") == rules.container;
    }
    if (!present)
      verdict.required(
          containers_path,
          fmt::format("must have at least one container with name {}", rules.container));
  }
}

}  // namespace muster::controllers
