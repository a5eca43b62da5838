/// The shapes of answers as JSON. Other teams' jobs lose their names here, and nowhere else.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "answers/shapes.h"
#include "json/json.h"

namespace muster::answers {

/// How somebody calls a gang of the engine: "ns/kind/name" of its job, or "another team's job".
using Naming = std::function<std::string(std::string_view gang)>;

json::Value forecast_json(const Forecast& told, const Naming& name, Time now);

}  // namespace muster::answers
