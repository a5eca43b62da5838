/// What is written down of one request while it goes through the server.
///
/// The router makes a Trail around the writer of the answer, tells it who asks for what and how
/// that was decided, and lets it go when the request is over; whatever answers, the Trail sees it.
/// Without an audit log all of it does nothing.
#pragma once

#include <optional>
#include <string>

#include "apiserver/audit/event.h"
#include "apiserver/audit/id.h"
#include "net/http/http.h"

namespace muster::apiserver::audit {

class Log;

/// One request, however it is answered.
class Record {
 public:
  Record(Core& core, const Call& call);
  Record(const Record&) = delete;
  ~Record();

  /// Who asks, when they want to act as somebody else; that is then the call's user.
  void set_asker(const User& user);
  /// Once it is known who asks for what; decides how much is written, and writes the first line.
  void begin();
  /// Null when nobody will read the reason.
  [[nodiscard]] Reason* reason() {
    reason_ = nullptr;
    return wanted() ? &reason_ : nullptr;
  }
  void set_decision(bool allowed);
  /// A stream has begun.
  void set_started(int code);
  /// `object`: instead of the response's body, to a client of this process.
  void set_answer(const net::Response& response, kube::ObjectPtr object = nullptr);
  [[nodiscard]] std::string_view id() const { return id_.view(); }
  void annotate(std::string_view key, std::string value);

 private:
  [[nodiscard]] bool wanted() const { return verdict_.level != Level::kNone; }
  void add(Stage stage, std::unique_ptr<Bodies> bodies);
  /// Those of the line, made when there is the first.
  Bodies& bodies();
  [[nodiscard]] std::unique_ptr<Bodies> copy_of_bodies() const;
  void keep_request();
  [[nodiscard]] std::string path() const;
  [[nodiscard]] Content bounded(Content content);

  Core& core_;
  Log* log_;
  const Call& call_;
  Time received_{};
  Id id_;
  std::optional<User> asker_;
  bool begun_ = false;
  Verdict verdict_;
  std::string verb_;
  std::string_view decision_;  // empty: none yet
  Reason reason_;
  Annotations annotations_;
  bool secret_ = false;
  int code_ = 0;
  std::unique_ptr<Bodies> bodies_;  // null for most requests
};

/// The same around the writer of an answer. Answers carry the id of their lines (Audit-Id).
class Trail final : public net::ResponseWriter {
 public:
  Trail(Core& core, const Call& call, net::ResponseWriter& inner)
      : inner_(inner), record_(core, call) {}
  Record& record() { return record_; }

  Task<Result<void>> send(net::Response response) override;
  Task<Result<void>> start(net::Response head) override;
  Task<Result<void>> write(std::shared_ptr<const std::string> chunk) override {
    return inner_.write(std::move(chunk));
  }
  Task<Result<void>> finish() override { return inner_.finish(); }
  Now write_now(std::shared_ptr<const std::string> chunk) override {
    return inner_.write_now(std::move(chunk));
  }
  Task<Result<void>> flush() override { return inner_.flush(); }
  [[nodiscard]] bool writes_aside() const override { return inner_.writes_aside(); }
  [[nodiscard]] bool closed() const override { return inner_.closed(); }
  void on_close(std::function<void()> callback) override { inner_.on_close(std::move(callback)); }
  Task<Result<std::unique_ptr<net::WebSocket>>> upgrade_websocket(std::string protocol) override;
  Task<Result<std::unique_ptr<net::ByteStream>>> upgrade_raw(net::Headers headers) override;

 private:
  net::ResponseWriter& inner_;
  Record record_;
};

}  // namespace muster::apiserver::audit
