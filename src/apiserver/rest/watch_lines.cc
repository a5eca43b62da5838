/// Watches over HTTP: one line of JSON for each event.
///
/// Lines are serialised once per change and shared. A watch that is up to date and waits (almost all
/// of them, almost always) is not even woken: its line goes out with those of the others
/// (fanout.h).
#include <fmt/core.h>

#include "apiserver/rest/convert.h"
#include "apiserver/rest/watch.h"
#include "kube/names.h"
#include "kube/table/table.h"

namespace muster::apiserver {
namespace {

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

/// One watch from its first byte to its last.
class LineWatch final : public Watch, private Fanout::Target {
 public:
  LineWatch(Core& core,
            Call& call,
            Accepted accepted,
            Selection selection,
            WatchWanted wanted,
            net::ResponseWriter& writer)
      : Watch(core, call, std::move(selection), wanted),
        Target(writer),
        accepted_(std::move(accepted)),
        writer_(writer) {}
  ~LineWatch() override { core_.fanout.remove(*this); }

  Task<void> run() {
    writer_.on_close([signal = signal_] { signal->notify(); });
    net::Response head;
    head.headers.set("Content-Type", "application/json");
    head.headers.set("Cache-Control", "no-cache, private");
    const auto started = co_await writer_.start(std::move(head));
    if (!started) co_return;
    co_await tell_events();
    if (!writer_.closed()) (void)co_await writer_.finish();
  }

 private:
  void on_sent(net::ResponseWriter::Now result) override {
    if (result == net::ResponseWriter::Now::kSent) return;
    idle_ = false;  // run() goes on with what could not be sent
    signal_->notify();
  }

  [[nodiscard]] bool closed() const override { return writer_.closed(); }

  void on_change(const Change* change) override {
    if (change == nullptr || !take(*change)) signal_->notify();
  }

  /// While nothing else is to be done, takes the newest change along for the fan-out. False: run()
  /// must look.
  bool take(const Change& change) {
    if (!idle_ || cursor_ + 1 != collection_.next_sequence() || line_bytes_ > kChunkBytes)
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

  Task<bool> send_taken() override {
    core_.fanout.remove(*this);
    for (const Bytes& line : lines_) pending_ += *line;
    lines_.clear();
    line_bytes_ = 0;
    const auto kept = co_await writer_.flush();
    if (!kept) co_return false;
    const bool sent = co_await flush();
    co_return sent;
  }

  Task<bool> send_newest(const Change& change) override {
    const Bytes line = pending_.empty() ? shared_line(change) : nullptr;
    if (!line) {
      append(change);
      const bool sent = co_await flush();
      co_return sent;
    }
    told_ = change.revision;
    const auto written = co_await writer_.write(line);
    co_return written.has_value();
  }

  [[nodiscard]] std::size_t added() const override { return pending_.size(); }

  Task<bool> flush() override {
    if (pending_.empty()) co_return true;
    auto chunk = std::make_shared<const std::string>(std::move(pending_));
    pending_.clear();
    const auto written = co_await writer_.write(std::move(chunk));
    co_return written.has_value();
  }

  void add_error(const Error& error) override {
    pending_ += line_of("ERROR", json::dump(status_of(error)));
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

  void add_change(std::string_view type, const Change& change) override {
    if (const Bytes line = shared_line(change))
      pending_ += *line;
    else
      add(type, change.after);
  }

  void add(std::string_view type, const StoredPtr& stored) override {
    pending_ += line_of(type, object_text(*stored));
  }

  void add_bookmark(Revision revision, bool initial_end) override {
    pending_ += bookmark(revision, initial_end);
  }

  std::string object_text(const Stored& stored) const {
    if (accepted_.form == Form::kObject) return *served_bytes(*call_.resource, stored);
    if (accepted_.form != Form::kTable) return partial_metadata(stored.object);
    const bool columns = !columns_sent_;
    columns_sent_ = true;
    return table_text(core_, call_, accepted_, stored, columns);
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

  Accepted accepted_;
  net::ResponseWriter& writer_;
  std::string pending_;
  mutable bool columns_sent_ = false;
};

}  // namespace

Task<void> watch_objects(Core& core, Call& call, Accepted accepted, net::ResponseWriter& writer) {
  auto selection = parse_selection(call);
  const auto wanted = selection ? parse_watch_wanted(call) : Result<WatchWanted>(WatchWanted{});
  if (!selection || !wanted) {
    const Error error = selection ? wanted.error() : selection.error();
    (void)co_await writer.send(error_response(error));
    co_return;
  }
  LineWatch watch(core, call, std::move(accepted), std::move(*selection), *wanted, writer);
  co_await watch.run();
}

}  // namespace muster::apiserver
