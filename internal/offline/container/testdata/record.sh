#!/usr/bin/env bash
# Records what the entrypoint of ZooKeeper's official image makes of the variables
# in entrypoint/*/env: record.sh <docker-entrypoint.sh of the image of 3.9.5>
#
# A line of env is NAME=value, with \n and \t in the value.
set -euo pipefail
script=$(readlink -f "$1")
cd "$(dirname "$(readlink -f "$0")")/entrypoint"
for case in */; do
  case=${case%/}
  root=$(mktemp -d)
  mkdir "$root/conf" "$root/data"
  set=(ZOO_CONF_DIR=/conf ZOO_DATA_DIR=/data ZOO_DATA_LOG_DIR=/datalog ZOO_LOG_DIR=/logs
    ZOO_TICK_TIME=2000 ZOO_INIT_LIMIT=5 ZOO_SYNC_LIMIT=2 ZOO_AUTOPURGE_PURGEINTERVAL=0
    ZOO_AUTOPURGE_SNAPRETAINCOUNT=3 ZOO_MAX_CLIENT_CNXNS=60 ZOO_STANDALONE_ENABLED=true
    ZOO_ADMINSERVER_ENABLED=true)
  while IFS= read -r line; do set+=("$(printf %b "$line")"); done <"$case/env"
  # The directories are the case's own, below a root that is taken out again.
  for i in "${!set[@]}"; do set[i]=$(sed -E "s|^(ZOO_(CONF\|DATA\|DATA_LOG)_DIR)=(/.*)|\1=$root\3|" <<<"${set[i]}"); done
  for v in "${set[@]}"; do case $v in ZOO_DATA_DIR=/* | ZOO_CONF_DIR=/*) mkdir -p "${v#*=}" ;; esac done
  env -i PATH="$PATH" "${set[@]}" bash "$script" true
  cfg=$(find "$root" -name zoo.cfg) myid=$(find "$root" -name myid)
  sed "s|$root||g" "$cfg" >"$case/zoo.cfg"
  cp "$myid" "$case/myid"
  rm -r "$root"
done
