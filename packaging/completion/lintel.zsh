#compdef ptl_info ptl_perf
# Completion of ptl_info and ptl_perf in zsh; files where the program expects no particular words.
local -a found
found=(${(f)"$(sh ${functions_source[_lintel]:A:h}/../../lintel/completion/words \
  ${words[1]} "${words[CURRENT-1]}" "${words[CURRENT]}")"})
if (( ${#found} )); then compadd -a found; else _files; fi
