# Completion for concourse(1) in fish. CompletionTests compares its words with those of the command.

# Prints the index of the program among the words; nothing as long as the words are the command's own.
function __concourse_program_index
    set -l words (commandline -opc)
    set -l index 3
    while test $index -le (count $words)
        switch $words[$index]
            case --
                math $index + 1
                return
            case --library --core --recording --interval --sort --filter --seconds --last --limit -o --schedules --strategy --depth --seed --steps --time --jobs --replay --pool
                set index (math $index + 1)
            case '-*'
            case '*'
                string match -qr '^[0-9]+$' -- $words[$index]; or begin
                    echo $index
                    return
                end
        end
        set index (math $index + 1)
    end
end

function __concourse_options_of
    set -l words (commandline -opc)
    test "$words[2]" = $argv[1]; and test -z "$(__concourse_program_index)"
end

function __concourse_has_program
    set -l words (commandline -opc)
    contains -- "$words[2]" run top trace explore; and test -n "$(__concourse_program_index)"
end

# The words of the program that the command runs are completed as its own are.
function __concourse_words_of_program
    set -l words (string escape -- (commandline -opc)) (commandline -ct)
    set -l index (__concourse_program_index)
    complete -C "$words[$index..]"
end

# The processes that the user may examine: the kernel shows the executables of these only. Their names are foreign text.
function __concourse_processes
    for link in /proc/*/exe
        set -l process (string match -r '[0-9]+' -- $link); or continue
        test -e $link; or continue
        set -l name
        read name </proc/$process/comm 2>/dev/null
        printf '%s\t%s\n' $process (string replace -ra '[^[:print:]]' '?' -- "$name")
    end
end

complete -c concourse -f
complete -c concourse -n __fish_is_first_token -a run -d 'Run a finished program on Concourse'
complete -c concourse -n __fish_is_first_token -a report -d 'Print what a process waits for'
complete -c concourse -n __fish_is_first_token -a top -d 'Show a process live'
complete -c concourse -n __fish_is_first_token -a trace -d 'Record what a process does'
complete -c concourse -n __fish_is_first_token -a explore -d 'Run a program in many orders of its threads'
complete -c concourse -n __fish_is_first_token -a help -d 'Explain a command'
complete -c concourse -n __fish_is_first_token -l version -d 'Print the version'
complete -c concourse -n '__concourse_options_of help' -a 'run report top trace explore'
complete -c concourse -n __concourse_has_program -a '(__concourse_words_of_program)'

complete -c concourse -n '__concourse_options_of run' -l children -d 'Also switch the program\'s children'
complete -c concourse -n '__concourse_options_of run' -l library -rF -d 'The libdispatch.so to use'
complete -c concourse -n '__concourse_options_of run' -l check -d 'Only report whether it can be switched'
complete -c concourse -n '__concourse_options_of run' -l strict -d 'Name the places where tasks block their threads'
complete -c concourse -n '__concourse_options_of run' -l pool -x -d 'Give tasks as many threads'
complete -c concourse -n '__concourse_options_of run' -l force -d 'Run it even if it will not be switched'
complete -c concourse -n '__concourse_options_of run' -l verbose -d 'Report each decision'
complete -c concourse -n '__concourse_options_of run' -l help -d 'Explain the options'
complete -c concourse -n '__concourse_options_of run' -a '(__fish_complete_command)'

complete -c concourse -n '__concourse_options_of report' -l core -rF -d 'Read a core dump'
complete -c concourse -n '__concourse_options_of report' -l recording -rF -d 'Read what a flight recorder has left'
complete -c concourse -n '__concourse_options_of report' -l tasks -d 'List each task of Swift Concurrency'
complete -c concourse -n '__concourse_options_of report' -l json -d 'Print JSON'
complete -c concourse -n '__concourse_options_of report' -l all -d 'Also show what is idle, and whole stacks'
complete -c concourse -n '__concourse_options_of report' -l help -d 'Explain the options'
complete -c concourse -n '__concourse_options_of report' -a '(__concourse_processes)'

complete -c concourse -n '__concourse_options_of top' -l interval -x -d 'Seconds between two views'
complete -c concourse -n '__concourse_options_of top' -l sort -xa 'rate depth wait run busy name' -d 'The column to sort by'
complete -c concourse -n '__concourse_options_of top' -l filter -x -d 'Only queues whose label contains a text'
complete -c concourse -n '__concourse_options_of top' -l once -d 'One interval as plain text'
complete -c concourse -n '__concourse_options_of top' -l json -d 'A JSON object for each interval'
complete -c concourse -n '__concourse_options_of top' -l text -d 'Plain text for each interval'
complete -c concourse -n '__concourse_options_of top' -l library -rF -d 'The libdispatch.so to run the program on'
complete -c concourse -n '__concourse_options_of top' -l help -d 'Explain the options'
complete -c concourse -n '__concourse_options_of top' -a '(__concourse_processes) (__fish_complete_command)'

complete -c concourse -n '__concourse_options_of trace' -s o -rF -d 'The file to write: .html, .json, .json.gz or .pftrace'
complete -c concourse -n '__concourse_options_of trace' -l seconds -x -d 'How long to record'
complete -c concourse -n '__concourse_options_of trace' -l last -x -d 'Write only the last part'
complete -c concourse -n '__concourse_options_of trace' -l limit -x -d 'The largest size of the file'
complete -c concourse -n '__concourse_options_of trace' -l library -rF -d 'The libdispatch.so to run the program on'
complete -c concourse -n '__concourse_options_of trace' -l recording -rF -d 'Read what a flight recorder has left'
complete -c concourse -n '__concourse_options_of trace' -l help -d 'Explain the options'
complete -c concourse -n '__concourse_options_of trace' -a '(__concourse_processes) (__fish_complete_command)'

complete -c concourse -n '__concourse_options_of explore' -l schedules -x -d 'How many orders to try'
complete -c concourse -n '__concourse_options_of explore' -l seconds -x -d 'How long to try'
complete -c concourse -n '__concourse_options_of explore' -l strategy -xa 'random pct pos' -d 'How an order is chosen'
complete -c concourse -n '__concourse_options_of explore' -l depth -x -d 'pct: the depth of the bugs'
complete -c concourse -n '__concourse_options_of explore' -l seed -x -d 'Begin with another seed'
complete -c concourse -n '__concourse_options_of explore' -l steps -x -d 'The most decisions of a run'
complete -c concourse -n '__concourse_options_of explore' -l time -xa 'virtual real' -d 'The clock of the program'
complete -c concourse -n '__concourse_options_of explore' -l jobs -x -d 'How many runs at the same time'
complete -c concourse -n '__concourse_options_of explore' -l races -d 'Also find unordered accesses to memory'
complete -c concourse -n '__concourse_options_of explore' -l no-shrink -d 'Keep all switches'
complete -c concourse -n '__concourse_options_of explore' -s o -rF -d 'The page to write: .html'
complete -c concourse -n '__concourse_options_of explore' -l replay -rF -d 'Repeat a schedule'
complete -c concourse -n '__concourse_options_of explore' -l library -rF -d 'The libdispatch-exploring.so to use'
complete -c concourse -n '__concourse_options_of explore' -l help -d 'Explain the options'
complete -c concourse -n '__concourse_options_of explore' -a '(__fish_complete_command)'
