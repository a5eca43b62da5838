#include "answers/records/page.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>

#include "answers/records/usage.h"
#include "base/strings.h"
#include "kube/resources.h"

namespace muster::answers {
namespace {

/// zlib's window of 32 KiB, with gzip's head and checksum around it.
constexpr int kGzip = 15 + 16;
constexpr std::size_t kUnzippedMax = std::size_t{256} << 20;

json::Array list_of(const std::set<std::string>& words) {
  json::Array out;
  for (const std::string& word : words) out.emplace_back(word);
  return out;
}
std::set<std::string> set_of(const json::Value& words) {
  std::set<std::string> out;
  for (const json::Value& word : json::as_array(words)) out.insert(json::text(word));
  return out;
}

Time time_at(const json::Value& object, std::string_view key) {
  const auto time = parse_time(json::string_at(object, key));
  return time ? *time : Time{};
}

}  // namespace

std::string zip(std::string_view text) {
  z_stream stream{};
  MUSTER_CHECK(deflateInit2(&stream, 9, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) == Z_OK,
               "zlib did not start");
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int end = deflate(&stream, Z_FINISH);
  MUSTER_CHECK(end == Z_STREAM_END, "deflate ended early");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

Result<std::string> unzip(std::string_view packed) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzip) != Z_OK) return fail(Code::kInternal, "zlib did not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  int end = Z_OK;
  while (end == Z_OK && out.size() < kUnzippedMax) {
    const std::size_t had = out.size();
    out.resize(had + std::max<std::size_t>(64 << 10, had));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = static_cast<uInt>(out.size() - had);
    end = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (end != Z_STREAM_END) return fail(Code::kInvalid, "the data is not complete gzip");
  return out;
}

Page pack_page(std::int64_t number, const std::vector<Record>& records) {
  Page page;
  page.head.number = number;
  page.head.count = static_cast<std::int64_t>(records.size());
  std::string lines;
  for (const Record& record : records) {
    if (!page.head.first || record.ended < page.head.first) page.head.first = record.ended;
    page.head.last = std::max(page.head.last, record.ended);
    page.head.users.insert(record.user);
    page.head.queues.insert(record.queue);
    for (std::string& day : days_of(record, record.ended)) page.head.days.insert(std::move(day));
    lines += json::dump(record_json(record)) + "\n";
  }
  page.packed = base64_encode(zip(lines));
  return page;
}

Result<std::vector<Record>> unpack_page(const Page& page) {
  const auto bytes = base64_decode(page.packed);
  if (!bytes) return fail(Code::kInvalid, page_name(page.head.number) + ": data is not base64");
  const auto lines = unzip(*bytes);
  if (!lines)
    return fail(Code::kInvalid, page_name(page.head.number) + ": " + lines.error().message);
  std::vector<Record> records;
  records.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(page.head.count, 0, 100'000)));
  for (std::size_t at = 0; at < lines->size();) {
    std::size_t end = lines->find('\n', at);
    if (end == std::string::npos) end = lines->size();
    const auto value = json::parse(std::string_view(*lines).substr(at, end - at));
    if (!value)
      return fail(Code::kInvalid, page_name(page.head.number) + ": " + value.error().message);
    records.push_back(parse_record(*value));
    at = end + 1;
  }
  return records;
}

std::string page_name(std::int64_t number) { return fmt::format("page-{:08}", number); }

json::Value page_object(const Page& page) {
  const kube::Resource& resource = kube::resources::kHistoryPages;
  return json::Object{{"apiVersion", resource.api_version()},
                      {"kind", resource.kind},
                      {"metadata", json::Object{{"name", page_name(page.head.number)}}},
                      {"number", page.head.number},
                      {"count", page.head.count},
                      {"first", format_time(page.head.first)},
                      {"last", format_time(page.head.last)},
                      {"users", list_of(page.head.users)},
                      {"queues", list_of(page.head.queues)},
                      {"days", list_of(page.head.days)},
                      {"data", page.packed}};
}

Result<Page> parse_page(const json::Value& object) {
  Page page;
  page.head.number = json::int_at(object, "number");
  page.head.count = json::int_at(object, "count");
  page.head.first = time_at(object, "first");
  page.head.last = time_at(object, "last");
  page.head.users = set_of(json::at(object, "users"));
  page.head.queues = set_of(json::at(object, "queues"));
  page.head.days = set_of(json::at(object, "days"));
  page.packed = json::text_at(object, "data");
  if (page.head.number < 1 || page.packed.empty())
    return fail(Code::kInvalid, "this HistoryPage has no number or no data");
  return page;
}

}  // namespace muster::answers
