/// What the texts that administrators edit have in common: former ones are kept, and what is wrong
/// with one is told with its line.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "portal/api/api.h"
#include "portal/topics/topics.h"

namespace muster::portal {

struct EditedText {
  std::string version, text;
};

/// The newest first: {version, at, user, text}. `name` is that of the ConfigMap that keeps them.
Task<json::Array> former_versions(World& world, const char* name);
/// As many as are worth going back to.
Task<void> keep_version(World& world, const char* name, User user, EditedText edited);

/// The new text of a request {text, resourceVersion}. Nothing: the answer was given, because the body
/// is none such, somebody else has changed `what` meanwhile, or the check refuses it.
Task<std::optional<std::string>> text_to_write(
    ApiCall& call,
    const EditedText& present,
    const char* what,
    const std::function<json::Value(const std::string&)>& check);

/// {ok: false, line, message}; a message that begins with "line 7: " tells the line.
json::Value refused_text(const std::string& message);

}  // namespace muster::portal
