/// Adds to every answer what goes with every answer of the portal.
#pragma once

#include <memory>
#include <string>

#include "json/json.h"
#include "net/http/http.h"
#include "portal/http/site.h"

namespace muster::portal {

class SecureWriter final : public net::ResponseWriter {
 public:
  explicit SecureWriter(net::ResponseWriter& inner) : inner_(inner) {}

  /// Of the answer; 0: there was none.
  [[nodiscard]] int status() const { return status_; }
  /// Its message, or the id of what was made; empty where it has neither.
  [[nodiscard]] const std::string& said() const { return said_; }

  Task<Result<void>> send(net::Response response) override {
    secure(response);
    note(response);
    return inner_.send(std::move(response));
  }
  Task<Result<void>> start(net::Response head) override {
    secure(head);
    note(head);
    return inner_.start(std::move(head));
  }
  Task<Result<void>> write(std::shared_ptr<const std::string> chunk) override {
    return inner_.write(std::move(chunk));
  }
  Task<Result<void>> finish() override { return inner_.finish(); }
  Now write_now(std::shared_ptr<const std::string> chunk) override {
    return inner_.write_now(std::move(chunk));
  }
  Task<Result<void>> flush() override { return inner_.flush(); }
  [[nodiscard]] bool closed() const override { return inner_.closed(); }
  void on_close(std::function<void()> callback) override { inner_.on_close(std::move(callback)); }
  Task<Result<std::unique_ptr<net::WebSocket>>> upgrade_websocket(
      std::string subprotocol) override {
    return inner_.upgrade_websocket(std::move(subprotocol));
  }
  Task<Result<std::unique_ptr<net::ByteStream>>> upgrade_raw(net::Headers headers) override {
    return inner_.upgrade_raw(std::move(headers));
  }

 private:
  static void secure(net::Response& response) {
    add_security_headers(response.headers);
    if (!response.headers.has("Cache-Control")) response.headers.set("Cache-Control", "no-store");
  }
  void note(const net::Response& response) {
    status_ = response.status;
    if (response.body.empty() || response.body.size() > 4096 || response.body[0] != '{') return;
    const auto value = json::parse(response.body);
    if (!value) return;
    said_ = json::text_at(*value, "message");
    if (said_.empty()) said_ = json::text_at(*value, "id");
  }

  net::ResponseWriter& inner_;
  int status_ = 0;
  std::string said_;
};

}  // namespace muster::portal
