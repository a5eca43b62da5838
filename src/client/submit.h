/// POSTs for those who send thousands, such as bindings and events: where the connection allows it, no coroutine waits for the answer.
#pragma once

#include <functional>
#include <string>

#include "client/client.h"

namespace muster::client {

/// To the collection when `name` is empty, else to a subresource of the object.
struct Post {
  const Resource& resource;
  std::string ns;
  std::string name;
  std::string subresource;
  json::Value body;
};

/// `done` is called on the loop, after submit() has returned. A busy server that names a time is asked again then.
void submit(Client& client, Post post, std::function<void(Result<void>)> done);

}  // namespace muster::client
