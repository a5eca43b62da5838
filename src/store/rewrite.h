/// Values of a database that nobody has open, changed in place.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::store {

/// The new value, or nothing to leave it as it is.
using Rewrite =
    std::function<Result<std::optional<std::string>>(std::string_view key, std::string_view value)>;

/// Asks about each record whose key begins with the prefix, its history included, and returns how
/// many were changed: all in one transaction, or none. Afterwards the file is written anew, so that
/// nothing of the old values stays in pages that became free. Revisions stay as they are. A file
/// that is not there yet has nothing to change.
Result<std::size_t> rewrite(const std::string& path,
                            const std::string& prefix,
                            const Rewrite& change);

}  // namespace muster::store
