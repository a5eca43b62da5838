/// The portal's flags, which `muster up` and `muster run` have in common, and how the portal asks the
/// scheduler of its process.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "command/command.h"
#include "main/answers.h"
#include "portal/options.h"
#include "scheduler/scheduler.h"

namespace muster {

std::vector<command::Flag> portal_flags(const char* by_default);
/// Absent: none is wanted.
Result<std::optional<portal::Listening>> portal_listening(const command::Values& values);

/// Fills in what the scheduler knows. `find` gives it while it runs, else null.
void ask_scheduler(portal::Options& options, std::function<const scheduler::Scheduler*()> find);
/// Lets administrators read and change the file that the scheduler follows; `optional`: the defaults
/// hold without it.
void edit_policy(portal::Options& options, const std::string& file, bool optional);
/// Fills in what is foretold and held. `answers` outlives the portal.
void ask_answers(portal::Options& options, Answers& answers);

}  // namespace muster
