#!/usr/bin/env bash
# ZooKeeper's zkCleanup.sh removes old snapshots and logs: zkCleanup.sh -n <count>. A
# zkgo server does that by itself whenever it has taken a snapshot, and keeps what it
# needs and no more; so this checks its arguments as the original does, for the cron
# job that calls it, and says that there is nothing to do.
set -u
ZOOBINDIR=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$ZOOBINDIR/zkEnv.sh"

usage() {
  printf '%s\n' "Usage:" "PurgeTxnLog dataLogDir [snapDir] -n count" \
    $'\tdataLogDir -- path to the txn log directory' $'\tsnapDir -- path to the snapshot directory' \
    $'\tcount -- the number of old snaps/logs you want to keep, value should be greater than or equal to 3'
  exit 1
}

if [ $# -ne 2 ] || [ "$1" != -n ]; then usage; fi
if ! [[ $2 =~ ^[+-]?[0-9]+$ ]]; then
  echo "'$2' can not be parsed to integer." >&2
  usage
fi
if [ "$2" -lt 3 ]; then
  echo "count should be greater than or equal to 3" >&2
  usage
fi
if [ ! -f "$ZOOCFG" ]; then
  echo "Error: $ZOOCFG is not there" >&2
  exit 1
fi
echo "zkgo removes old snapshots and logs by itself: nothing to do." >&2
