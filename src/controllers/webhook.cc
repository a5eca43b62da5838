#include "controllers/webhook.h"

#include <fmt/core.h>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "controllers/common/admission.h"
#include "controllers/queue_access.h"
#include "json/json.h"
#include "net/http/listen_address.h"

namespace muster::controllers {
namespace {

json::Object validate(const json::Value& request) {
  const auto& old_object = json::at(request, "oldObject");
  const auto verdict =
      admit(json::at(request, "object"), old_object.is_object() ? &old_object : nullptr);
  json::Object response{{"allowed", verdict.errors.empty()}};
  if (!verdict.errors.empty()) {
    json::Array causes;
    for (const auto& cause : verdict.errors)
      causes.push_back(json::Object{
          {"reason", cause.reason}, {"message", cause.message}, {"field", cause.field}});
    response["status"] = json::Object{{"status", "Failure"},
                                      {"reason", "Invalid"},
                                      {"code", 422},
                                      {"message", verdict.text()},
                                      {"details", json::Object{{"causes", std::move(causes)}}}};
  }
  json::Array warnings;
  for (const auto& warning : verdict.warnings) warnings.push_back(json::Value(warning));
  if (!warnings.empty()) response["warnings"] = std::move(warnings);
  return response;
}

json::Object fill_in(const json::Value& request) {
  const auto& object = json::at(request, "object");
  const auto filled = with_defaults(object);
  json::Object response{{"allowed", true}};
  if (json::equal(json::at(filled, "spec"), json::at(object, "spec"))) return response;
  const json::Value patch = json::Array{
      json::Object{{"op", "replace"}, {"path", "/spec"}, {"value", json::at(filled, "spec")}}};
  response["patchType"] = "JSONPatch";
  response["patch"] = base64_encode(json::dump(patch));
  return response;
}

json::Object as_response(const Result<void>& allowed) {
  json::Object response{{"allowed", allowed.has_value()}};
  if (!allowed)
    response["status"] = json::Object{{"status", "Failure"},
                                      {"reason", reason_of(allowed.error().code)},
                                      {"code", http_status_of(allowed.error().code)},
                                      {"message", allowed.error().message}};
  return response;
}

Task<net::Response> answer(const net::Request& request, QueueAccess& access) {
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  const std::string path = request.target.substr(0, request.target.find('?'));
  const bool judges = path == "/validate", queues = path == "/queues";
  if (!judges && !queues && path != "/default") {
    response.status = 404;
    co_return response;
  }
  const auto review = json::parse(request.body);
  if (!review || !json::at(*review, "request").is_object()) {
    response.status = 400;
    response.body =
        R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","message":"wanted an AdmissionReview of admission.k8s.io/v1"})";
    co_return response;
  }
  const auto& asked = json::at(*review, "request");
  json::Object said;
  if (queues) {
    const auto allowed = co_await access.check(asked);
    said = as_response(allowed);
  } else {
    said = judges ? validate(asked) : fill_in(asked);
  }
  said["uid"] = json::at(asked, "uid");
  response.body = json::dump(json::Value(json::Object{{"apiVersion", "admission.k8s.io/v1"},
                                                      {"kind", "AdmissionReview"},
                                                      {"response", std::move(said)}}));
  co_return response;
}

struct Pair {
  std::string certificate, key;
  bool operator==(const Pair&) const = default;
};

Result<Pair> read_pair(const WebhookOptions& options) {
  auto certificate = read_file(options.certificate_file);
  if (!certificate)
    return fail(Code::kBadRequest,
                fmt::format("--webhook-certificate: {}", certificate.error().message));
  auto key = read_file(options.key_file);
  if (!key) return fail(Code::kBadRequest, fmt::format("--webhook-key: {}", key.error().message));
  return Pair{std::move(*certificate), std::move(*key)};
}

/// The server, and the look at its files.
class Webhook final : public net::Server {
 public:
  Webhook(Env& env, WebhookOptions options, Pair shown, std::unique_ptr<net::Server> server)
      : env_(env),
        options_(std::move(options)),
        seen_(std::move(shown)),
        server_(std::move(server)) {
    wait();
  }
  [[nodiscard]] std::uint16_t port() const override { return server_->port(); }
  Task<void> stop() override {
    timer_.reset();
    return server_->stop();
  }

 private:
  void wait() {
    timer_ = env_.after(std::chrono::seconds(1), [this] {
      look();
      wait();
    });
  }
  void look() {
    auto found = read_pair(options_);
    // Missing for a moment while they are replaced.
    if (!found || *found == seen_) return;
    seen_ = *found;
    const auto taken =
        net::set_certificate(*server_, std::move(found->certificate), std::move(found->key));
    if (taken)
      log::info("main", "the webhook shows the new certificate");
    else
      log::warn("main",
                "{}: {}; the webhook keeps the certificate it had",
                options_.certificate_file,
                taken.error().message);
  }

  Env& env_;
  WebhookOptions options_;
  Pair seen_;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace

Result<std::unique_ptr<net::Server>> serve_webhook(net::Loop& loop,
                                                   const WebhookOptions& options,
                                                   client::Client& client) {
  auto where = net::parse_listen("--webhook-listen", options.listen);
  if (!where) return fail(where.error());
  auto pair = read_pair(options);
  if (!pair) return fail(pair.error());
  where->certificate_pem = pair->certificate;
  where->key_pem = pair->key;
  const auto access = std::make_shared<QueueAccess>(client, options.queues_closed);
  auto server =
      net::listen(loop,
                  std::move(*where),
                  [access](net::Request request, net::ResponseWriter& writer) -> Task<void> {
                    auto response = co_await answer(request, *access);
                    const auto sent = co_await writer.send(std::move(response));
                    (void)sent;
                  });
  if (!server) return server;
  return std::unique_ptr<net::Server>(
      std::make_unique<Webhook>(loop, options, std::move(*pair), std::move(*server)));
}

}  // namespace muster::controllers
