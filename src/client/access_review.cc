#include "client/access_review.h"

#include <fmt/core.h>

#include <utility>

#include "kube/security/names.h"

namespace muster::client {

Task<Result<bool>> review_access(Client& client, json::Object spec) {
  const std::string version = fmt::format("{}/v1", kube::names::access::kAuthorization);
  const auto answer = co_await client.raw(
      "POST",
      fmt::format("/apis/{}/subjectaccessreviews", version),
      json::Value{
          {"apiVersion", version}, {"kind", "SubjectAccessReview"}, {"spec", std::move(spec)}});
  if (!answer) co_return fail(answer.error());
  co_return json::bool_at(*answer, "status", "allowed");
}

}  // namespace muster::client
