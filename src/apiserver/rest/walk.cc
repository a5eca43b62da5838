#include "apiserver/rest/walk.h"

#include "apiserver/rest/convert.h"

namespace muster::apiserver {

bool Selection::matches(const Resource& resource, const Stored& stored) const {
  if (everything) return true;
  if (!labels.matches_object(stored.object)) return false;
  if (fields.empty()) return true;
  return resource.same_as_storage() ? fields.matches(stored.object)
                                    : fields.matches(to_served(resource, stored.object));
}

Result<Selection> parse_selection(const Call& call) {
  Selection selection;
  selection.ns = call.ns;
  auto labels = kube::LabelSelector::parse(call.target.get("labelSelector"));
  if (!labels) return fail(labels.error());
  auto fields = kube::FieldSelector::parse(call.target.get("fieldSelector"));
  if (!fields) return fail(fields.error());
  if (call.resource->custom()) {
    for (const kube::FieldSelector::Term& term : fields->terms()) {
      if (term.field != "metadata.name" && term.field != "metadata.namespace")
        return fail(bad_request("field label not supported: " + term.field));
    }
  } else {
    const auto known = fields->check(call.resource->info.group, call.resource->info.kind);
    if (!known) return fail(known.error());
  }
  selection.labels = std::move(*labels);
  selection.fields = std::move(*fields);
  selection.everything = selection.labels.everything() && selection.fields.empty();
  return selection;
}

Walk::Walk(const Objects& now, const Objects& undone, std::string prefix, const std::string& after)
    : now_(now), undone_(undone), prefix_(std::move(prefix)) {
  const auto begin = [&](const Objects& of) {
    return after.empty() ? of.lower_bound(prefix_) : of.upper_bound(after);
  };
  now_place_ = begin(now_);
  undone_place_ = begin(undone_);
}

const StoredPtr* Walk::next() {
  for (;;) {
    const bool has_now = left(now_place_, now_);
    const bool has_undone = left(undone_place_, undone_);
    if (!has_now && !has_undone) return nullptr;
    const int order = !has_undone ? -1
                      : !has_now  ? 1
                                  : now_place_->first.compare(undone_place_->first);
    const StoredPtr* const found = order < 0 ? &now_place_->second : &undone_place_->second;
    if (order <= 0) ++now_place_;
    if (order >= 0) ++undone_place_;
    if (*found) return found;
  }
}

std::string key_prefix(const Resource& resource, const std::string& ns) {
  return resource.info.namespaced && !ns.empty() ? ns + "/" : "";
}

Task<std::vector<StoredPtr>> find_selected(Slices& slices,
                                           const Resource& resource,
                                           Walk& walk,
                                           const Selection& selection,
                                           std::size_t most) {
  std::vector<StoredPtr> found;
  const auto enough = [&] { return most != 0 && found.size() == most; };
  Pace pace(slices, 16);
  // To take all of them takes no longer than to copy the pointers would.
  while (!enough() && (selection.everything || !pace.over())) {
    const StoredPtr* const next = walk.next();
    if (next == nullptr) co_return found;
    if (selection.matches(resource, **next)) found.push_back(*next);
  }
  if (enough()) co_return found;
  std::vector<StoredPtr> rest;
  while (const StoredPtr* const next = walk.next()) rest.push_back(*next);
  for (StoredPtr& each : rest) {
    if (pace.over()) co_await pace.rest();
    if (selection.matches(resource, *each)) found.push_back(std::move(each));
    if (enough()) break;
  }
  co_return found;
}

}  // namespace muster::apiserver
