#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# completions.sh SOURCE WINNOW: zsh and fish complete the same as bash, and files if winnow has no candidates. Exits with
# 77 if neither shell is installed.
set -Eeuo pipefail
source=$1
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
PATH=$(dirname "$2"):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
touch only-file

# With the names of an installation.
install -D "$source/completions/winnow.bash" share/bash-completion/completions/winnow
install -D "$source/completions/winnow.zsh" share/zsh/site-functions/_winnow
install -D "$source/completions/winnow.fish" share/fish/vendor_completions.d/winnow.fish

# Each function prints the completions of a line's last word.
of_bash() {
  # shellcheck disable=SC2016
  bash -c '. share/bash-completion/completions/winnow; COMP_CWORD=$(($# - 1)) COMP_WORDS=("$@"); _winnow
    [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=(only-file); printf "%s\n" "${COMPREPLY[@]}"' - "$@"
}
of_zsh() {
  # shellcheck disable=SC2016
  zsh -fc 'fpath=(share/zsh/site-functions); autoload -Uz _winnow; compadd() { print -rl -- $found }; _files() { print only-file }
    words=("$@") CURRENT=$#; _winnow' - "$@"
}
of_fish() {
  local words=("${@:1:$#-1}")
  # shellcheck disable=SC2016
  HOME=$work fish --no-config -c 'source share/fish/vendor_completions.d/winnow.fish; complete -C $argv[1]' "${words[*]} ${*: -1}" | cut -f1
}

shells=()
for shell in zsh fish; do
  if command -v $shell >/dev/null; then shells+=("$shell"); fi
done
[ ${#shells[@]} -gt 0 ] || exit 77

lines=(
  "winnow "
  "winnow pa"
  "winnow run --kv sna"
  "winnow run --kv-type "
  "winnow serve --ho"
  "winnow docs "
  "winnow papers sh"
  "winnow run -f on"
)
for line in "${lines[@]}"; do
  read -ra words <<<"$line"
  if [[ $line == *" " ]]; then words+=(""); fi
  expected=$(of_bash "${words[@]}" | sort)
  [ -n "$expected" ]
  for shell in "${shells[@]}"; do
    said=$("of_$shell" "${words[@]}" | sort)
    [ "$said" = "$expected" ] || { echo "$shell completes '$line' by:"; echo "$said"; echo "and bash by:"; echo "$expected"; exit 1; }
  done
done
