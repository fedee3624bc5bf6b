# SPDX-License-Identifier: Apache-2.0
# bash completion for winnow: commands, options as --help lists them, methods as `winnow methods` does.
_winnow_docs_commands() { winnow docs --help 2>/dev/null | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }

_winnow() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  local words=("$command")
  [[ $command =~ ^(docs|papers)$ ]] && words+=("${COMP_WORDS[2]}")
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "run chat serve docs bench eval papers tune calibrate methods inspect --help --version" -- "$current")
  elif [ "$command" = docs ] && [ "$COMP_CWORD" -eq 2 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_winnow_docs_commands) --help" -- "$current")
  elif [ "$command" = docs ] && [[ $previous == --doc || ${COMP_WORDS[2]} =~ ^(show|rm|export)$ ]] && [[ $current != -* && $previous != -o ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(winnow docs list 2>/dev/null | cut -d' ' -f1)" -- "$current")
  elif [ "$previous" = --kv ] || [ "$command" = methods ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(winnow methods 2>/dev/null | cut -d' ' -f1)" -- "$current")
  elif [ "$previous" = --kv-type ]; then
    mapfile -t COMPREPLY < <(compgen -W "f32 f16 bf16 q8_0 q4_0" -- "$current")
  elif [ "$command" = eval ] && [[ $current != -* && $previous != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "tasks report compare merge $(winnow eval tasks 2>/dev/null | cut -d' ' -f1)" -- "$current")
  elif [ "$command" = papers ] && [ "$COMP_CWORD" -eq 2 ]; then
    mapfile -t COMPREPLY < <(compgen -W "show run report --help" -- "$current")
  elif [ "$command" = papers ] && [[ ${COMP_WORDS[2]} =~ ^(show|run)$ && $current != -* && $previous != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(winnow papers 2>/dev/null | cut -d' ' -f1)" -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(winnow "${words[@]}" --help 2>/dev/null | grep -oE -- '--[a-z-]+')" -- "$current")
  fi
}
complete -o default -F _winnow winnow
