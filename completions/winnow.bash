# bash completion for winnow: commands, options as --help lists them, methods as `winnow methods` does.
_winnow() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "run chat methods inspect --help --version" -- "$current")
  elif [ "$previous" = --kv ] || [ "$command" = methods ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(winnow methods 2>/dev/null | cut -d' ' -f1)" -- "$current")
  elif [ "$previous" = --kv-type ]; then
    mapfile -t COMPREPLY < <(compgen -W "f32 f16 bf16 q8_0 q4_0" -- "$current")
  elif [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(winnow "$command" --help 2>/dev/null | grep -oE -- '--[a-z-]+')" -- "$current")
  fi
}
complete -o default -F _winnow winnow
