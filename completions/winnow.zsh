#compdef winnow
# SPDX-License-Identifier: Apache-2.0
# zsh completion for winnow: asks the one for bash, which is installed beside it and knows everything.
local script=${functions_source[_winnow]:A:h:h:h}/bash-completion/completions/winnow
local -a found
found=(${(f)"$(bash -c '
  complete() { :; }
  . "$1" || exit
  COMP_CWORD=$2 COMP_WORDS=("${@:3}")
  _winnow && printf "%s\n" "${COMPREPLY[@]}"' - $script $((CURRENT - 1)) "${words[@]}" 2>/dev/null)"})
if (( $#found )); then
  compadd -a found
else
  _files
fi
