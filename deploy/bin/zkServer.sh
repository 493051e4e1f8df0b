#!/usr/bin/env bash
# Starts, stops and asks a zkgo server as ZooKeeper's zkServer.sh does: the same
# arguments, the same lines, the same exit codes. What is different on purpose:
# "stop" returns when the server has ended, a stale pid file never stops another
# program, and an unknown argument is an error (exit code 2; ZooKeeper's is 0).
set -u
ZOOBINDIR=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$ZOOBINDIR/zkEnv.sh"

if [ -n "${2:-}" ]; then
  case $2 in */*) ZOOCFG=$2 ;; *) ZOOCFG=$ZOOCFGDIR/$2 ;; esac
fi
echo "Using config: $ZOOCFG" >&2

# The command line of the server.
# shellcheck disable=SC2206 # flags are words
command=("$ZKGO" server "$ZOOCFG" ${ZKGO_SERVER_FLAGS:-})
log=$ZOO_LOG_DIR/zookeeper-${USER:-}-server-${HOSTNAME:-}.out

# pid_file: where the process id is noted.
pid_file() {
  if [ -n "${ZOOPIDFILE:-}" ]; then
    echo "$ZOOPIDFILE"
    return
  fi
  local dir
  dir=$(setting dataDir)
  if [ -z "$dir" ]; then
    echo "Error: $ZOOCFG is not there, or it names no dataDir" >&2
    return 1
  fi
  echo "$dir/zookeeper_server.pid"
}

# runs PID: it is there, and it is a zkgo as far as the system tells.
runs() {
  kill -0 "$1" 2>/dev/null || return 1
  [ ! -r "/proc/$1/comm" ] || [ "$(<"/proc/$1/comm")" = "$(basename "$ZKGO" | cut -c1-15)" ]
}

start() {
  local pidfile pid dir
  pidfile=$(pid_file) || exit 1
  if [ -n "${ZOO_DATADIR_AUTOCREATE_DISABLE:-}" ]; then
    # Without this check, making the directory of the pid file would make the data directory.
    dir=$(setting dataDir)
    if [ ! -d "$dir" ]; then
      echo "ZooKeeper data directory is missing at $dir fix the path or make the directory"
      exit 1
    fi
  fi
  mkdir -p "$(dirname "$pidfile")" "$ZOO_LOG_DIR" || exit 1
  echo -n "Starting zookeeper ... "
  if [ -f "$pidfile" ] && pid=$(<"$pidfile") && runs "$pid"; then
    echo "already running as process $pid."
    exit 1
  fi
  nohup "${command[@]}" >"$log" 2>&1 </dev/null &
  pid=$!
  if ! echo -n "$pid" >"$pidfile"; then
    kill "$pid"
    echo FAILED TO WRITE PID
    exit 1
  fi
  sleep 1
  if kill -0 "$pid" 2>/dev/null; then
    echo STARTED
  else
    echo FAILED TO START
    tail -3 "$log" >&2
    exit 1
  fi
}

stop() {
  local pidfile pid
  pidfile=$(pid_file) || exit 1
  echo -n "Stopping zookeeper ... "
  if [ ! -f "$pidfile" ]; then
    echo "no zookeeper to stop (could not find file $pidfile)"
    return
  fi
  pid=$(<"$pidfile")
  if runs "$pid"; then
    kill "$pid"
    while runs "$pid"; do sleep 0.1; done
  fi
  rm -f "$pidfile"
  echo STOPPED
}

# find_port says which port the configuration file names, as zkServer.sh of ZooKeeper does.
# It fails if there is none.
find_port() {
  local id place port address secure=false
  port=$(setting clientPort 2>/dev/null)
  address=$(setting clientPortAddress 2>/dev/null)
  if ! [[ $port =~ ^[0-9]+$ ]]; then
    port=
    id=$(cat "$(setting dataDir 2>/dev/null)/myid" 2>/dev/null)
    if ! [[ $id =~ ^[0-9]+$ ]]; then
      echo "myid could not be determined, will not able to locate clientPort in the server configs."
    else
      place=$(setting "server.$id")
      if [[ $place != *\;* ]]; then
        echo "Client port not found in static config file. Looking in dynamic config file."
        place=$(setting_of "server.$id" "$(setting dynamicConfigFile)" 2>/dev/null)
      fi
      if [[ $place != *\;* ]]; then
        echo "Client port not found in the server configs"
      else
        place=${place##*;}
        port=${place##*:}
        [[ $place != *:* ]] || address=${place%:*}
      fi
    fi
  fi
  address=${address#[} address=${address%]}
  if [ -z "$port" ]; then
    echo "Client port not found. Looking for secureClientPort in the static config."
    port=$(setting secureClientPort 2>/dev/null)
    address=$(setting secureClientPortAddress 2>/dev/null)
    secure=true
    if [ -z "$port" ]; then
      return 1
    fi
  fi
  address=${address:-localhost}
  echo "Client port found: $port. Client address: $address. Client SSL: $secure."
}

status() {
  local mode
  # The port and the certificate of the server, with the settings of start.
  # shellcheck disable=SC2086 # flags are words
  mode=$("$ZKGO" health --word srvr "$ZOOCFG" ${ZKGO_SERVER_FLAGS:-} 2>/dev/null | grep Mode)
  if ! find_port && [ -z "$mode" ]; then
    echo "Unable to find either secure or unsecure client port in any configs. Terminating."
    exit 1
  fi
  if [ -z "$mode" ]; then
    echo "Error contacting service. It is probably not running."
    exit 1
  fi
  echo "$mode"
}

case ${1:-} in
  start)
    start
    ;;
  start-foreground)
    exec "${command[@]}"
    ;;
  print-cmd)
    for name in SERVER_JVMFLAGS JVMFLAGS ZOO_DATADIR_AUTOCREATE_DISABLE; do
      if [ -n "${!name:-}" ]; then printf '%s="%s" ' "$name" "${!name}"; fi
    done
    printf '"%s" ' "${command[@]}"
    echo "> \"$log\" 2>&1 < /dev/null"
    ;;
  stop) stop ;;
  version)
    "$ZKGO" version | sed -E 's/^zkgo ([^ ]+) \(ZooKeeper ([^)]+)\).*/zkgo \1, compatible with Apache ZooKeeper, version \2/'
    ;;
  restart)
    stop
    start
    ;;
  status) status ;;
  *)
    echo "Usage: $0 [--config <conf-dir>] {start|start-foreground|stop|version|restart|status|print-cmd}" >&2
    exit 2
    ;;
esac
