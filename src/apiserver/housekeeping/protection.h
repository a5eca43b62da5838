/// PodGroups of scheduling.k8s.io stay until no unfinished pod names them.
#pragma once

#include <set>
#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

class GroupProtection {
 public:
  explicit GroupProtection(Core& core) : core_(core) {}
  void start();
  void observe(Collection& collection, const Change& change);

 private:
  void consider(std::string key);
  Task<void> release(std::string key);
  Core& core_;
  std::set<std::string> deleting_;  // groups that wait for their pods
};

}  // namespace muster::apiserver
