/// Who runs an image, by the image's own lists of users. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::agent::process {

struct User {
  std::int64_t id = 0;
  std::int64_t group = 0;
  std::vector<std::int64_t> groups;  // further ones
  std::string home = "/";
};

/// `wanted` is "", "name", "id", "name:group" or "id:id"; nothing means root. A name must be in the
/// lists (texts of /etc/passwd and /etc/group), a number need not be.
Result<User> find_user(std::string_view passwd, std::string_view group, std::string_view wanted);

}  // namespace muster::agent::process
