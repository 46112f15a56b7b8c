# Completion of ptl_info and ptl_perf in bash: options, tests and choices, as --help lists them.
_lintel_tool() {
  local help word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words
  help=$("$1" --help 2> /dev/null) || return 0
  # --wait block|poll=block: the choices of the option before the cursor.
  if [[ $previous == --* ]]; then
    words=$(sed -n "s/^ *$previous \([a-z0-9]*|[a-z0-9|]*\).*/\1/p" <<< "$help" | tr '|' ' ')
  fi
  if [[ -z $words ]]; then
    if [[ $word == -* ]]; then
      words=$(grep -oE -- '--[a-z][a-z-]*' <<< "$help" | sort -u)
    else
      # Positional arguments: "name: what it is", before the options.
      words=$(sed -n '/^Positionals:/,/^Options:/s/^ *\([a-z][a-z-]*\): .*/\1/p' <<< "$help")
    fi
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _lintel_tool ptl_info ptl_perf
