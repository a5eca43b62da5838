#include "main/portal_people.h"

#include "base/log.h"
#include "base/strings.h"
#include "net/http/client.h"
#include "net/tls/tls.h"
#include "pai/people/password.h"

namespace muster {
namespace {

Error error_of(const pai::Refusal& refusal) {
  Error error;
  const bool wrong = refusal.status == 400 || refusal.status == 404;
  error.code = wrong ? Code::kUnauthorized : code_of("", refusal.status);
  error.message = refusal.message;
  error.retry_after_s = refusal.retry_after_s;
  return error;
}

portal::User user_of(const pai::People& people, const pai::UserRecord& record) {
  portal::User user;
  user.name = record.name;
  user.groups = people.kubernetes_groups(record);
  user.groups.emplace_back("system:authenticated");
  user.vcs = people.vcs_of(record);
  user.admin = people.directory().is_admin(record);
  user.openpai = true;
  user.credential = base64url_encode(net::sha256(record.password));
  return user;
}

}  // namespace

void PortalPeople::fill(portal::Options& options) {
  options.sign_in = [this](std::string user, std::string password, std::string from) {
    return sign_in(std::move(user), std::move(password), std::move(from));
  };
  options.look_up = [this](std::string user) { return look_up(std::move(user)); };
  options.rest = [this](net::Request request, net::ResponseWriter& writer) {
    return rest(std::move(request), writer);
  };
  options.rest_as = [this](portal::User user, net::Request request, net::ResponseWriter& writer) {
    return rest_as(std::move(user), std::move(request), writer);
  };
  options.rest_call = [this](portal::User user,
                             std::string method,
                             std::string target,
                             std::string body,
                             std::string content_type) {
    return rest_call(std::move(user),
                     std::move(method),
                     std::move(target),
                     std::move(body),
                     std::move(content_type));
  };
  if (!known_password_.empty())
    options.known_password = [this](std::string user) {
      return has_known_password(std::move(user));
    };
  options.cells = [this] { return service_ ? service_->recent_use() : nullptr; };
  options.visited = [this] {
    loop_.spawn([](PortalPeople& self) -> Task<void> {
      const auto started = co_await self.service();
      if (!started)
        log::warn("main", "OpenPAI's users cannot be read: {}", started.error().message);
    }(*this));
  };
}

Task<Result<pai::Service*>> PortalPeople::service() {
  if (!started_) started_ = loop_.make_signal();
  while (starting_) co_await started_->wait(std::chrono::milliseconds(50));
  if (service_ != nullptr) co_return service_;
  starting_ = true;
  auto made = co_await start_();
  starting_ = false;
  started_->notify();
  if (!made) co_return made;
  service_ = *made;
  for (const pai::UserRecord* user : service_->people().directory().users())
    passwords_[user->name] = user->password;
  service_->people().directory().on_change([this](const std::string& user) { changed(user); });
  co_return service_;
}

void PortalPeople::changed(const std::string& user) {
  if (portal_ == nullptr) return;
  const pai::UserRecord* record = service_->people().directory().find_user(user);
  const auto known = passwords_.find(user);
  const bool ends =
      record == nullptr || (known != passwords_.end() && known->second != record->password);
  if (record == nullptr) {
    passwords_.erase(user);
    tokens_.erase(user);
  } else {
    passwords_[user] = record->password;
  }
  portal_->user_changed(user, ends);
}

Task<bool> PortalPeople::has_known_password(std::string user) {
  auto people = co_await service();
  if (!people) co_return false;
  const pai::UserRecord* record = (*people)->people().directory().find_user(user);
  if (record == nullptr) co_return false;
  const std::string stored = record->password;
  if (const auto found = known_.find(stored); found != known_.end()) co_return found->second;
  bool same = false;
  co_await loop_.run_on_worker([&] { same = pai::verify_password(stored, user, known_password_); });
  known_ = {{stored, same}};
  co_return same;
}

Task<Result<portal::User>> PortalPeople::sign_in(std::string user,
                                                 std::string password,
                                                 std::string from) {
  auto people = co_await service();
  if (!people) co_return fail(people.error());
  const auto good = co_await (*people)->people().check_password(user, password, from);
  if (!good) co_return fail(error_of(good.error()));
  auto found = co_await look_up(user);
  co_return found;
}

Task<Result<portal::User>> PortalPeople::look_up(std::string user) {
  auto people = co_await service();
  if (!people) co_return fail(people.error());
  const pai::UserRecord* record = (*people)->people().directory().find_user(user);
  if (record == nullptr) co_return fail(Code::kNotFound, "the user no longer exists");
  co_return user_of((*people)->people(), *record);
}

Task<void> PortalPeople::rest(net::Request request, net::ResponseWriter& writer) {
  auto people = co_await service();
  if (people) {
    co_await (*people)->handler()(std::move(request), writer);
    co_return;
  }
  net::Response response;
  response.status = 503;
  response.body = people.error().message + "\n";
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;
}

Task<Result<std::string>> PortalPeople::token_of(std::string user) {
  auto people = co_await service();
  if (!people) co_return fail(people.error());
  if (const auto known = tokens_.find(user);
      known != tokens_.end() && (*people)->people().caller_of_token(known->second))
    co_return known->second;
  auto made = co_await (*people)->people().issue_token(user, false);
  if (!made) co_return fail(Code::kForbidden, "not an account of OpenPAI: " + made.error().message);
  tokens_[user] = *made;
  co_return *made;
}

Task<void> PortalPeople::rest_as(portal::User user,
                                 net::Request request,
                                 net::ResponseWriter& writer) {
  auto answer = co_await rest_call(std::move(user),
                                   request.method,
                                   request.target,
                                   std::move(request.body),
                                   std::string(request.headers.get("Content-Type")));
  net::Response response;
  if (answer) {
    response.status = answer->status;
    response.headers.set("Content-Type", std::string(answer->headers.get("Content-Type")));
    response.body = std::move(answer->body);
  } else {
    response.status = http_status_of(answer.error().code);
    response.headers.set("Content-Type", "application/json");
    response.body = json::dump(
        json::Value{{"code", reason_of(answer.error().code)}, {"message", answer.error().message}});
  }
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;
}

Task<Result<net::Response>> PortalPeople::rest_call(portal::User user,
                                                    std::string method,
                                                    std::string target,
                                                    std::string body,
                                                    std::string content_type) {
  auto token = co_await token_of(user.name);
  if (!token) co_return fail(token.error());
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.set("Authorization", "Bearer " + *token);
  if (!content_type.empty()) request.headers.set("Content-Type", content_type);
  request.body = std::move(body);
  const auto client = net::make_local_client(loop_, service_->handler(), user.name);
  auto answer = co_await client->request(std::move(request));
  co_return answer;
}

}  // namespace muster
