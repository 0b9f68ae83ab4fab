# Where the plane's things are (README.md), and how its processes start and end. Sourced by the scripts
# beside it, not run.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/zonewise-plane
export BIN=${BIN:-$cache/bin} RUN=${RUN:-$cache/run} PORT=${PORT:-6443} ETCD_PORT=${ETCD_PORT:-2379}
export GOGC=${GOGC:-400} # there is memory enough, and a tenth less CPU time for the collection of garbage
mkdir -p "$BIN" "$RUN"
BIN=$(realpath "$BIN") RUN=$(realpath "$RUN")
PATH=$here/../../node_modules/.bin:$PATH # Node.js 24: it runs TypeScript as it is

kubectl() { "$BIN/kubectl" --kubeconfig "$RUN/admin.kubeconfig" "$@"; }

die() { echo "$0: $*" >&2; exit 1; }

# until_true SECONDS COMMAND...: runs the command until it succeeds; fails after that time.
until_true() {
  local tries=$(($1 * 5)); shift
  while ! "$@" >/dev/null 2>&1; do
    tries=$((tries - 1)); [ $tries -gt 0 ] || return 1
    sleep 0.2
  done
}

# start NAME COMMAND...: runs the command in the background, in $RUN, with NAME.log and NAME.pid.
start() {
  local name=$1; shift
  (cd "$RUN" && close_others && exec setsid nohup "$@" >>"$RUN/$name.log" 2>&1 </dev/null) &
  echo $! >"$RUN/$name.pid"
}

# Closes the files that were inherited, as the process must not hold a lock of its starter, for example.
close_others() {
  local fd
  for fd in /proc/"$BASHPID"/fd/*; do
    fd=${fd##*/}
    [ "$fd" -le 2 ] || eval "exec $fd>&-"
  done
}

# alive NAME: whether the process runs. Its directory tells it from a stranger that has got its id since,
# after a reboot for example.
alive() {
  local pid
  pid=$(cat "$RUN/$1.pid" 2>/dev/null) && [ "$(readlink "/proc/$pid/cwd")" = "$RUN" ]
}

# ended NAME: whether the process is gone with all that it had open. Its directory goes first; its ports are closed
# only when it is a zombie and the last of its threads is gone, too, or when it is no more.
ended() {
  local pid directory state threads
  pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 0
  directory=$(readlink "/proc/$pid/cwd" || true)
  [ -z "$directory" ] || { [ "$directory" != "$RUN" ]; return; }
  state=$(sed -E 's/.*\) (.).*/\1/' "/proc/$pid/stat" 2>/dev/null || true)
  threads=(/proc/"$pid"/task/*) # its main thread, and those that are not gone yet
  [ -z "$state" ] || { [[ $state = [ZX] ]] && [ ${#threads[@]} = 1 ]; }
}

# stop NAME: ends the process and waits until it is gone: kindly at first, after ten seconds by force.
stop() {
  if alive "$1"; then
    kill "$(cat "$RUN/$1.pid")" || true
    until_true 10 ended "$1" || { kill -9 "$(cat "$RUN/$1.pid")" || true; until_true 5 ended "$1"; }
  fi
  rm -f "$RUN/$1.pid"
}

# need_root: ends the script, with a reason, unless root runs it.
need_root() { [ "$(id -u)" = 0 ] || die 'needs root: it starts containers and sets up a network'; }

# need COMMAND PACKAGE...: installs the Debian packages if the command is missing.
need() {
  local command=$1; shift
  ! command -v "$command" >/dev/null || return 0
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then die "$command is missing (Debian's packages: $*)"; fi
  { apt-get -q update && apt-get -qy install --no-install-recommends "$@"; } >&2
}
