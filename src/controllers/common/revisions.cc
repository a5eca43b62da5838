#include "controllers/common/revisions.h"

#include <fmt/core.h>

#include <algorithm>

#include "controllers/common/native_kinds.h"
#include "controllers/common/objects.h"
#include "kube/names.h"

namespace muster::controllers {
namespace {

std::int64_t number_of(const json::Value& revision) { return json::int_at(revision, "revision"); }

json::Value make_revision(const json::Value& owner, const std::string& hash, std::int64_t number) {
  auto made = make_child(
      owner, "apps/v1", "ControllerRevision", fmt::format("{}-{}", name_of(owner), hash));
  json::Value body = json::at(owner, "spec", "template");
  auto& metadata = json::make_object(made, {"metadata"});
  metadata["labels"] = json::at(body, "metadata", "labels").is_object()
                           ? json::at(body, "metadata", "labels")
                           : json::Value(json::Object{});
  if (const auto& notes = json::at(owner, "metadata", "annotations"); notes.is_object())
    metadata["annotations"] = notes;
  set_label(made, kube::names::kubernetes::kRevisionHash, hash);
  body.as_object()["$patch"] = "replace";
  made.as_object()["data"] = json::Object{{"spec", json::Object{{"template", std::move(body)}}}};
  made.as_object()["revision"] = number;
  return made;
}

}  // namespace

void sync_revisions(Plan& plan,
                    const json::Value& owner,
                    const View& view,
                    const std::string& hash,
                    const std::set<std::string>& hashes_in_use) {
  Objects old;
  const json::Value* current = nullptr;
  std::int64_t newest = 0;
  for (const auto* revision : view.controlled_by(kinds::kControllerRevision, uid_of(owner))) {
    newest = std::max(newest, number_of(*revision));
    label_of(*revision, kube::names::kubernetes::kRevisionHash) == hash
        ? current = revision
        : (old.push_back(revision), nullptr);
  }
  if (current == nullptr) {
    plan.actions.push_back(
        create(kinds::kControllerRevision, make_revision(owner, hash, newest + 1)));
  } else if (number_of(*current) < newest) {
    plan.actions.push_back(patch(
        kinds::kControllerRevision, name_of(*current), json::Object{{"revision", newest + 1}}));
  }
  std::erase_if(old, [&](const json::Value* revision) {
    return hashes_in_use.contains(label_of(*revision, kube::names::kubernetes::kRevisionHash)) ||
           is_deleting(*revision);
  });
  std::sort(old.begin(), old.end(), [](const json::Value* a, const json::Value* b) {
    return number_of(*a) < number_of(*b);
  });
  const auto limit =
      static_cast<std::size_t>(json::as_int(json::at(owner, "spec", "revisionHistoryLimit"), 10));
  for (std::size_t i = 0; i + limit < old.size(); ++i)
    plan.actions.push_back(remove(kinds::kControllerRevision, *old[i]));
}

}  // namespace muster::controllers
