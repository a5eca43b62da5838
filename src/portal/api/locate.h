/// Where in a YAML text a complaint belongs: from the path that the API server or OpenPAI's schema
/// names to line and column. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::portal {

struct Spot {
  int line = 0, col = 0;  // from 1; 0: the whole text
};

/// "spec.template.spec.containers[0].image", ".taskRoles['train'].instances" and
/// "metadata.annotations[a.b/c]" as their parts.
std::vector<std::string> path_parts(std::string_view path);

/// Of the key that the last part names, or of its item in a list; where that is not there, of the
/// last one that is.
Spot locate(std::string_view yaml, const std::vector<std::string>& parts);

/// The field errors in what a controller says of an object: `Found validation errors: [spec.a:
/// Required value: x, spec.b: Forbidden: y]`, or one without brackets.
std::vector<std::string> validation_errors(std::string_view said);

/// The line of an error that begins with "line 7: " (and has "column 3" in it, perhaps).
Spot spot_of_message(std::string_view message);

}  // namespace muster::portal
