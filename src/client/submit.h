/// POSTs for those who send thousands, such as bindings and events: where the connection allows it,
/// no coroutine waits for the answer.
#pragma once

#include <functional>
#include <string>

#include "client/client.h"

namespace muster::client {

/// To the collection when `name` is empty, else to a subresource of the object. The body is a tree
/// or, for a client that sends text, the text of one: composed at once it costs a fifth of a tree
/// that is made, written and freed.
struct Post {
  const Resource& resource;
  std::string ns;
  std::string name;
  std::string subresource;
  json::Value body;
  std::string text;  // instead of body
};

/// True where bodies leave this process; inside of it trees are passed as they are.
bool sends_text(Client& client);

/// `done` is called on the loop, after submit() has returned. A busy server that names a time is
/// asked again then.
void submit(Client& client, Post post, std::function<void(Result<void>)> done);

}  // namespace muster::client
