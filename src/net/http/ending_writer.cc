#include "net/http/ending_writer.h"

namespace muster::net {
namespace {

/// "Policy violation", RFC 6455.
constexpr std::uint16_t kNoLongerAllowed = 1008;

/// What both its user and EndingWriter hold on to.
class SharedSocket final : public WebSocket {
 public:
  explicit SharedSocket(std::shared_ptr<WebSocket> inner) : inner_(std::move(inner)) {}
  [[nodiscard]] std::string subprotocol() const override { return inner_->subprotocol(); }
  Task<Result<std::optional<Message>>> read() override { return inner_->read(); }
  Task<Result<void>> write(Message message) override { return inner_->write(std::move(message)); }
  Task<void> close(std::uint16_t code, std::string reason) override {
    return inner_->close(code, std::move(reason));
  }

 private:
  std::shared_ptr<WebSocket> inner_;
};

class SharedBytes final : public ByteStream {
 public:
  explicit SharedBytes(std::shared_ptr<ByteStream> inner) : inner_(std::move(inner)) {}
  Task<Result<std::string>> read() override { return inner_->read(); }
  Task<Result<void>> write(std::string bytes) override { return inner_->write(std::move(bytes)); }
  void close() override { inner_->close(); }

 private:
  std::shared_ptr<ByteStream> inner_;
};

Task<void> close_socket(std::shared_ptr<WebSocket> socket) {
  co_await socket->close(kNoLongerAllowed, "no longer allowed");
}

}  // namespace

void EndingWriter::end() {
  if (ended_) return;
  ended_ = true;
  if (auto socket = socket_.lock()) env_.spawn(close_socket(std::move(socket)));
  if (const auto bytes = bytes_.lock()) bytes->close();
  if (callback_) callback_();
}

void EndingWriter::on_close(std::function<void()> callback) {
  callback_ = callback;
  inner_.on_close(std::move(callback));
}

Task<Result<std::unique_ptr<WebSocket>>> EndingWriter::upgrade_websocket(std::string protocol) {
  auto made = co_await inner_.upgrade_websocket(std::move(protocol));
  if (!made) co_return fail(made.error());
  const std::shared_ptr<WebSocket> shared = std::move(*made);
  socket_ = shared;
  std::unique_ptr<WebSocket> out = std::make_unique<SharedSocket>(shared);
  co_return out;
}

Task<Result<std::unique_ptr<ByteStream>>> EndingWriter::upgrade_raw(Headers headers) {
  auto made = co_await inner_.upgrade_raw(std::move(headers));
  if (!made) co_return fail(made.error());
  const std::shared_ptr<ByteStream> shared = std::move(*made);
  bytes_ = shared;
  std::unique_ptr<ByteStream> out = std::make_unique<SharedBytes>(shared);
  co_return out;
}

}  // namespace muster::net
