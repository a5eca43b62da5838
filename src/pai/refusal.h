/// What OpenPAI's REST API answers when it does not do what it was asked: an HTTP status, one of
/// OpenPAI's own codes and a sentence.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "base/result.h"

namespace muster::pai {

struct Refusal {
  int status = 400;
  std::string code;
  std::string message;
  int retry_after_s = 0;  // 0: not said
};

template <typename T>
using Answer = tl::expected<T, Refusal>;

inline tl::unexpected<Refusal> refuse(int status, std::string code, std::string message) {
  return tl::unexpected<Refusal>(
      Refusal{.status = status, .code = std::move(code), .message = std::move(message)});
}
inline tl::unexpected<Refusal> refuse(Refusal refusal) {
  return tl::unexpected<Refusal>(std::move(refusal));
}
/// Something below REST failed: the cluster's own words, under the status it gave.
inline tl::unexpected<Refusal> refuse(const Error& error) {
  return tl::unexpected<Refusal>(Refusal{.status = http_status_of(error.code),
                                         .code = "UnknownError",
                                         .message = error.message,
                                         .retry_after_s = error.retry_after_s});
}

}  // namespace muster::pai
