/// A program that works until it is told to stop.
#pragma once

#include <functional>

#include "base/env.h"
#include "net/loop/loop.h"

namespace muster {

/// Runs `work` on a loop of its own until it returns the exit code. `stop` is notified for each
/// SIGTERM, SIGINT and SIGHUP; no thread of the process sees them otherwise, so this is called before
/// there is a second one.
int serve_until_signal(const std::function<Task<int>(net::Loop& loop, Signal& stop)>& work);

}  // namespace muster
