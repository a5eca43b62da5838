/// MD5 of OpenSSL, for names only: arena derives the user's label and ConfigMap names from it,
/// OpenPAI the names of its objects and its port numbers.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// 32 hexadecimal digits.
std::string md5_hex(std::string_view bytes);

}  // namespace muster
