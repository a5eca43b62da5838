#include "apiserver/rest/watch.h"

#include <fmt/core.h>

#include "apiserver/rest/shares.h"
#include "apiserver/rest/walk.h"
#include "base/pace.h"
#include "base/strings.h"
#include "kube/apply/managed.h"
#include "net/http/query.h"

namespace muster::apiserver {
namespace {

constexpr auto kBookmarkEvery = std::chrono::seconds(60);

}  // namespace

Result<WatchWanted> parse_watch_wanted(const Call& call) {
  WatchWanted wanted;
  const std::string_view version_text = call.target.get("resourceVersion");
  const auto version = parse_version(version_text);
  if (!version) return fail(version.error());
  wanted.from = *version;
  wanted.bookmarks = net::on(call.target, "allowWatchBookmarks");
  const std::string_view match = call.target.get("resourceVersionMatch");
  if (!call.target.has("sendInitialEvents")) {
    if (!match.empty()) {
      return fail(invalid_option(
          "ListOptions",
          "resourceVersionMatch",
          "FieldValueForbidden",
          "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"));
    }
    // Since WatchList such a watch counts as one that asked for initial events, so their end is
    // marked too.
    wanted.initial = version_text.empty() || version_text == "0";
    wanted.mark_initial_end = wanted.initial && wanted.bookmarks;
    return wanted;
  }
  if (match != "NotOlderThan") {
    return fail(invalid_option(
        "ListOptions",
        "resourceVersionMatch",
        "FieldValueForbidden",
        "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
  }
  wanted.initial = net::on(call.target, "sendInitialEvents");
  wanted.mark_initial_end = wanted.initial && wanted.bookmarks;
  return wanted;
}

Watch::Watch(Core& core, Call& call, Selection selection, WatchWanted wanted)
    : core_(core),
      call_(call),
      wanted_(wanted),
      collection_(core.collection(*call.resource)),
      signal_(core.env.make_signal()),
      selection_(std::move(selection)),
      sleeper_(core.gate, *signal_) {
  subscription_.ns = selection_.ns;
  subscription_.tell = [this](const Change* change) { on_change(change); };
  collection_.subscribe(&subscription_);
  ++core_.watches;
}

Watch::~Watch() {
  collection_.unsubscribe(&subscription_);
  --core_.watches;
}

Task<void> Watch::tell_events() {
  const bool good = co_await begin();
  if (good) co_await follow();
}

Task<bool> Watch::begin() {
  if (wanted_.initial) {
    if (wanted_.mark_initial_end && wanted_.from > core_.image.revision()) {
      const bool reached = co_await wait_for_version(core_, wanted_.from);
      if (!reached) {
        co_await send_error(version_too_large(wanted_.from, core_.image.revision()));
        co_return false;
      }
    }
    const bool sent = co_await send_initial();
    co_return sent;
  }
  if (wanted_.from == 0) wanted_.from = core_.image.revision();
  if (wanted_.from < collection_.floor()) {
    const bool resumed = co_await send_older();
    if (!resumed) co_return false;
    cursor_ = collection_.sequence_after(collection_.floor());
    co_return true;
  }
  cursor_ = collection_.sequence_after(wanted_.from);
  told_ = wanted_.from;
  co_return true;
}

Task<bool> Watch::send_initial() {
  const Revision snapshot = core_.image.revision();
  cursor_ = collection_.next_sequence();
  told_ = snapshot;
  const Resource& resource = *call_.resource;
  const Objects unchanged;
  Walk walk(collection_.objects(), unchanged, key_prefix(resource, selection_.ns), "");
  const auto objects = co_await find_selected(core_.slices, resource, walk, selection_, 0);
  Pace pace(core_.slices);
  for (const StoredPtr& stored : objects) {
    if (pace.over()) co_await pace.rest();
    add("ADDED", stored);
    if (added() >= kChunkBytes) {
      const bool sent = co_await flush_initial();
      if (!sent) co_return false;
    }
  }
  if (wanted_.mark_initial_end) add_bookmark(snapshot, true);
  const bool sent = co_await flush_initial();
  co_return sent;
}

/// They are a long list, and count as one.
Task<bool> Watch::flush_initial() {
  if (!call_.in_process && !call_.request.peer.trusted_user)
    core_.shares->charge(call_.user.name, Shares::cost_of_bytes(added()));
  const bool sent = co_await flush();
  co_return sent;
}

/// Changes from before this process started, off the disk.
Task<bool> Watch::send_older() {
  const auto changes = core_.image.older_changes(collection_, wanted_.from);
  if (!changes) {
    co_await send_error(too_old(wanted_.from));
    co_return false;
  }
  for (const ChangePtr& change : *changes) append(*change);
  told_ = collection_.floor();
  const bool sent = co_await flush();
  co_return sent;
}

Task<void> Watch::follow() {
  const Duration started = core_.env.monotonic();
  Duration last_bookmark = started;
  const Duration limit = timeout();
  while (!core_.gate.closed() && !closed()) {
    const bool flushed = co_await send_taken();
    if (!flushed) co_return;
    if (cursor_ < collection_.first_sequence()) {
      co_await send_error(too_old(told_));
      co_return;
    }
    const bool sent = co_await send_new();
    if (!sent) co_return;
    if (collection_.retired && cursor_ >= collection_.next_sequence()) co_return;
    const Duration now = core_.env.monotonic();
    if (now - started >= limit) {
      if (wanted_.bookmarks && core_.image.revision() > told_) {
        add_bookmark(core_.image.revision(), false);
        co_await flush();
      }
      co_return;
    }
    if (wanted_.bookmarks && now - last_bookmark >= kBookmarkEvery) {
      last_bookmark = now;
      if (core_.image.revision() > told_) {
        told_ = core_.image.revision();
        add_bookmark(told_, false);
        const bool marked = co_await flush();
        if (!marked) co_return;
        continue;
      }
    }
    Duration wait = limit - (now - started);
    if (wanted_.bookmarks) wait = std::min<Duration>(wait, kBookmarkEvery - (now - last_bookmark));
    idle_ = true;
    co_await signal_->wait(std::max<Duration>(wait, std::chrono::milliseconds(1)));
    idle_ = false;
  }
}

Task<bool> Watch::send_new() {
  while (cursor_ < collection_.next_sequence() && cursor_ >= collection_.first_sequence()) {
    const ChangePtr change = collection_.change(cursor_);
    ++cursor_;
    if (change->revision <= wanted_.from) continue;
    bool sent = true;
    if (cursor_ >= collection_.next_sequence()) {
      sent = co_await send_newest(*change);
    } else {
      append(*change);
      if (added() >= kChunkBytes) sent = co_await flush();
    }
    if (!sent) co_return false;
  }
  co_return true;
}

Task<void> Watch::send_error(Error error) {
  add_error(error);
  co_await flush();
}

Error Watch::too_old(Revision revision) const {
  Error error;
  error.code = Code::kExpired;
  error.message =
      fmt::format("too old resource version: {} ({})", revision, core_.image.revision());
  return error;
}

std::string_view Watch::type_of(const Change& change) const {
  if (!selection_.ns.empty() && change.after->ns() != selection_.ns) return "";
  const bool was = change.before && selection_.matches(*call_.resource, *change.before);
  if (change.deleted)
    return (change.before ? was : selection_.matches(*call_.resource, *change.after)) ? "DELETED"
                                                                                      : "";
  const bool is = selection_.matches(*call_.resource, *change.after);
  if (is) return was ? "MODIFIED" : "ADDED";
  return was ? "DELETED" : "";
}

void Watch::append(const Change& change) {
  const std::string_view type = type_of(change);
  if (type.empty()) return;
  told_ = change.revision;
  if (type != "DELETED" || change.deleted) return add_change(type, change);
  // It left the selection: the old content under the new revision.
  json::Value old = change.before->object;
  json::make(old, {"metadata", "resourceVersion"}) = std::to_string(change.revision);
  add(type, core_.image.make_stored(change.before->key, change.revision, old));
}

Duration Watch::timeout() {
  const auto given = parse_int(call_.target.get("timeoutSeconds"));
  if (given && *given > 0) return std::chrono::seconds(*given);
  return std::chrono::seconds(1800 + static_cast<std::int64_t>(core_.env.random() % 1800));
}

}  // namespace muster::apiserver
