/// HiveD's annotations of pods, read for the engine and written with a binding.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/model/cell_request.h"
#include "json/json.h"

namespace muster::scheduler {

/// What pods say about cells. A bound pod carries the places of its whole gang: they are read once,
/// not with each change of the pod.
class CellNotes {
 public:
  /// Null: the pod says nothing.
  std::shared_ptr<const engine::cells::PodNote> of(const json::Value& pod);
  /// Whether HiveD is to place it.
  static bool wants_cells(const json::Value& pod);
  void forget(const std::string& pod) { read_.erase(pod); }

 private:
  struct Read {
    std::string spec, bind;  // the annotations
    std::shared_ptr<const engine::cells::PodNote> note;
  };
  std::map<std::string, Read> read_;  // by key of the pod
};

/// What reaches the pod with its binding, the indexes of its devices apart.
json::Object cell_annotations(const engine::cells::Seat& seat);

}  // namespace muster::scheduler
