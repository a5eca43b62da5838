/// Kubernetes Events about objects: repeated ones are counted up instead of written anew. Never delays its
/// caller: recording queues (bounded; oldest dropped), a coroutine writes.
#pragma once

#include <memory>
#include <string>

#include "client/client.h"

namespace muster::client {

class EventRecorder {
 public:
  virtual ~EventRecorder() = default;
  /// `type` Normal or Warning. The object must carry kind, apiVersion, metadata.
  virtual void record(const json::Value& object, std::string type, std::string reason, std::string message) = 0;
  /// With involvedObject.fieldPath, e.g. "spec.containers{main}".
  virtual void record_field(const json::Value& object, std::string field_path, std::string type, std::string reason, std::string message) = 0;
  virtual Task<void> flush() = 0;
};

/// `component` and `host` become source.component and source.host; core v1 Events.
std::unique_ptr<EventRecorder> make_event_recorder(Env& env, Client& client, std::string component, std::string host);

}  // namespace muster::client
