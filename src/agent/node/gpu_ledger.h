/// Who has which GPU of a node.
///
/// The scheduler's choice travels in an annotation that a user can write too, and a user can bind a
/// pod to a node past every scheduler. So the annotation is a wish like any other: a pod gets what
/// it asks for in its resources, as many as that and no others, and only what nobody else has. On
/// the loop.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::agent {

/// What a pod asks for.
struct GpuWish {
  int count = 0;           // 0: none, and none it will see
  int share_milli = 1000;  // of each; less than 1000 only with a count of 1
};
/// nvidia.com/gpu; a share of one (annotation muster.dev/gpu-milli); or the cells of a pod that
/// HiveD's own resource marks. Pure.
GpuWish gpu_wish(const json::Value& pod);

struct GpuClaim {
  std::string node;
  std::string pod_uid;
  GpuWish wish;
  std::string chosen;        // "0,2": by index; empty: any that are free
  std::set<int> spoken_for;  // what other pods of the node name; not taken without being chosen
};

struct GpuAnswer {
  enum class Kind {
    kGiven,
    kWait,    // a pod that ends has them still
    kRefused  // for good
  };
  Kind kind = Kind::kGiven;
  std::vector<int> indices;
  std::string reason, message;  // of a refusal, as a kubelet's admission says it
};

class GpuLedger {
 public:
  void set_count(const std::string& node, int count) { counts_[node] = count; }
  /// The same answer again for a pod that has been given some.
  GpuAnswer take(const GpuClaim& claim);
  /// "node 1000 0,2": what a pod was given, for an agent that is started later; and back.
  [[nodiscard]] std::string note(const std::string& pod_uid) const;
  void restore(const std::string& pod_uid, std::string_view note);
  /// The pod ends: who comes next waits for it instead of being refused.
  void leave(const std::string& pod_uid);
  void release(const std::string& pod_uid) { by_pod_.erase(pod_uid); }

 private:
  struct Held {
    std::string node;
    std::vector<int> indices;
    int share_milli = 1000;
    bool leaves = false;
  };
  /// Thousandths of each GPU of a node that are taken.
  struct Load {
    int stays = 0;
    int leaves = 0;
  };
  [[nodiscard]] std::vector<Load> loads(const std::string& node) const;
  GpuAnswer pick(const GpuClaim& claim, const std::vector<Load>& loads) const;
  GpuAnswer take_chosen(const GpuClaim& claim, const std::vector<Load>& loads) const;

  std::map<std::string, int> counts_;   // by node
  std::map<std::string, Held> by_pod_;  // by uid
};

}  // namespace muster::agent
