/// Several gets and lists at once: in one round trip where the server is Muster's, side by side
/// elsewhere.
#pragma once

#include <string>
#include <vector>

#include "cli/shell/session.h"
#include "client/client.h"
#include "json/pick.h"

namespace muster::cli {

/// One get or list. With `members` the answer has only these: Muster's server leaves out the rest,
/// of another server's answer it is cut off before it is parsed.
struct Read {
  std::string target;
  const json::Picks* members = nullptr;
};
Read read_list(const client::Resource& resource,
               const client::ListOptions& options,
               const json::Picks& members);
Read read_object(const client::Resource& resource, const std::string& ns, const std::string& name);

/// The answers in the order of the reads, in the memory of the block; Status answers are errors. An
/// error of the whole when there is no server.
Task<Result<std::vector<Result<json::Value>>>> read_all(Session& session,
                                                        json::Block& block,
                                                        std::vector<Read> reads);

/// The items of a list.
std::vector<json::Value> take_items(json::Value& list);

}  // namespace muster::cli
