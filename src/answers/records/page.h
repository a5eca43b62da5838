/// A thousand ended records in one object (HistoryPage): packed lines of JSON, with a head that says
/// what is inside. A sealed page never changes. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "answers/records/record.h"
#include "base/result.h"

namespace muster::answers {

struct PageHead {
  std::int64_t number = 0;  // counted up, never reused
  std::int64_t count = 0;
  Time first, last;  // ends of the first and the last record
  std::set<std::string> users, queues, days;
};

struct Page {
  PageHead head;
  std::string packed;  // gzip of JSON lines, in base64
};

Page pack_page(std::int64_t number, const std::vector<Record>& records);
Result<std::vector<Record>> unpack_page(const Page& page);

std::string page_name(std::int64_t number);  // "page-00000012"
json::Value page_object(const Page& page);
/// Fails on an object that is no page.
Result<Page> parse_page(const json::Value& object);

/// gzip. unzip() stops at 256 MiB, since what is packed may be anybody's.
std::string zip(std::string_view text);
Result<std::string> unzip(std::string_view packed);

}  // namespace muster::answers
