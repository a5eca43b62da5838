#!/bin/sh
# wrong.sh RUNNER FOLDER: every file must fail, and for the reason given in its "fails": a runner that lets one pass
# would let a broken controller pass.
status=0
for file in "$2"/*.json; do
  wanted=$(sed -n 's/.*"fails": *"\([^"]*\)".*/\1/p' "$file")
  answer=$("$1" "$file")
  case "$answer" in
    *"$wanted"*"0 passed, 1 failed") ;;
    *) echo "$file: wanted a failure with \"$wanted\", got: $answer"; status=1 ;;
  esac
done
exit $status
