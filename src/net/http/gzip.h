/// Packing answers.
#pragma once

#include <string>
#include <string_view>

#include "net/http/http.h"

namespace muster::net {

/// gzip of the whole text; empty when zlib fails.
std::string gzip(std::string_view text);
/// True when an Accept-Encoding header admits gzip.
bool accepts_gzip(const Headers& headers);

}  // namespace muster::net
