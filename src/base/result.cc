#include "base/result.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace muster {
namespace {

struct Row {
  Code code;
  int http_status;
  std::string_view reason;
};

constexpr Row kRows[] = {
    {Code::kBadRequest, 400, "BadRequest"},
    {Code::kUnauthorized, 401, "Unauthorized"},
    {Code::kForbidden, 403, "Forbidden"},
    {Code::kNotFound, 404, "NotFound"},
    {Code::kMethodNotAllowed, 405, "MethodNotAllowed"},
    {Code::kNotAcceptable, 406, "NotAcceptable"},
    {Code::kAlreadyExists, 409, "AlreadyExists"},
    {Code::kConflict, 409, "Conflict"},
    {Code::kGone, 410, "Gone"},
    {Code::kExpired, 410, "Expired"},
    {Code::kTooLarge, 413, "RequestEntityTooLarge"},
    {Code::kUnsupportedMediaType, 415, "UnsupportedMediaType"},
    {Code::kInvalid, 422, "Invalid"},
    {Code::kTooManyRequests, 429, "TooManyRequests"},
    {Code::kInternal, 500, "InternalError"},
    {Code::kUnavailable, 503, "ServiceUnavailable"},
    {Code::kTimeout, 504, "Timeout"},
};

const Row& row_of(Code code) { return kRows[static_cast<std::size_t>(code)]; }

}  // namespace

std::string_view reason_of(Code code) { return row_of(code).reason; }

int http_status_of(Code code) { return row_of(code).http_status; }

Code code_of(std::string_view reason, int http_status) {
  for (const Row& row : kRows) {
    if (row.reason == reason) {
      return row.code;
    }
  }
  // 409 and 410 have two reasons each; without one, Conflict and Expired are what clients handle
  // best.
  if (http_status == 409) return Code::kConflict;
  if (http_status == 410) return Code::kExpired;
  for (const Row& row : kRows) {
    if (row.http_status == http_status) {
      return row.code;
    }
  }
  return http_status >= 400 && http_status < 500 ? Code::kBadRequest : Code::kInternal;
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", file, line, condition, message.c_str());
  std::abort();
}

}  // namespace muster
