#include "client/bearer.h"

#include <fstream>
#include <iterator>

#include "base/log.h"
#include "base/strings.h"

namespace muster::client {
namespace {

constexpr auto kSpare = std::chrono::seconds(60);
constexpr auto kCommandTimeout = std::chrono::seconds(30);
constexpr auto kFileAge = std::chrono::minutes(1);

}  // namespace

std::string_view Bearer::token() {
  if (options_.file.empty()) return options_.token;
  const auto now = env_.monotonic();
  if (read_at_ == Duration::zero() || now - read_at_ > kFileAge) {
    std::ifstream file(options_.file);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    // A file that is being replaced may be missing for a moment: the old token is better than none.
    if (!trim(text).empty()) options_.token = trim(text);
    read_at_ = now;
  }
  return options_.token;
}

bool Bearer::expires_soon() const {
  return !options_.command.argv.empty() && options_.expires &&
         options_.expires - env_.now() < kSpare;
}

Task<void> Bearer::renew(bool refused) {
  if (refused) read_at_ = Duration::zero();
  if (options_.command.argv.empty() || renewing_) co_return;
  if (!refused && !expires_soon()) co_return;
  renewing_ = true;
  const auto command = options_.command;
  Result<ExecCredential> credential = fail(Code::kInternal, "not run");
  co_await env_.run_on_worker([&] { credential = run_exec_command(command, kCommandTimeout); });
  renewing_ = false;
  if (!credential) {
    log::warn("client", "token not renewed error=\"{}\"", credential.error().message);
    co_return;
  }
  options_.token = credential->token;
  options_.expires = credential->expires;
}

}  // namespace muster::client
