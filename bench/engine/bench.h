/// Shared by the engine's benchmarks: clocks, world builders, output.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "engine/engine.h"

namespace muster::bench {

/// CPU seconds of this process so far (getrusage).
double cpu_seconds();

engine::Node gpu_node(const std::string& name,
                      std::int64_t gpus,
                      std::int64_t cpu_milli = 96'000,
                      std::int64_t memory_gib = 1024);
engine::Pod gpu_pod(const std::string& key,
                    std::int64_t gpus,
                    std::int64_t cpu_milli = 4'000,
                    std::int64_t memory_gib = 16);

/// The traces of tests/data.
std::string traces_folder();
/// Lines of a CSV file (plain or .gz) without the header, split at commas.
std::vector<std::vector<std::string>> read_csv(const std::string& path);

void decisions();
void gang();
void fgd_openb();
void backfill_philly();
void backfill_learned();
void deep_backlog();
void copies();
void preempt_min();
void scale();

}  // namespace muster::bench
