/// Jobs that are not submitted: what the API server says to them, what the controllers would make of
/// them, and what the scheduler would tell the engine. Everything is a dry run; nothing is stored.
#pragma once

#include <functional>
#include <string>

#include "answers/draft.h"
#include "base/env.h"
#include "client/client.h"
#include "controllers/controllers.h"
#include "scheduler/scheduler.h"

namespace muster {

class Drafts {
 public:
  struct Parts {
    std::function<const scheduler::Scheduler*()> scheduler;        // null while there is none
    std::function<const controllers::Controllers*()> controllers;  // likewise
    /// Adds this process's own credential to a request in another's name; null where the transport
    /// has it.
    std::function<void(net::Request&)> sign;
  };
  Drafts(Env& env, client::Client& client, Parts parts)
      : env_(env), client_(client), parts_(std::move(parts)) {}

  Task<Result<answers::Draft>> make(answers::Visitor visitor, std::string ns, json::Value job);

 private:
  /// As the visitor; the object as it would be stored.
  Task<Result<json::Value>> create_as(const answers::Visitor& visitor,
                                      std::string target,
                                      const json::Value& object);
  /// As controllers do.
  Task<Result<json::Value>> create(std::string target, json::Value object);
  Task<Result<void>> complete(std::vector<json::Value>& objects, answers::Draft& draft);

  Env& env_;
  client::Client& client_;
  Parts parts_;
};

}  // namespace muster
