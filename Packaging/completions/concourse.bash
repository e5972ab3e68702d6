# Completion for concourse(1) in bash. CompletionTests compares its words with those of the command.

# The processes that the user may examine: the kernel shows the executables of these only.
_concourse_processes() {
  local link
  for link in /proc/[0-9]*/exe; do
    [[ -e $link ]] && link=${link%/exe} && printf '%s\n' "${link#/proc/}"
  done
}

# Completes with what compgen prints for these arguments.
_concourse_reply() { mapfile -t COMPREPLY < <(compgen "$@" -- "$current"); }

_concourse_files() {
  compopt -o filenames 2>/dev/null
  _concourse_reply -f
}

_concourse() {
  local current=${COMP_WORDS[COMP_CWORD]} commands="run report top trace explore" options index=2 word value= program=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _concourse_reply -W "$commands help --version"
    return
  fi
  case ${COMP_WORDS[1]} in
    run) options="--children --library --check --strict --pool --force --verbose --help" ;;
    report) options="--core --recording --tasks --json --all --help" ;;
    top) options="--interval --sort --filter --once --json --text --library --help" ;;
    trace) options="-o --seconds --last --limit --library --recording --help" ;;
    explore)
      options="--schedules --seconds --strategy --depth --seed --steps --time --races --jobs --no-shrink -o --replay --library"
      options+=" --help"
      ;;
    help)
      ((COMP_CWORD > 2)) || _concourse_reply -W "$commands"
      return
      ;;
    *) return ;;
  esac

  # Finds the option whose value is completed, or the program.
  while ((index < COMP_CWORD)); do
    word=${COMP_WORDS[index]}
    case $word in
      --)
        index=$((index + 1)) program=yes
        break
        ;;
      --library | --core | --recording | --interval | --sort | --filter | --seconds | --last | --limit | -o | \
        --schedules | --strategy | --depth | --seed | --steps | --time | --jobs | --replay | --pool)
        index=$((index + 1))
        # bash makes three words of NAME=VALUE.
        [[ ${COMP_WORDS[index]} == "=" ]] && ((index < COMP_CWORD)) && index=$((index + 1))
        ((index < COMP_CWORD)) || value=$word
        ;;
      -*) ;;
      *[!0-9]*)
        program=yes
        break
        ;;
    esac
    [[ -z $value ]] || break
    index=$((index + 1))
  done

  if [[ -n $value ]]; then
    [[ $current != "=" ]] || current=
    case $value in
      --library | --core | --recording | --replay | -o) _concourse_files ;;
      --strategy) _concourse_reply -W "random pct pos" ;;
      --time) _concourse_reply -W "virtual real" ;;
      --sort) _concourse_reply -W "rate depth wait run busy name" ;;
    esac
  elif [[ -z $program && $current == -* ]]; then
    _concourse_reply -W "$options"
  elif [[ ${COMP_WORDS[1]} == report ]]; then
    _concourse_reply -W "$(_concourse_processes)"
  elif ((index < COMP_CWORD)); then
    # The arguments of a program are completed as its own are.
    if declare -F _command_offset >/dev/null; then _command_offset "$index"; else _concourse_files; fi
  elif [[ -z $program && ${COMP_WORDS[1]} != run && ${COMP_WORDS[1]} != explore && $current != *[!0-9]* ]]; then
    _concourse_reply -W "$(_concourse_processes)"
  elif [[ $current == */* ]]; then
    _concourse_files
  else
    _concourse_reply -c
  fi
}

complete -F _concourse concourse
