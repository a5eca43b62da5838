/// The shapes of answers as JSON. Other teams' jobs lose their names here, and nowhere else.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "answers/check.h"
#include "answers/shapes.h"
#include "json/json.h"

namespace muster::answers {

/// How somebody calls a gang of the engine: "ns/kind/name" of its job, or "another team's job".
using Naming = std::function<std::string(std::string_view gang)>;

/// The refusal in one sentence, without names that the asker may not know.
std::string refusal_text(const engine::Refusal& refusal, const Naming& name);

json::Value forecast_json(const Forecast& told, const Naming& name, Time now);

/// {verdict, text, placement, victims[{job}], wait, alternatives, at, revision}; `wait` is a forecast,
/// or null.
json::Value decision_json(const Decision& decision, const Naming& name);
/// Spec shape WhatIf.
json::Value whatif_json(const WhatIf& told, const Naming& name);

}  // namespace muster::answers
