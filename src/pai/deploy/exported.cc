#include "pai/deploy/exported.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "kube/meta.h"
#include "pai/deploy/services.h"
#include "pai/people/hex.h"

namespace muster::pai {
namespace {

namespace fs = std::filesystem;

/// The objects of a file that kubectl wrote: a list, one object, or several with lines of dashes.
Result<std::vector<json::Value>> objects_of(const fs::path& path) {
  const auto text = read_file(path.string());
  if (!text) return fail(text.error());
  const auto documents = json::parse_yaml(*text);
  if (!documents) return fail(documents.error());
  std::vector<json::Value> objects;
  for (const json::Value& document : *documents) {
    if (document.is_null()) continue;
    const json::Array items = json::array_at(document, "items");
    if (json::at(document, "items").is_array())
      objects.insert(objects.end(), items.begin(), items.end());
    else
      objects.push_back(document);
  }
  return objects;
}

/// Reads each Secret with `read`; what is none of its kind is a problem.
template <typename Record>
void read_records(const fs::path& path,
                  std::optional<Record> (*read)(const json::Value&),
                  std::vector<Record>& records,
                  std::vector<std::string>& problems) {
  if (!fs::exists(path)) return;
  const auto objects = objects_of(path);
  if (!objects) {
    problems.push_back(fmt::format("{}: {}", path.string(), objects.error().message));
    return;
  }
  for (const json::Value& object : *objects) {
    if (auto record = read(object)) {
      records.push_back(std::move(*record));
      continue;
    }
    const std::string name(kube::name_of(object));
    problems.push_back(
        fmt::format("{}: Secret {} is not one of OpenPAI's: its name must be the hex of the name "
                    "inside it",
                    path.string(),
                    name.empty() ? "without a name" : name));
  }
}

void read_jobs(const fs::path& folder, Exported& exported) {
  std::error_code failure;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, failure))
    if (entry.path().extension() == ".yaml" || entry.path().extension() == ".yml")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string stem = file.stem().string();
    const std::size_t tilde = stem.find('~');
    const auto text = read_file(file.string());
    if (tilde == std::string::npos || tilde == 0 || tilde + 1 == stem.size()) {
      exported.problems.push_back(fmt::format(
          "{}: wanted a file named USER~JOB.yaml, so that the job has an owner", file.string()));
    } else if (!text) {
      exported.problems.push_back(fmt::format("{}: {}", file.string(), text.error().message));
    } else {
      exported.jobs.push_back({stem.substr(0, tilde), stem.substr(tilde + 1), *text});
    }
  }
}

std::string text_of(const fs::path& path) {
  const auto text = read_file(path.string());
  return text ? *text : std::string();
}

}  // namespace

Result<Exported> read_exported(const std::string& folder) {
  const fs::path root(folder);
  Exported exported;
  exported.configuration = text_of(root / kServicesFile);
  if (exported.configuration.empty()) exported.configuration = text_of(root / kServicesFileToo);
  exported.layout = text_of(root / kLayoutFile);
  read_records(root / "groups.yaml", read_group, exported.groups, exported.problems);
  read_records(root / "users.yaml", read_user, exported.users, exported.problems);
  read_jobs(root / "jobs", exported);
  const bool nothing = exported.configuration.empty() && exported.layout.empty() &&
                       exported.groups.empty() && exported.users.empty() && exported.jobs.empty() &&
                       exported.problems.empty();
  if (nothing)
    return fail(Code::kNotFound,
                fmt::format("{} has nothing of an OpenPAI: wanted {}, users.yaml, groups.yaml or "
                            "jobs/USER~JOB.yaml",
                            folder,
                            kServicesFile));
  return exported;
}

std::pair<std::string, bool> without_masked_secrets(const std::string& protocol) {
  auto parsed = json::parse_yaml_one(protocol);
  if (!parsed || !json::at(*parsed, "secrets").is_string()) return {protocol, false};
  json::remove(*parsed, {"secrets"});
  return {json::to_yaml(*parsed), true};
}

}  // namespace muster::pai
