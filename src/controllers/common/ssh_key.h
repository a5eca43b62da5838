/// The key pair with which a launcher reaches its workers.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::controllers {

struct SshKey {
  std::string private_pem;  // "EC PRIVATE KEY", ECDSA P-521
  std::string public_line;  // a line for authorized_keys
};

Result<SshKey> make_ssh_key();

}  // namespace muster::controllers
