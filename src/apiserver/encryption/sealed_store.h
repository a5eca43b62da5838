/// A store that keeps Secrets encrypted, in its history too; whoever uses it sees them in plain.
///
/// Each value has a nonce of its own and is bound to the key of its record, so that it cannot be
/// moved to another. Encrypting is done by the store's thread. When it is opened, Secrets that are
/// in plain or under an older key are encrypted with the first one, and the file is written anew.
#pragma once

#include <memory>
#include <string>

#include "apiserver/encryption/keys.h"
#include "store/store.h"

namespace muster::apiserver::encryption {

/// As store::open. Without keys Secrets are kept in plain, and one that is encrypted is an error.
Result<std::unique_ptr<store::Store>> open(Env& env, const std::string& path, Keys keys);

}  // namespace muster::apiserver::encryption
