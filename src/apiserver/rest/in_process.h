/// The server's API for the other rooms of this process: the verbs of client::Client, called with
/// values. No path is printed and parsed, no body is text, an error is the very error; objects are
/// the image's own (kube/shared.h). Everything else is as for a request over HTTP: the user's
/// rights, admission, turns and counters (router.h).
#pragma once

#include <memory>
#include <string>

#include "apiserver/core.h"
#include "client/client.h"

namespace muster::apiserver {

/// `user` is one of Muster's own components, trusted without a credential. The client must not
/// outlive the server.
std::unique_ptr<client::Client> make_in_process_client(Core& core, std::string user);

}  // namespace muster::apiserver
