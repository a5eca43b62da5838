/// Acting as somebody else: the Impersonate-* headers, each of which the caller must be allowed to
/// use (verb `impersonate` on users, groups, serviceaccounts, uids, userextras).
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

/// Who the request acts as: `user` itself without such headers. Forbidden without the right,
/// BadRequest when a group, uid or extra comes without a name.
[[nodiscard]] Result<User> impersonated(Core& core, const net::Request& request, User user);

}  // namespace muster::apiserver
