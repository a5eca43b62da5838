/// What of an object a field manager may own: not what only the server writes, and not what belongs
/// to another subresource.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"

namespace muster::kube {

/// The part of an applied configuration.
json::Value owned_part(const json::Value& object, const std::string& subresource);
/// Whether a request to this subresource may own the top-level member. Metadata is looked at by
/// itself.
bool owned_member(std::string_view key, std::string_view subresource);
json::Value owned_metadata(const json::Value& object);
bool same_owned_metadata(const json::Value& a, const json::Value& b);

}  // namespace muster::kube
