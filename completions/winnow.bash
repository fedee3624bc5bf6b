# SPDX-License-Identifier: Apache-2.0
# bash completion for winnow, which knows itself what may come next.
_winnow() {
  local current=${COMP_WORDS[COMP_CWORD]}
  local words=("${COMP_WORDS[@]:1:COMP_CWORD-1}" "$current")
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" complete "${words[@]}" 2>/dev/null | cut -f1)
}
complete -o default -F _winnow winnow
