/// OpenPAI's templates: `<% $parameters.a.b %>`, `<% $data.uri[0] %>`. Plain look-ups only; a name
/// that is not known stays as it is written.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "json/json.h"

namespace muster::pai {

/// The values that `$name` stands for.
using Roots = std::map<std::string, const json::Value*, std::less<>>;

/// Ends early once it has written more than `most` bytes: a short text can name a long value often.
std::string render(std::string_view text,
                   const Roots& roots,
                   std::size_t most = std::string_view::npos);

}  // namespace muster::pai
