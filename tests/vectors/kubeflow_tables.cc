// Validation and defaulting tables: each case is a job (and the one it replaces), whether it is
// accepted, with what errors, and how it looks with the operator's defaults.
#include <fmt/format.h>

#include <cctype>
#include <set>

#include "base/strings.h"
#include "controllers/common/admission.h"
#include "controllers/common/training_kinds.h"
#include "controllers/mpijob/v1.h"
#include "controllers/mpijob/v2beta1.h"
#include "runner.h"

namespace muster::vectors {
namespace {

using json::Value;

/// kAdmission: refused by the API server before a controller sees the job.
enum class Table { kPyTorchJob, kMpiV1, kMpiV2, kAdmission, kUnknown };

Table table_of(const std::string& path, const Value& file) {
  const auto kind = json::string_at(file, "kind");
  const auto version = json::string_at(file, "apiVersion");
  const auto name = path.substr(path.rfind('/') + 1);
  if (kind == "PyTorchJob" || name.starts_with("pt-")) return Table::kPyTorchJob;
  if (version == "kubeflow.org/v2beta1" || name.starts_with("m2-")) return Table::kMpiV2;
  if ((kind == "MPIJob" && version == "kubeflow.org/v1") || name.starts_with("m1-"))
    return Table::kMpiV1;
  if (version == "kubeflow.org/v1" || version == "batch.tensorstack.dev/v1beta1")
    return Table::kAdmission;
  return Table::kUnknown;
}

/// The pairs "path kind" of a text of field errors. `a[B]` and `a.B` name the same field.
std::multiset<std::string> field_errors(const std::string& text) {
  std::multiset<std::string> result;
  for (const std::string_view kind :
       {"Required value", "Invalid value", "Forbidden", "Unsupported value"}) {
    const auto mark = fmt::format(": {}", kind);
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
      auto begin = at;
      const auto of_path = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '[' ||
               c == ']' || c == '_';
      };
      while (begin > 0 && of_path(text[begin - 1])) --begin;
      auto path = text.substr(begin, at - begin);
      while (!path.empty() && path.front() == '[') path.erase(0, 1);
      result.insert(fmt::format("{} {}", replace_all(replace_all(path, "[", "."), "]", ""), kind));
    }
  }
  return result;
}

/// Without what is empty: absent, null, 0, false, "" and {} are one to Go.
Value plain(const Value& value) {
  if (value.is_object()) {
    json::Object result;
    for (const auto& [key, member] : value.get_object()) {
      auto inner = plain(member);
      if (!json::is_empty(inner)) result[key] = std::move(inner);
    }
    return result;
  }
  if (value.is_array()) {
    json::Array result;
    for (const auto& item : value.get_array()) result.push_back(plain(item));
    return result;
  }
  return value;
}

/// MPIJob v1 has its cleanPodPolicy in two places; whether a table was written before or after the
/// one was copied to the other makes no difference to a job.
void one_clean_policy(Value& spec) {
  if (!spec.is_object()) return;
  auto& inner = json::make(spec, {"runPolicy", "cleanPodPolicy"});
  auto& outer = json::make(spec, {"cleanPodPolicy"});
  (json::as_string(inner).empty() ? inner : outer) = json::as_string(inner).empty() ? outer : inner;
}

struct Answer {
  std::string error;
  std::vector<std::string> warnings;
  Value spec;
};

/// The training kind of a job that admission has let through; null for others.
const controllers::TrainingKind* training_kind(const Value& job) {
  const auto kind = json::string_at(job, "kind");
  if (json::string_at(job, "apiVersion") != "kubeflow.org/v1") return nullptr;
  if (kind == "PyTorchJob") return &controllers::pytorchjob::kind();
  if (kind == "TFJob") return &controllers::tfjob::kind();
  if (kind == "XGBoostJob") return &controllers::xgboostjob::kind();
  if (kind == "PaddleJob") return &controllers::paddlejob::kind();
  if (kind == "JAXJob") return &controllers::jaxjob::kind();
  return nullptr;
}

