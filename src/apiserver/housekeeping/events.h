/// Events are kept for an hour.
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

class Events {
 public:
  explicit Events(Core& core) : core_(core) {}
  void start();

 private:
  Task<void> expire();
  Core& core_;
};

}  // namespace muster::apiserver
