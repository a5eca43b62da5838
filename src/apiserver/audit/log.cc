#include "apiserver/audit/log.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace muster::apiserver::audit {
namespace {

constexpr std::size_t kPendingMax = 10'000;
constexpr std::size_t kPendingBytesMax = 32 << 20;
/// Enough for a worker to be woken at once.
constexpr std::size_t kBatch = 512;
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
  if (!before.empty()) log->keep({join(before, "\n") + "\n", before.size()});
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

void Log::add(const Event& event, Bodies&& bodies) {
  pending_.add(event, std::move(bodies));
  if (writing_) return;
  if (pending_.count() >= kBatch)
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
        cut(work->written);
      },
      [this, work] { wrote(work->result, work->lines.count(), std::move(work->written)); });
}

void Log::cut(Written& lines) {
  if (lines.count > kTailMax) {
    std::size_t begin = lines.text.size();
    for (std::size_t i = 0; i <= kTailMax; ++i) begin = lines.text.rfind('\n', begin - 1);
    lines = {lines.text.substr(begin + 1), kTailMax};
  }
  if (lines.text.capacity() / 2 > lines.text.size()) lines.text.shrink_to_fit();
}

void Log::keep(Written newest) {
  tail_count_ += newest.count;
  tail_.push_back(std::move(newest));
  while (tail_count_ - tail_.front().count >= kTailMax) {
    tail_count_ -= tail_.front().count;
    spare_ = std::move(tail_.front().text);
    tail_.pop_front();
  }
}

void Log::wrote(const Result<void>& result, std::size_t count, Written newest) {
  writing_ = false;
  writing_bytes_ = 0;
  if (result) {
    written_ += count;
    keep(std::move(newest));
  } else {
    lost_ += count;
    if (env_.monotonic() - said_ > kSaidEvery || lost_ == count) {
      said_ = env_.monotonic();
      log::error("audit", "{}; {} events are lost so far", result.error().message, lost_);
    }
  }
  room_->notify();
  if (pending_.count() >= kBatch)
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
  for (auto each = tail_.rbegin(); each != tail_.rend() && out.size() < count; ++each) {
    const std::vector<std::string> lines = split_nonempty(each->text, '\n');
    out.insert(out.end(), lines.rbegin(), lines.rend());
  }
  if (out.size() > count) out.resize(count);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace muster::apiserver::audit
