/// Kubernetes Events about objects: repeated ones are counted up instead of written anew. Never
/// delays its caller: recording queues (bounded; oldest dropped), coroutines write, and they let
/// more important writes go first.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"

namespace muster::client {

class EventRecorder {
 public:
  virtual ~EventRecorder() = default;
  /// `type` Normal or Warning. The object must carry kind, apiVersion, metadata.
  virtual void record(const json::Value& object,
                      std::string type,
                      std::string reason,
                      std::string message) = 0;
  /// With involvedObject.fieldPath, e.g. "spec.containers{main}".
  virtual void record_field(const json::Value& object,
                            std::string field_path,
                            std::string type,
                            std::string reason,
                            std::string message) = 0;
  /// Events wait while `busy` says so, though not for ever: after ten seconds they go out one at a
  /// time.
  virtual void hold_while(std::function<bool()> busy) = 0;
  /// Returns when everything is written, or after a few seconds.
  virtual Task<void> flush() = 0;
};

/// `component` and `host` become source.component and source.host; core v1 Events.
std::unique_ptr<EventRecorder> make_event_recorder(Env& env,
                                                   Client& client,
                                                   std::string component,
                                                   std::string host);

}  // namespace muster::client
