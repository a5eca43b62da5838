/// For streams that outlive the question whether somebody may have them. On the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/env.h"
#include "net/http/http.h"

namespace muster::net {

/// The writer of a stream that can be ended from here: to whoever writes it, it looks as if the
/// client had gone.
class EndingWriter final : public ResponseWriter {
 public:
  EndingWriter(Env& env, ResponseWriter& inner) : env_(env), inner_(inner) {}
  void end();

  Task<Result<void>> send(Response response) override { return inner_.send(std::move(response)); }
  Task<Result<void>> start(Response head) override { return inner_.start(std::move(head)); }
  Task<Result<void>> write(std::shared_ptr<const std::string> chunk) override {
    return inner_.write(std::move(chunk));
  }
  Task<Result<void>> finish() override { return inner_.finish(); }
  Now write_now(std::shared_ptr<const std::string> chunk) override {
    return inner_.write_now(std::move(chunk));
  }
  Task<Result<void>> flush() override { return inner_.flush(); }
  [[nodiscard]] bool writes_aside() const override { return inner_.writes_aside(); }
  [[nodiscard]] bool closed() const override { return ended_ || inner_.closed(); }
  void on_close(std::function<void()> callback) override;
  Task<Result<std::unique_ptr<WebSocket>>> upgrade_websocket(std::string protocol) override;
  Task<Result<std::unique_ptr<ByteStream>>> upgrade_raw(Headers headers) override;

 private:
  Env& env_;
  ResponseWriter& inner_;
  bool ended_ = false;
  std::function<void()> callback_;
  std::weak_ptr<WebSocket> socket_;
  std::weak_ptr<ByteStream> bytes_;
};

}  // namespace muster::net
