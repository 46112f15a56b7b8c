# Completion of ptl_info and ptl_perf in fish; files where the program expects no particular words.
set -g __lintel_words_file (status dirname)/../../lintel/completion/words
function __lintel_words
    set -l before (commandline -opc)
    sh $__lintel_words_file $before[1] $before[-1] (commandline -ct)
end
for program in ptl_info ptl_perf
    complete -c $program -n 'count (__lintel_words) > /dev/null' -f -a '(__lintel_words)'
end
