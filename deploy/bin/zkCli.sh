#!/usr/bin/env bash
# ZooKeeper's command line client, by its name: zkgo cli takes the same arguments.
set -u
ZOOBINDIR=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
. "$ZOOBINDIR/zkEnv.sh"
exec "$ZKGO" cli "$@"
