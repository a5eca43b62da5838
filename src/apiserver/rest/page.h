/// Which objects a list answers with: options, pages that stay at the first page's revision.
#pragma once

#include <string>
#include <vector>

#include "apiserver/core.h"
#include "apiserver/rest/rest.h"

namespace muster::apiserver {

struct Page {
  std::vector<StoredPtr> objects;
  Revision revision = 0;
  std::string continue_token;
  std::int64_t remaining = 0;
};

Result<void> check_list_options(const Call& call);
/// An Expired error carries the token to go on with in `subject.name`.
Task<Result<Page>> find_page(Core& core, const Call& call, const Selection& selection);

}  // namespace muster::apiserver
