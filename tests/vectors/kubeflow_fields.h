/// What the scenario files of kubeflow/ may say.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace muster::vectors {

/// Fields of a scenario that no check or action reads. Prose (a text or a list of texts) may stand
/// anywhere in the file and its steps.
std::vector<std::string> unknown_fields(const json::Value& file);

/// The paths below spec and metadata that a text of an error names.
std::vector<std::string> field_paths(const std::string& text);

}  // namespace muster::vectors
