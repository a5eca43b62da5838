/// Watches: a cursor over the collection's history.
///
/// A watcher keeps no queue of its own. It reads on from its position when it is woken; one whose
/// position has fallen out of the bounded history is told 410 and cut off. Lines are serialised
/// once per change and shared. One that is up to date and waits (almost all of them, almost always)
/// is not even woken: its line goes out with those of the others (fanout.h).
#include <fmt/core.h>

#include "apiserver/rest/convert.h"
#include "apiserver/rest/rest.h"
#include "base/strings.h"
#include "kube/apply/managed.h"
#include "kube/names.h"
#include "kube/table/table.h"
#include "net/http/query.h"

namespace muster::apiserver {
namespace {

constexpr std::size_t kChunkBytes = 1024 * 1024;
constexpr auto kBookmarkEvery = std::chrono::seconds(60);

std::string line_of(std::string_view type, std::string_view object) {
  std::string line;
  line.reserve(object.size() + type.size() + 32);
  line += "{\"type\":\"";
  line += type;
  line += "\",\"object\":";
  line += object;
  line += "}\n";
  return line;
}

struct Wanted {
  bool initial = false;  // ADDED for what exists
  bool mark_initial_end = false;
  bool bookmarks = false;
  Revision from = 0;  // events after this one
};

Result<Wanted> parse_wanted(const Call& call) {
  Wanted wanted;
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

/// One watch from its first byte to its last.
class Watch final : public Fanout::Target {
 public:
  Watch(Core& core,
        Call& call,
        Accepted accepted,
        Selection selection,
        Wanted wanted,
        net::ResponseWriter& writer)
      : Target(writer),
        core_(core),
        call_(call),
        accepted_(std::move(accepted)),
        selection_(std::move(selection)),
        wanted_(wanted),
        writer_(writer),
        collection_(core.collection(*call.resource)),
        signal_(core.env.make_signal()),
        sleeper_(core.gate, *signal_) {
    subscription_.ns = selection_.ns;
    subscription_.tell = [this](const Change* change) {
      if (change == nullptr || !take(*change)) signal_->notify();
    };
    collection_.subscribe(&subscription_);
    ++core_.watches;
    values_ = call.request.wants_value && accepted_.form == Form::kObject;
  }
  ~Watch() override {
    core_.fanout.remove(*this);
    collection_.unsubscribe(&subscription_);
    --core_.watches;
  }

  void on_sent(net::ResponseWriter::Now result) override {
    if (result == net::ResponseWriter::Now::kSent) return;
    idle_ = false;  // run() goes on with what could not be sent
    signal_->notify();
  }

  Task<void> run() {
    writer_.on_close([signal = signal_] { signal->notify(); });
    net::Response head;
    head.headers.set("Content-Type", "application/json");
    head.headers.set("Cache-Control", "no-cache, private");
    const auto started = co_await writer_.start(std::move(head));
    if (!started) co_return;
    const bool good = co_await begin();
    if (good) co_await follow();
    if (!writer_.closed()) (void)co_await writer_.finish();
  }

 private:
  Task<bool> begin() {
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

  Task<bool> send_initial() {
    const Revision snapshot = core_.image.revision();
    cursor_ = collection_.next_sequence();
    std::vector<StoredPtr> objects;
    const std::string prefix = selection_.ns.empty() ? "" : selection_.ns + "/";
    for (auto it = collection_.objects().lower_bound(prefix);
         it != collection_.objects().end() && it->first.starts_with(prefix);
         ++it) {
      if (selection_.matches(*call_.resource, *it->second)) objects.push_back(it->second);
    }
    told_ = snapshot;
    for (const StoredPtr& stored : objects) {
      add("ADDED", stored);
      if (pending_.size() + batch_bytes_ >= kChunkBytes) {
        const bool sent = co_await flush();
        if (!sent) co_return false;
      }
    }
    if (wanted_.mark_initial_end) add_bookmark(snapshot, true);
    const bool sent = co_await flush();
    co_return sent;
  }

  /// Changes from before this process started, off the disk.
  Task<bool> send_older() {
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

  Task<void> follow() {
    const Duration started = core_.env.monotonic();
    Duration last_bookmark = started;
    const Duration limit = timeout();
    while (!core_.gate.closed() && !writer_.closed()) {
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
      if (wanted_.bookmarks)
        wait = std::min<Duration>(wait, kBookmarkEvery - (now - last_bookmark));
      idle_ = true;
      co_await signal_->wait(std::max<Duration>(wait, std::chrono::milliseconds(1)));
      idle_ = false;
    }
  }

  /// While nothing else is to be done, takes the newest change along for the fan-out. False: run()
  /// must look.
  bool take(const Change& change) {
    if (values_ || !idle_ || cursor_ + 1 != collection_.next_sequence() ||
        line_bytes_ > kChunkBytes)
      return false;
    ++cursor_;
    if (change.revision <= wanted_.from) return true;
    Bytes line = shared_line(change);
    if (!line) {
      append(change);
      if (pending_.empty()) return true;  // not told: a bookmark says how far it is
      line = std::make_shared<const std::string>(std::exchange(pending_, std::string()));
    }
    told_ = change.revision;
    line_bytes_ += line->size();
    lines_.push_back(std::move(line));
    core_.fanout.add(*this);
    return true;
  }

  /// What take() took and the fan-out has not sent (yet).
  Task<bool> send_taken() {
    core_.fanout.remove(*this);
    for (const Bytes& line : lines_) pending_ += *line;
    lines_.clear();
    line_bytes_ = 0;
    const auto kept = co_await writer_.flush();
    if (!kept) co_return false;
    const bool sent = co_await flush();
    co_return sent;
  }

  Task<bool> send_new() {
    while (cursor_ < collection_.next_sequence() && cursor_ >= collection_.first_sequence()) {
      const ChangePtr change = collection_.change(cursor_);
      ++cursor_;
      if (change->revision <= wanted_.from) continue;
      const bool last = cursor_ >= collection_.next_sequence();
      if (last && pending_.empty() && !values_) {
        const Bytes line = shared_line(*change);
        if (line) {
          told_ = change->revision;
          const auto written = co_await writer_.write(line);
          if (!written) co_return false;
          continue;
        }
      }
      append(*change);
      if (pending_.size() + batch_bytes_ >= kChunkBytes || cursor_ >= collection_.next_sequence()) {
        const bool sent = co_await flush();
        if (!sent) co_return false;
      }
    }
    co_return true;
  }

  Task<bool> flush() {
    if (values_) {
      const bool sent = co_await flush_values();
      co_return sent;
    }
    if (pending_.empty()) co_return true;
    auto chunk = std::make_shared<const std::string>(std::move(pending_));
    pending_.clear();
    const auto written = co_await writer_.write(std::move(chunk));
    co_return written.has_value();
  }

  Task<bool> flush_values() {
    if (batch_.empty()) co_return true;
    auto batch = std::make_shared<const std::vector<kube::Watched>>(std::exchange(batch_, {}));
    const auto written = co_await writer_.write_value(kube::WatchBatch(std::move(batch)),
                                                      std::exchange(batch_bytes_, 0));
    co_return written.has_value();
  }

  Task<void> send_error(Error error) {
    if (values_) batch_.push_back({"ERROR", std::make_shared<const json::Value>(status_of(error))});
    pending_ += line_of("ERROR", json::dump(status_of(error)));
    co_await flush();
  }

  Error too_old(Revision revision) const {
    Error error;
    error.code = Code::kExpired;
    error.message =
        fmt::format("too old resource version: {} ({})", revision, core_.image.revision());
    return error;
  }

  /// "" when this watcher does not see the change.
  std::string_view type_of(const Change& change) const {
    if (!in_namespace(*change.after)) return "";
    const bool was = change.before && selection_.matches(*call_.resource, *change.before);
    if (change.deleted)
      return (change.before ? was : selection_.matches(*call_.resource, *change.after)) ? "DELETED"
                                                                                        : "";
    const bool is = selection_.matches(*call_.resource, *change.after);
    if (is) return was ? "MODIFIED" : "ADDED";
    return was ? "DELETED" : "";
  }

  bool in_namespace(const Stored& stored) const {
    return selection_.ns.empty() || stored.ns() == selection_.ns;
  }

  /// The line of the common case: whole objects, no transition out of the selection. While the
  /// change is being published it is one for all who want the same.
  Bytes shared_line(const Change& change) const {
    if (accepted_.form == Form::kTable) return nullptr;
    const std::string_view type = type_of(change);
    if (type.empty() || (type == "DELETED" && !change.deleted)) return nullptr;
    const bool partial = accepted_.form != Form::kObject;
    for (const Change::Line& line : change.lines) {
      if (line.type == type[0] && line.partial == partial && line.resource == call_.resource)
        return line.bytes;
    }
    const Bytes whole = partial ? nullptr : served_bytes(*call_.resource, *change.after);
    auto line = std::make_shared<const std::string>(
        whole ? line_of(type, *whole) : line_of(type, object_text(*change.after)));
    if (change.publishing) change.lines.push_back({type[0], partial, call_.resource, line});
    return line;
  }

  void append(const Change& change) {
    const std::string_view type = type_of(change);
    if (type.empty()) return;
    told_ = change.revision;
    if (type == "DELETED" && !change.deleted) {
      // It left the selection: the old content under the new revision.
      const auto old = std::make_shared<Stored>(*change.before);
      json::make(old->object, {"metadata", "resourceVersion"}) = std::to_string(change.revision);
      old->revision = change.revision;
      old->bytes = std::make_shared<const std::string>(kube::object_text(old->object));
      add(type, old);
      return;
    }
    if (values_) {
      add(type, change.after);
      return;
    }
    if (const Bytes line = shared_line(change)) {
      pending_ += *line;
      return;
    }
    add(type, change.after);
  }

  void add(std::string_view type, const StoredPtr& stored) {
    if (!values_) {
      pending_ += line_of(type, object_text(*stored));
      return;
    }
    batch_.push_back({type, served_object(*call_.resource, stored)});
    batch_bytes_ += stored->bytes->size();
  }

  void add_bookmark(Revision revision, bool initial_end) {
    if (!values_) {
      pending_ += bookmark(revision, initial_end);
      return;
    }
    json::Value object = {{"kind", call_.resource->info.kind},
                          {"apiVersion", call_.resource->api_version()},
                          {"metadata", {{"resourceVersion", std::to_string(revision)}}}};
    if (initial_end)
      json::make(object, {"metadata", "annotations", kube::names::kubernetes::kInitialEventsEnd}) =
          "true";
    batch_.push_back({"BOOKMARK", std::make_shared<const json::Value>(std::move(object))});
  }

  std::string object_text(const Stored& stored) const {
    if (accepted_.form == Form::kObject) return *served_bytes(*call_.resource, stored);
    if (accepted_.form != Form::kTable) return partial_metadata(stored.object);
    TableParts parts;
    parts.resource_version = std::to_string(stored.revision);
    const bool columns = !columns_sent_;
    columns_sent_ = true;
    return table_text(
        core_, call_, accepted_, {std::make_shared<const Stored>(stored)}, parts, columns);
  }

  std::string bookmark(Revision revision, bool initial_end) const {
    const std::string metadata =
        fmt::format("{{\"resourceVersion\":\"{}\"{}}}",
                    revision,
                    initial_end ? fmt::format(R"(,"annotations":{{"{}":"true"}})",
                                              kube::names::kubernetes::kInitialEventsEnd)
                                : "");
    const Resource& resource = *call_.resource;
    if (accepted_.form == Form::kTable) {
      std::string cells;
      for (std::size_t i = 0; i < resource.info.columns.size(); ++i)
        cells += i == 0 ? "\"\"" : ",\"\"";
      const std::string columns =
          columns_sent_ ? "null" : json::dump(kube::column_definitions(resource.info));
      columns_sent_ = true;
      return line_of(
          "BOOKMARK",
          fmt::format(
              "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/{}\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"columnDefinitions\":{},\"rows\":[{{\"cells\":[{}],"
              "\"object\":{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{}}}}}]}}",
              accepted_.table_version,
              revision,
              columns,
              cells,
              metadata));
    }
    const bool whole = accepted_.form == Form::kObject;
    return line_of("BOOKMARK",
                   fmt::format("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{}}}",
                               whole ? resource.info.kind : "PartialObjectMetadata",
                               whole ? resource.api_version() : "meta.k8s.io/v1",
                               metadata));
  }

  Duration timeout() {
    const auto given = parse_int(call_.target.get("timeoutSeconds"));
    if (given && *given > 0) return std::chrono::seconds(*given);
    return std::chrono::seconds(1800 + static_cast<std::int64_t>(core_.env.random() % 1800));
  }

  Core& core_;
  Call& call_;
  Accepted accepted_;
  Selection selection_;
  Wanted wanted_;
  net::ResponseWriter& writer_;
  Collection& collection_;
  /// Shared with the close callback, which may outlive the watch.
  std::shared_ptr<Signal> signal_;
  Gate::Sleeper sleeper_;
  Subscription subscription_;
  bool idle_ = false;  // follow() waits, and everything before cursor_ is sent or in lines_
  std::uint64_t cursor_ = 0;
  Revision told_ = 0;  // the revision the client knows of
  std::string pending_;
  bool values_ = false;  // the client is in this process: objects instead of lines
  std::vector<kube::Watched> batch_;
  std::size_t batch_bytes_ = 0;
  mutable bool columns_sent_ = false;
};

}  // namespace

Task<void> watch_objects(Core& core, Call& call, Accepted accepted, net::ResponseWriter& writer) {
  auto selection = parse_selection(call);
  const auto wanted = selection ? parse_wanted(call) : Result<Wanted>(Wanted{});
  if (!selection || !wanted) {
    const Error error = selection ? wanted.error() : selection.error();
    (void)co_await writer.send(error_response(error));
    co_return;
  }
  Watch watch(core, call, std::move(accepted), std::move(*selection), *wanted, writer);
  co_await watch.run();
}

}  // namespace muster::apiserver
