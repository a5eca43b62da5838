/// Result<T>: a value or an Error. Failing is ordinary here (conflicts, expired watches, dead
/// peers), so errors are values. An Error's code is one of Kubernetes' own status reasons, so an
/// error made deep in the store becomes the right HTTP answer, CLI exit code and event text with no
/// translation table.
///
/// Third kind: bugs. MUSTER_CHECK stays on in release, prints and aborts; it must not be reachable
/// from a request, a file or a peer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace muster {

enum class Code : std::uint8_t {
  kBadRequest,            // 400
  kUnauthorized,          // 401
  kForbidden,             // 403
  kNotFound,              // 404
  kMethodNotAllowed,      // 405
  kNotAcceptable,         // 406
  kAlreadyExists,         // 409
  kConflict,              // 409
  kGone,                  // 410 (reason Gone)
  kExpired,               // 410 (reason Expired)
  kTooLarge,              // 413 RequestEntityTooLarge
  kUnsupportedMediaType,  // 415
  kInvalid,               // 422
  kTooManyRequests,       // 429
  kInternal,              // 500
  kUnavailable,           // 503 ServiceUnavailable
  kTimeout,               // 504
};

/// The reason as Kubernetes spells it, e.g. "AlreadyExists".
std::string_view reason_of(Code code);
/// The HTTP status that goes with it.
int http_status_of(Code code);
/// The code for a Status object's reason; when the reason is unknown, the nearest for the HTTP
/// status.
Code code_of(std::string_view reason, int http_status);

/// One cause of an Invalid error: {"reason":"FieldValueRequired","message":"Required
/// value","field":"spec.x"}.
struct Cause {
  std::string reason;
  std::string message;
  std::string field;
};

/// What the error is about; becomes Status.details.
struct Subject {
  std::string name;
  std::string group;
  std::string kind;  // resource plural, or the Kind for Invalid
  std::string uid;
};

struct Error {
  Code code = Code::kInternal;
  std::string message;  // what was wanted, what was found, what to do; no full stop, ids in quotes
  Subject subject;
  std::vector<Cause> causes;
  int retry_after_s = 0;
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(Base base) : Base(std::move(base)) {}
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
 public:
  using Base = tl::expected<void, Error>;
  using Base::Base;
  Result(Base base) : Base(std::move(base)) {}
};

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(Code code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return tl::unexpected<Error>(std::move(error));
}

[[noreturn]] void check_failed(const char* file,
                               int line,
                               const char* condition,
                               const std::string& message);

}  // namespace muster

/// A bug detector: aborts with the place and the message.
#define MUSTER_CHECK(condition, message)                                 \
  do {                                                                   \
    if (!(condition)) [[unlikely]] {                                     \
      ::muster::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                    \
  } while (false)
