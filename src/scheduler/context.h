/// What the parts of the scheduler share: the loop, the cluster as the client shows it, and the
/// lanes on which they write.
#pragma once

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "scheduler/lane.h"

namespace muster::scheduler {

struct Context {
  Env& env;
  client::Client& client;
  client::Informers& informers;
  client::Informer& pods;
  client::EventRecorder& events;
  Lane& quick;  // bindings and evictions
  Lane& slow;   // what people read
};

}  // namespace muster::scheduler
