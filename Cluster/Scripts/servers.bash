# Three servers of NATS on loopback, and other processes, for a script that sources this after `shared.bash`. All are killed
# when the script ends in any way, kill -9 included, and the folder with their files is removed then. A script that has
# something to tell when processes start and end defines `tell KIND NUMBER started|killed` afterwards.

# All processes have this folder for their files, and hold the pipe of the guard, which removes it when the last one has
# ended.
folder=$(mktemp -d)
exec {guard}> >(
  trap '' INT TERM HUP
  cat >/dev/null
  rm -rf "$folder" "$logs"
)
remover=$!
declare -A processes=()
kill_all() { { kill -9 "${processes[@]}" && wait "${processes[@]}"; } 2>/dev/null || true; }
close() {
  trap '' INT TERM HUP
  kill_all
  exec {guard}>&-
  wait "$remover"
}
trap close EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

tell() { :; }

# begin KIND NUMBER COMMAND...: starts a process, which writes to the file KIND-NUMBER.
begin() {
  local kind=$1 number=$2
  shift 2
  # `until_said` must not find what a former process has said.
  : >"$folder/$kind-$number"
  TMPDIR=$folder setpriv --pdeathsig KILL "$@" >"$folder/$kind-$number" 2>&1 <"${input:-/dev/null}" &
  processes[$kind-$number]=$!
  tell "$kind" "$number" started
}

# end KIND NUMBER: kills it.
end() {
  { kill -9 "${processes[$1-$2]}" && wait "${processes[$1-$2]}"; } 2>/dev/null || true
  tell "$1" "$2" killed
}

# until_said TEXT KIND NUMBER: waits until the process has written the text. Fails if it has ended before.
until_said() {
  until grep -q "$1" "$folder/$2-$3" 2>/dev/null; do
    kill -0 "${processes[$2-$3]}" 2>/dev/null || return 1
    sleep 0.05
  done
}

server() {
  begin server "$1" nats-server -c "$folder/$1.conf"
  until_said "Server is ready" server "$1"
}

# servers_at PORT: starts three servers at ports from this one on. Fails if one is taken.
servers_at() {
  local number routes=""
  for number in 1 2 3; do routes+="\"nats://127.0.0.1:$(($1 + 3 + number))\", "; done
  servers=()
  for number in 1 2 3; do
    cat >"$folder/$number.conf" <<END
server_name: "concourse-$$-$number"
listen: "127.0.0.1:$(($1 + number))"
max_payload: 8MB
jetstream { store_dir: "$folder/store-$number" }
cluster { name: "concourse-$$", listen: "127.0.0.1:$(($1 + 3 + number))", routes: [$routes] }
END
    servers+=("nats://127.0.0.1:$(($1 + number))")
  done
  for number in 1 2 3; do server "$number" || return 1; done
}

# start_servers: starts three servers on free ports; `servers` has their addresses.
start_servers() { until servers_at $((20000 + RANDOM % 10000)); do kill_all; done; }
