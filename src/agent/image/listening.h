/// Waits for a server that is being started, for programs without a loop: `muster image import` right
/// after `muster up --detach` comes before containerd has its socket. (A loop has SocketWatch.)
#pragma once

#include <string>

#include "base/time.h"

namespace muster::agent::image {

/// Until somebody listens at `socket`, and not much longer than `patience`. False: nobody does.
bool await_listening(const std::string& socket, Duration patience);

}  // namespace muster::agent::image
