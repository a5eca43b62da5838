/// Quantities, times and durations: the canonical text of a quantity is a fixed point and has the
/// same value.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/quantity.h"
#include "base/time.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto quantity = parse_quantity(text)) {
    const auto again = parse_quantity(quantity->text());
    if (!again || *again != *quantity || again->text() != quantity->text()) std::abort();
  }
  if (const auto time = parse_time(text)) {
    const auto again = parse_time(format_micro_time(*time));
    if (!again || *again != *time) std::abort();
  }
  if (const auto duration = parse_duration(text)) (void)human_duration(*duration);
  return 0;
}
