/// What an exit code means and what to do about it, in a sentence each. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster::portal {

struct Advice {
  std::string reason, advice;
};
Advice advice_for(std::optional<std::int32_t> code, std::string_view phrase);

}  // namespace muster::portal
