#include "apiserver/rest/errors.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "store/store.h"

namespace muster::apiserver {
namespace {

Error about(Code code, const Resource& resource, std::string_view name, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  error.subject.name = std::string(name);
  error.subject.group = resource.info.group;
  error.subject.kind = resource.info.plural;
  return error;
}

/// Kubernetes has no reason of its own for it; etcd's is an InternalError without a remedy.
int http_status(const Error& error) {
  return store::is_full_disk(error) ? 507 : http_status_of(error.code);
}

}  // namespace

Error not_found(const Resource& resource, std::string_view name) {
  return about(Code::kNotFound,
               resource,
               name,
               fmt::format("{} {} not found", resource.group_resource(), quoted(name)));
}

Error already_exists(const Resource& resource, std::string_view name) {
  return about(Code::kAlreadyExists,
               resource,
               name,
               fmt::format("{} {} already exists", resource.group_resource(), quoted(name)));
}

Error conflict(const Resource& resource, std::string_view name, std::string_view why) {
  return about(Code::kConflict,
               resource,
               name,
               fmt::format("Operation cannot be fulfilled on {} {}: {}",
                           resource.group_resource(),
                           quoted(name),
                           why));
}

Error forbidden(const Resource& resource, std::string_view name, std::string_view why) {
  const std::string what = name.empty()
                               ? resource.group_resource()
                               : fmt::format("{} {}", resource.group_resource(), quoted(name));
  return about(Code::kForbidden, resource, name, fmt::format("{} is forbidden: {}", what, why));
}

Error modified(const Resource& resource, std::string_view name) {
  return conflict(
      resource,
      name,
      "the object has been modified; please apply your changes to the latest version and try again");
}

Error bad_request(std::string message) {
  Error error;
  error.code = Code::kBadRequest;
  error.message = std::move(message);
  return error;
}

Error no_such_path() {
  Error error;
  error.code = Code::kNotFound;
  error.message = "the server could not find the requested resource";
  return error;
}

Error method_not_allowed() {
  Error error;
  error.code = Code::kMethodNotAllowed;
  error.message = "the server does not allow this method on the requested resource";
  return error;
}

Error invalid_option(std::string_view options_kind,
                     std::string_view field,
                     std::string_view reason,
                     std::string message) {
  Error error;
  error.code = Code::kInvalid;
  error.message =
      fmt::format("{}.meta.k8s.io \"\" is invalid: {}: {}", options_kind, field, message);
  error.subject.group = "meta.k8s.io";
  error.subject.kind = std::string(options_kind);
  error.causes.push_back({std::string(reason), std::move(message), std::string(field)});
  return error;
}

Error version_too_large(std::uint64_t wanted, std::uint64_t current) {
  Error error;
  error.code = Code::kTimeout;
  error.message = fmt::format("Too large resource version: {}, current: {}", wanted, current);
  error.causes.push_back({"ResourceVersionTooLarge", "Too large resource version", ""});
  error.retry_after_s = 1;
  return error;
}

json::Value status_of(const Error& error) {
  json::Object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"] = json::Object();
  status["status"] = "Failure";
  status["message"] = error.code == Code::kTimeout ? "Timeout: " + error.message : error.message;
  status["reason"] =
      std::string(store::is_full_disk(error) ? store::kInsufficientStorage : reason_of(error.code));
  json::Object details;
  if (!error.subject.name.empty()) details["name"] = error.subject.name;
  if (!error.subject.group.empty()) details["group"] = error.subject.group;
  if (!error.subject.kind.empty()) details["kind"] = error.subject.kind;
  if (!error.subject.uid.empty()) details["uid"] = error.subject.uid;
  if (!error.causes.empty() && !store::is_full_disk(error)) {
    json::Array causes;
    for (const Cause& cause : error.causes) {
      json::Object each;
      if (!cause.reason.empty()) each["reason"] = cause.reason;
      if (!cause.message.empty()) each["message"] = cause.message;
      if (!cause.field.empty()) each["field"] = cause.field;
      causes.push_back(std::move(each));
    }
    details["causes"] = std::move(causes);
  }
  if (error.retry_after_s > 0) details["retryAfterSeconds"] = error.retry_after_s;
  // A refusal to talk at all has no details either, unless it comes from before the handlers ("415:
  // …").
  const bool about_media =
      error.code == Code::kUnsupportedMediaType || error.code == Code::kNotAcceptable;
  const bool plain = (about_media && !error.message.starts_with('4')) ||
                     error.code == Code::kBadRequest || error.code == Code::kUnauthorized ||
                     error.code == Code::kExpired || error.code == Code::kInternal;
  if (!details.empty() || !plain) status["details"] = std::move(details);
  status["code"] = http_status(error);
  return json::Value(std::move(status));
}

net::Response json_response(int status, const json::Value& value) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = json::dump(value);
  response.body += '\n';
  return response;
}

net::Response error_response(const Error& error) {
  net::Response response = json_response(http_status(error), status_of(error));
  if (error.retry_after_s > 0 && error.code != Code::kTooManyRequests)
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  if (error.code == Code::kUnauthorized)
    response.headers.set("WWW-Authenticate", "Bearer realm=\"muster\"");
  return response;
}

net::Response text_response(int status, std::string text) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.headers.set("X-Content-Type-Options", "nosniff");
  response.body = std::move(text);
  return response;
}

json::Value success_status(const Resource& resource, std::string_view name, std::string_view uid) {
  json::Object details;
  details["name"] = std::string(name);
  if (!resource.info.group.empty()) details["group"] = resource.info.group;
  details["kind"] = resource.info.plural;
  if (!uid.empty()) details["uid"] = std::string(uid);
  json::Object status;
  status["kind"] = "Status";
  status["apiVersion"] = "v1";
  status["metadata"] = json::Object();
  status["status"] = "Success";
  status["details"] = std::move(details);
  return json::Value(std::move(status));
}

}  // namespace muster::apiserver
