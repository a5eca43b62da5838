/// Names of people and groups as names of Secrets: OpenPAI writes each as the lower-case
/// hexadecimal of its bytes, so that any name is a good one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::pai {

std::string hex(std::string_view bytes);
std::optional<std::string> unhex(std::string_view text);

}  // namespace muster::pai
