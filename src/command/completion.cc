/// The scripts that make a shell ask the program what may come next.
#include <fmt/core.h>

#include "base/strings.h"
#include "command/help.h"

namespace muster::command {
namespace {

constexpr const char* kBash = R"(# bash completion for PROGRAM
_PROGRAM_complete() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "$word" 2>/dev/null)
  if [ ${#COMPREPLY[@]} -eq 0 ]; then
    COMPREPLY=($(compgen -f -- "$word"))
  elif [ ${#COMPREPLY[@]} -eq 1 ] && [[ "${COMPREPLY[0]}" == *= ]]; then
    compopt -o nospace
  fi
}
complete -F _PROGRAM_complete PROGRAM
)";

constexpr const char* kZsh = R"(#compdef PROGRAM
_PROGRAM_complete() {
  local -a found
  found=("${(@f)$(${words[1]} __complete -- "${(@)words[2,CURRENT-1]}" "${words[CURRENT]}" 2>/dev/null)}")
  if [ -z "${found[1]}" ]; then _files; else compadd -- "${found[@]}"; fi
}
compdef _PROGRAM_complete PROGRAM
)";

constexpr const char* kFish = R"(# fish completion for PROGRAM
function __PROGRAM_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
)";

}  // namespace

std::string completion_script(const std::string& shell, const std::string& program) {
  if (shell == "bash") return replace_all(kBash, "PROGRAM", program);
  if (shell == "zsh") return replace_all(kZsh, "PROGRAM", program);
  if (shell == "fish") return replace_all(kFish, "PROGRAM", program);
  return "";
}

Command completion_command() {
  Command made;
  made.name = "completion";
  made.arguments = "bash|zsh|fish";
  made.summary = "Print the completion script of a shell";
  made.details = "  source <(muster completion bash)";
  made.completes = Completes::kWords;
  made.words = {"bash", "zsh", "fish"};
  made.run = [](Call& call) {
    const std::string& shell = call.values.args[0];
    const std::string script = completion_script(shell, call.program.name);
    if (script.empty()) {
      call.console.error(fmt::format("no completions for {}: wanted bash, zsh or fish", shell));
      return 1;
    }
    call.console.out(script);
    return 0;
  };
  return made;
}

}  // namespace muster::command
