#include "portal/topics/advice.h"

#include <fmt/core.h>

namespace muster::portal {

Advice advice_for(std::optional<std::int32_t> code, std::string_view phrase) {
  if (phrase.find("ImagePull") != std::string_view::npos ||
      phrase.find("ErrImage") != std::string_view::npos ||
      phrase.find("image") != std::string_view::npos)
    return {"the image was not found",
            "Check the image's name and tag, and that this cluster may pull it."};
  if (phrase == "OOMKilled")
    return {"killed, out of memory", "Ask for more memory, or make batches smaller."};
  if (!code)
    return {std::string(phrase), "Look at the events and the log of the task that failed."};
  switch (*code) {
    case 0:
      return {"ended well", ""};
    case 1:
      return {"the program ended with an error",
              "The last lines of its log say which; they are on the Logs tab."};
    case 2:
      return {"the command was used wrongly", "Check its arguments; the log says what it wanted."};
    case 126:
      return {"the command could not be run",
              "Check that it is a program of the image and may be executed."};
    case 127:
      return {"the command was not found", "Check its name, and that the image contains it."};
    case 130:
      return {"interrupted", "It received an interrupt (Ctrl-C)."};
    case 134:
      return {"the program aborted itself",
              "An assertion or a library failed; the log's end says where."};
    case 137:
      return {
          "killed",
          "Most often by the limit of memory, or because it did not stop in time: ask for more memory, or end within the grace period."};
    case 139:
      return {"the program accessed memory that is not its own",
              "A crash in native code; match the versions of driver, CUDA and framework."};
    case 143:
      return {"it was asked to stop",
              "It was stopped, preempted or its node was drained; the events say by whom."};
    default:
      break;
  }
  if (*code == -101 || phrase.find("reempt") != std::string_view::npos)
    return {
        "preempted",
        "A job of higher rank needed the room. Jobs that may be requeued start again by themselves."};
  if (*code > 128)
    return {fmt::format("ended by signal {}", *code - 128),
            "Look at the log's end and the events."};
  return {fmt::format("the program ended with code {}", *code),
          "The last lines of its log say why."};
}

}  // namespace muster::portal
