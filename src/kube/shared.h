/// Objects as they pass between the embedded server and clients of the same process: as they are,
/// never as text.
#pragma once

#include <memory>

#include "json/json.h"

namespace muster::kube {

/// One state of one object; nobody changes it.
using ObjectPtr = std::shared_ptr<const json::Value>;

/// A copy as the parser would have made it from text: one kind of whole number, text that is UTF-8.
/// What an object of this process may hold and JSON may not is refused here, before it is stored.
Result<json::Value> settled(const json::Value& value);

}  // namespace muster::kube
