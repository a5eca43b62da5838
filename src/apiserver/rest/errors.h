/// Errors in Kubernetes' words, and the Status object that carries them.
#pragma once

#include <string>
#include <string_view>

#include "apiserver/registry/resources.h"
#include "base/result.h"
#include "json/json.h"
#include "net/http/http.h"

namespace muster::apiserver {

Error not_found(const Resource& resource, std::string_view name);
Error already_exists(const Resource& resource, std::string_view name);
Error conflict(const Resource& resource, std::string_view name, std::string_view why);
/// `pods "x" is forbidden: why`.
Error forbidden(const Resource& resource, std::string_view name, std::string_view why);
Error modified(const Resource& resource, std::string_view name);
Error bad_request(std::string message);
Error no_such_path();  // "the server could not find the requested resource"
Error method_not_allowed();
/// The 422 of a list or delete option: `ListOptions.meta.k8s.io "" is invalid: …`.
Error invalid_option(std::string_view options_kind,
                     std::string_view field,
                     std::string_view reason,
                     std::string message);
/// 504 with cause ResourceVersionTooLarge.
Error version_too_large(std::uint64_t wanted, std::uint64_t current);

json::Value status_of(const Error& error);
net::Response error_response(const Error& error);
net::Response json_response(int status, const json::Value& value);
net::Response text_response(int status, std::string text);
/// {"kind":"Status","status":"Success",…}.
json::Value success_status(const Resource& resource, std::string_view name, std::string_view uid);

}  // namespace muster::apiserver
