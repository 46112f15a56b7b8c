# Completion of ptl_info and ptl_perf in bash.
_lintel_words=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../../lintel/completion/words
_lintel_tool() {
  local word=${COMP_WORDS[COMP_CWORD]}
  mapfile -t COMPREPLY < <(compgen -W "$(sh "$_lintel_words" "$1" "${COMP_WORDS[COMP_CWORD - 1]}" "$word")" -- "$word")
}
complete -o default -F _lintel_tool ptl_info ptl_perf
