#include "portal/cluster/samples.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/json.h"
#include "json/text.h"

namespace muster::portal {
namespace {

/// After so many lines the file is written anew, without what is too old.
constexpr int kRewriteAfter = 2160;

}  // namespace

void SampleShelf::add(SampleRow row) {
  if (coarse_.empty() || row.at - coarse_.back().at >= kCoarseMs) coarse_.push_back(row);
  const std::int64_t now = row.at;
  fine_.push_back(std::move(row));
  while (!fine_.empty() && now - fine_.front().at > kFineKeptMs) fine_.pop_front();
  while (!coarse_.empty() && now - coarse_.front().at > kCoarseKeptMs) coarse_.pop_front();
}

std::vector<const SampleRow*> SampleShelf::between(std::int64_t from,
                                                   std::int64_t to,
                                                   std::int64_t step) const {
  std::vector<const SampleRow*> rows;
  std::int64_t last = -step;
  const auto take = [&](const SampleRow& row) {
    if (row.at < from || row.at >= to || row.at - last < step) return;
    rows.push_back(&row);
    last = row.at;
  };
  const std::int64_t fine_from = fine_.empty() ? to : fine_.front().at;
  for (const SampleRow& row : coarse_) {
    if (row.at < fine_from) take(row);
  }
  for (const SampleRow& row : fine_) take(row);
  return rows;
}

std::string line_of(const SampleRow& row) {
  std::string out = fmt::format(R"({{"at":{},"t":{{)", row.at);
  bool first = true;
  for (const auto& [name, sample] : row.tenants) {
    if (!first) out += ',';
    first = false;
    json::append_string(out, name);
    out += fmt::format(":[{},{},{},{},{},{}]",
                       sample.used,
                       sample.oppo,
                       sample.guarantee,
                       sample.deserved,
                       sample.capability,
                       sample.waiting);
  }
  return out + "}}\n";
}

void SampleShelf::read(std::string_view line) {
  const auto value = json::parse(line);
  if (!value) return;
  SampleRow row;
  row.at = json::int_at(*value, "at");
  // The clock may have gone back; what is kept stays in order.
  if (row.at <= 0 || (!fine_.empty() && row.at <= fine_.back().at)) return;
  for (const auto& [name, list] : json::object_at(*value, "t")) {
    const json::Array& numbers = json::as_array(list);
    const auto number = [&](std::size_t i) {
      return i < numbers.size() && numbers[i].is_number() ? numbers[i].to_number<float>() : 0.0F;
    };
    row.tenants[std::string(name)] = {
        number(0), number(1), number(2), number(3), number(4), number(5)};
  }
  add(std::move(row));
}

std::string SampleShelf::text() const {
  std::string out;
  const std::int64_t fine_from = fine_.empty() ? 0 : fine_.front().at;
  for (const SampleRow& row : coarse_) {
    if (row.at < fine_from) out += line_of(row);
  }
  for (const SampleRow& row : fine_) out += line_of(row);
  return out;
}

Samples::Samples(Env& env, std::function<std::vector<TenantFacts>()> tenants, std::string file)
    : env_(env), tenants_(std::move(tenants)), file_(std::move(file)) {}

void Samples::start() {
  if (!tenants_) return;
  if (!file_.empty()) {
    if (const auto text = read_file(file_); text) {
      for (const std::string& line : split_nonempty(*text, '\n')) shelf_.read(line);
    }
  }
  next();
}

void Samples::next() {
  timer_ = env_.after(Duration(SampleShelf::kFineMs * 1000), [this] { take(); });
}

void Samples::take() {
  SampleRow row;
  row.at = env_.now().us / 1000;
  for (const TenantFacts& tenant : tenants_()) {
    Sample& sample = row.tenants[tenant.name];
    sample.used = static_cast<float>(tenant.used.gpus);
    sample.oppo = static_cast<float>(tenant.oppo.gpus);
    sample.guarantee = static_cast<float>(tenant.guarantee.gpus);
    sample.deserved = tenant.deserved ? static_cast<float>(tenant.deserved->gpus) : 0.0F;
    sample.capability = tenant.capability ? static_cast<float>(tenant.capability->gpus) : -1.0F;
    sample.waiting = static_cast<float>(tenant.waiting_gpus);
  }
  std::string line = line_of(row);
  shelf_.add(std::move(row));
  if (++since_written_ >= kRewriteAfter) {
    since_written_ = 0;
    write(shelf_.text(), true);
  } else {
    write(std::move(line), false);
  }
  next();
}

void Samples::write(std::string text, bool whole) {
  if (file_.empty()) return;
  env_.offload(
      [path = file_, text = std::move(text), whole] {
        if (whole) {
          const auto written = write_private(path, text);
          if (!written) log::warn("portal", "samples are not kept: {}", written.error().message);
          return;
        }
        std::ofstream file(path, std::ios::app | std::ios::binary);
        file << text;
      },
      [] {});
}

}  // namespace muster::portal
