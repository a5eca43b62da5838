#include "scheduler/cell_notes.h"

#include <string>

#include "client/informer.h"
#include "hived/annotations.h"
#include "kube/meta.h"

namespace muster::scheduler {

std::shared_ptr<const engine::cells::PodNote> CellNotes::of(const json::Value& pod) {
  const std::string_view spec = kube::annotation(pod, hived::kSchedulingSpec);
  const std::string_view bind = kube::annotation(pod, hived::kBindInfo);
  if (spec.empty() && bind.empty()) return nullptr;
  Read& known = read_[client::key_of(pod)];
  if (known.note && known.spec == spec && known.bind == bind) return known.note;
  auto note = std::make_shared<engine::cells::PodNote>();
  if (!spec.empty()) {
    auto parsed = hived::parse_scheduling_spec(
        spec, std::string(kube::namespace_of(pod)), std::string(kube::name_of(pod)));
    if (parsed)
      note->spec = std::move(*parsed);
    else
      note->error = parsed.error().message;
  }
  if (auto parsed = hived::parse_bind_info(bind)) note->bind = std::move(*parsed);
  known = {std::string(spec), std::string(bind), std::move(note)};
  return known.note;
}

bool CellNotes::wants_cells(const json::Value& pod) {
  return !kube::annotation(pod, hived::kSchedulingSpec).empty();
}

json::Object cell_annotations(const engine::cells::Seat& seat) {
  json::Object annotations;
  annotations[hived::kBindInfo] = hived::format_bind_info(seat.bind);
  annotations[hived::kLeafCellIsolation] = hived::format_isolation(seat.bind);
  if (seat.spec) annotations[hived::kSchedulingSpec] = hived::format_scheduling_spec(*seat.spec);
  return annotations;
}

}  // namespace muster::scheduler