Answer judge(Table table, const Value& job, const Value* old_job) {
  Answer answer;
  if (table == Table::kPyTorchJob || table == Table::kAdmission) {
    const auto verdict = controllers::admit(job, old_job);
    answer.error = verdict.text();
    answer.warnings = verdict.warnings;
    const auto* kind = training_kind(job);
    if (answer.error.empty() && kind != nullptr)
      answer.spec = json::at(kind->with_defaults(job), "spec");
  } else if (table == Table::kMpiV1) {
    const auto defaulted = controllers::mpijob::v1::kind().with_defaults(job);
    answer.error = controllers::mpijob::v1::validate(defaulted);
    answer.spec = json::at(defaulted, "spec");
  } else {
    const auto defaulted = controllers::mpijob::v2beta1::with_defaults(job);
    answer.error = controllers::mpijob::v2beta1::validate(defaulted).text();
    answer.spec = json::at(defaulted, "spec");
  }
  return answer;
}

bool claims(const std::string& path, const Value& file) {
  return json::at(file, "cases").is_array() && table_of(path, file) != Table::kUnknown;
}

const std::set<std::string_view> kKnown{"name",
                                        "id",
                                        "job",
                                        "oldJob",
                                        "accepted",
                                        "acceptedShouldBe",
                                        "error",
                                        "warnings",
                                        "defaultedSpec",
                                        "notes",
                                        "sources"};

Failures run(const std::string& path, const Value& file) {
  Failures failures;
  const auto table = table_of(path, file);
  for (const auto& each : json::array_at(file, "cases")) {
    for (const auto& [key, value] : json::as_object(each)) {
      const std::string_view field(key.data(), key.size());
      if (!kKnown.contains(field) && !value.is_string())
        failures.push_back(
            {"-", "fields that the reader knows", fmt::format("\"{}\" in a case", field)});
    }
    auto name = json::text_at(each, "name");
    if (name.empty()) name = json::text_at(each, "id");
    const auto add = [&](std::string wanted, std::string got) {
      failures.push_back({name, std::move(wanted), std::move(got)});
    };
    const auto* old_job = json::as_object(each).if_contains("oldJob");
    if (old_job != nullptr && !old_job->is_object()) old_job = nullptr;
    const auto answer = judge(table, json::at(each, "job"), old_job);
    const auto& should_be = json::at(each, "acceptedShouldBe");
    const bool accepted =
        json::as_bool(should_be.is_bool() ? should_be : json::at(each, "accepted"));
    if (accepted != answer.error.empty()) {
      add(accepted ? "accepted" : "refused: " + json::text_at(each, "error"),
          answer.error.empty() ? "accepted" : "refused: " + answer.error);
      continue;
    }
    const auto error = json::text_at(each, "error");
    if (table != Table::kMpiV1 && !accepted && !error.empty() &&
        field_errors(error) != field_errors(answer.error))
      add("errors " + error, answer.error);
    std::set<std::string> wanted_warnings, warnings(answer.warnings.begin(), answer.warnings.end());
    for (const auto& warning : json::array_at(each, "warnings"))
      wanted_warnings.insert(json::text(warning));
    if (wanted_warnings != warnings)
      add(fmt::format("warnings {}", fmt::join(wanted_warnings, "; ")),
          fmt::format("{}", fmt::join(warnings, "; ")));
    Value spec = json::at(each, "defaultedSpec");
    if (table == Table::kMpiV1) one_clean_policy(spec);
    if (accepted && spec.is_object() && !json::equal(plain(spec), plain(answer.spec)))
      add("spec " + json::dump(plain(spec)), json::dump(plain(answer.spec)));
  }
  return failures;
}

const Registration kRegistration({"kubeflow tables", claims, run});

}  // namespace
}  // namespace muster::vectors
