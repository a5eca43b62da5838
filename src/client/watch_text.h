/// The lines of a watch as events.
///
/// A server that binds a thousand pods a second sends as many lines. The server's notes on who
/// wrote which field, a third of a pod's text and more of its tree, are cut out before the text is
/// parsed.
#pragma once

#include <string_view>

#include "client/client.h"

namespace muster::client {

/// The bookmark that ends the initial events.
bool is_initial_end(const WatchEvent& event);

/// `what` names the watch in errors. An event of type ERROR is its error. `managed_fields` false:
/// metadata.managedFields is left out.
Result<WatchEvent> parse_watch_line(std::string_view line,
                                    std::string_view what,
                                    bool managed_fields);

/// The error that a Status object tells.
Error error_of_status(const json::Value& status, int http_status);

}  // namespace muster::client
