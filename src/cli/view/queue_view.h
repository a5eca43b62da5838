/// Queues as text. Pure.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace muster::cli {

struct QueueRow {
  std::string name, parent, state;
  std::int64_t weight = 1, priority = 0;
  std::string allocated, deserved, guarantee, capability;  // GPUs; "-" when not set
  int pending = 0, inqueue = 0, running = 0;               // PodGroups
};

std::vector<QueueRow> make_queues(const std::vector<const json::Value*>& queues,
                                  const std::vector<const json::Value*>& groups);
std::string view_queues(const std::vector<QueueRow>& rows);
/// One queue with all its resources.
std::string view_queue(const QueueRow& row, const json::Value& queue);

}  // namespace muster::cli
