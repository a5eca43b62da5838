#include "apiserver/audit/log.h"

#include "base/log.h"

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
  for (std::string& line : log->file_->tail(kTailMax)) log->tail_.push_back(std::move(line));
  return log;
}

bool Log::full() const {
  return pending_.size() >= kPendingMax || pending_bytes_ + writing_bytes_ >= kPendingBytesMax;
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

void Log::add(Event event) {
  pending_bytes_ += event.bytes();
  pending_.push_back(std::move(event));
  if (writing_) return;
  if (pending_.size() >= kBatch)
    flush();
  else if (!soon_)
    soon_ = env_.after(kDelay, [this] { flush(); });
}

void Log::flush() {
  soon_.reset();
  if (writing_ || pending_.empty()) return;
  writing_ = true;
  writing_bytes_ = std::exchange(pending_bytes_, 0);
  struct Work {
    std::vector<Event> events;
    std::vector<std::string> lines;
    Result<void> result;
  };
  const auto work = std::make_shared<Work>();
  work->events = std::exchange(pending_, {});
  env_.offload(
      [work, file = file_, now = env_.now()] {
        std::string text;
        for (const Event& event : work->events) {
          work->lines.push_back(line_of(event));
          text += work->lines.back();
          text += '\n';
        }
        work->events.clear();
        work->result = file->append(text, now);
      },
      [this, work] { wrote(work->result, std::move(work->lines)); });
}

void Log::wrote(const Result<void>& result, std::vector<std::string> lines) {
  writing_ = false;
  writing_bytes_ = 0;
  if (result) {
    written_ += lines.size();
    for (std::string& line : lines) tail_.push_back(std::move(line));
    while (tail_.size() > kTailMax) tail_.pop_front();
  } else {
    lost_ += lines.size();
    if (env_.monotonic() - said_ > kSaidEvery || lost_ == lines.size()) {
      said_ = env_.monotonic();
      log::error("audit", "{}; {} events are lost so far", result.error().message, lost_);
    }
  }
  room_->notify();
  if (pending_.size() >= kBatch)
    flush();
  else if (!pending_.empty() && !soon_)
    soon_ = env_.after(kDelay, [this] { flush(); });
}

Task<void> Log::stop() {
  flush();
  while (writing_ || !pending_.empty()) {
    co_await room_->wait(kPatience);
    flush();
  }
}

std::vector<std::string> Log::last(std::size_t count) const {
  const std::size_t given = std::min(count, tail_.size());
  return {tail_.end() - static_cast<long>(given), tail_.end()};
}

}  // namespace muster::apiserver::audit
