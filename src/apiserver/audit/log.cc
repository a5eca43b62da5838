#include "apiserver/audit/log.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace muster::apiserver::audit {
namespace {

constexpr std::size_t kPendingMax = 10'000;
constexpr std::size_t kPendingBytesMax = 32 << 20;
/// Enough for a worker to be woken at once, and for one write to cost little beside its lines.
constexpr std::size_t kBatchBytes = 1 << 20;
/// What is kept of the newest lines at most: with bodies a line may be long.
constexpr std::size_t kTailBytesMax = 4 << 20;
constexpr Duration kDelay = std::chrono::milliseconds(50);
constexpr Duration kPatience = std::chrono::seconds(5);
constexpr Duration kSaidEvery = std::chrono::minutes(1);

}  // namespace

Log::Log(Env& env, Options options)
    : env_(env),
      policy_(std::move(options.policy)),
      file_(std::make_shared<File>(std::move(options.file))),
      room_(env.make_signal()) {}

Result<std::unique_ptr<Log>> Log::open(Env& env, Options options) {
  std::unique_ptr<Log> log(new Log(env, std::move(options)));
  const auto opened = log->file_->open();
  if (!opened) return fail(opened.error());
  const std::vector<std::string> before = log->file_->tail(kTailMax);
  if (!before.empty()) {
    Written found{.count = before.size()};
    found.text.append(join(before, "\n") + "\n");
    log->keep(std::move(found));
  }
  return log;
}

bool Log::full() const {
  return pending_.count() >= kPendingMax || pending_.bytes() + writing_bytes_ >= kPendingBytesMax;
}

Task<bool> Log::wait_for_room() {
  const Duration end = env_.monotonic() + kPatience;
  while (full()) {
    const Duration left = end - env_.monotonic();
    if (left <= Duration::zero()) co_return false;
    co_await room_->wait(left);
  }
  co_return true;
}

void Log::add(const Event& event, std::unique_ptr<Bodies> bodies) {
  pending_.add(event, std::move(bodies), phrases_);
  if (writing_) return;
  if (pending_.bytes() >= kBatchBytes)
    flush();
  else if (!soon_)
    soon_ = env_.after(kDelay, [this] { flush(); });
}

void Log::flush() {
  soon_.reset();
  if (writing_ || pending_.count() == 0) return;
  writing_ = true;
  writing_bytes_ = pending_.bytes();
  struct Work {
    Lines lines;
    Written written;
    Result<void> result;
  };
  const auto work = std::make_shared<Work>();
  work->lines = std::exchange(pending_, Lines(std::exchange(spare_, {})));
  env_.offload(
      [work, file = file_, now = env_.now()] {
        work->written = {work->lines.take(), work->lines.count()};
        work->result = file->append(work->written.text, now);
      },
      [this, work] { wrote(work->result, std::move(work->written)); });
}

void Log::keep(Written newest) {
  if (newest.text.size() > kTailBytesMax) {
    const std::string_view all = newest.text.view();
    Block end;
    end.append(all.substr(all.find('\n', all.size() - kTailBytesMax) + 1));
    newest.text = std::move(end);
    newest.count = static_cast<std::size_t>(std::ranges::count(newest.text.view(), '\n'));
  }
  recent_lines_ += newest.count;
  recent_bytes_ += newest.text.size();
  // A busy server's are kept as they are, without a copy; a few lines must not keep the room of many.
  if (newest.text.size() >= kBatchBytes / 4) {
    recent_.push_back(std::move(newest));
  } else {
    if (recent_.empty() || recent_.back().text.size() + newest.text.size() > kBatchBytes)
      recent_.emplace_back();
    recent_.back().text.append(newest.text.view());
    recent_.back().count += newest.count;
    spare_ = std::move(newest.text);
  }
  while (recent_.size() > 1 &&
         (recent_lines_ - recent_.front().count >= kTailMax || recent_bytes_ > kTailBytesMax)) {
    recent_lines_ -= recent_.front().count;
    recent_bytes_ -= recent_.front().text.size();
    spare_ = std::move(recent_.front().text);
    recent_.pop_front();
  }
  if (spare_.capacity() > 2 * kBatchBytes) spare_ = {};
}

void Log::wrote(const Result<void>& result, Written newest) {
  writing_ = false;
  writing_bytes_ = 0;
  if (result) {
    written_ += newest.count;
    keep(std::move(newest));
  } else {
    lost_ += newest.count;
    if (env_.monotonic() - said_ > kSaidEvery || lost_ == newest.count) {
      said_ = env_.monotonic();
      log::error("audit", "{}; {} events are lost so far", result.error().message, lost_);
    }
  }
  room_->notify();
  if (pending_.bytes() >= kBatchBytes)
    flush();
  else if (pending_.count() > 0 && !soon_)
    soon_ = env_.after(kDelay, [this] { flush(); });
}

Task<void> Log::stop() {
  flush();
  while (writing_ || pending_.count() > 0) {
    co_await room_->wait(kPatience);
    flush();
  }
}

std::vector<std::string> Log::last(std::size_t count) const {
  count = std::min(count, kTailMax);
  std::vector<std::string> out;  // the newest first
  for (auto each = recent_.rbegin(); each != recent_.rend() && out.size() < count; ++each) {
    const std::vector<std::string> lines = split_nonempty(each->text.view(), '\n');
    out.insert(out.end(), lines.rbegin(), lines.rend());
  }
  if (out.size() > count) out.resize(count);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace muster::apiserver::audit
