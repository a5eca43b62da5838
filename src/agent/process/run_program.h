/// A program of the machine, such as iptables, with its input: to its end, but not for ever.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::agent::process {

/// What it prints. On failure what it says; kTimeout: it did not end in time and was killed, with what
/// it had started. Blocking.
Result<std::string> run_program(std::vector<std::string> words,
                                const std::string& input,
                                Duration patience);

}  // namespace muster::agent::process
