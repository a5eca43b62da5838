/// CustomResourceDefinitions: served as soon as they are stored, gone with all their objects when
/// deleted.
#pragma once

#include <map>
#include <set>
#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

class Crds {
 public:
  explicit Crds(Core& core) : core_(core) {}
  /// Checks a new CRD and fills in what the server owns.
  Result<void> admit(json::Value& crd);
  void observe(Collection& collection, const Change& change);
  /// Serves what the loaded image holds.
  void start();

 private:
  void serve(const StoredPtr& crd);
  Task<void> establish(std::string name);
  Task<void> clean_up(std::string name);

  Core& core_;
  std::map<std::string, Revision> served_;  // generation each was parsed at
  std::set<std::string> cleaning_;
};

}  // namespace muster::apiserver
