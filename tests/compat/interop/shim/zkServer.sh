#!/usr/bin/env bash
# Stands in for ZooKeeper's bin/zkServer.sh: start, start-foreground and stop a
# server with the zoo.cfg given. SERVER_JVMFLAGS carries Java properties.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
config=$2
pidfile=$(sed -n 's/^dataDir=//p' "$config")/zookeeper_server.pid
case $1 in
  start-foreground)
    # shellcheck disable=SC2086 # the flags are several words
    exec "$here/server.sh" "$config" ${SERVER_JVMFLAGS:-}
    ;;
  start)
    # shellcheck disable=SC2086
    setsid "$here/server.sh" "$config" ${SERVER_JVMFLAGS:-} </dev/null >"${pidfile%.pid}.out" 2>&1 &
    echo $! >"$pidfile"
    ;;
  stop)
    kill "$(cat "$pidfile")"
    rm -f "$pidfile"
    ;;
  *)
    echo "usage: zkServer.sh start|start-foreground|stop zoo.cfg" >&2
    exit 2
    ;;
esac
