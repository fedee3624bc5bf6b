# SPDX-License-Identifier: Apache-2.0
# fish completion for winnow: asks the one for bash, which is installed beside it and knows everything.
set -g __winnow_bash_completion (status dirname)/../../bash-completion/completions/winnow

function __winnow_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor) "$(commandline --current-token --cut-at-cursor)"
    set -l found (bash -c '
      complete() { :; }
      . "$1" || exit
      COMP_CWORD=$(($# - 2)) COMP_WORDS=("${@:2}")
      _winnow && printf "%s\n" "${COMPREPLY[@]}"' - $__winnow_bash_completion $words 2>/dev/null | string match --regex '.+')
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path $words[-1]
    end
end

complete --command winnow --no-files --arguments '(__winnow_complete)'
