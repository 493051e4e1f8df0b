#!/usr/bin/env bash
# Runs real applications against three zkgo servers, or against Apache ZooKeeper 3.9.5.
#
#   run.sh [options] [application…]    no application named: all
#   run.sh --list                      the applications and what we exercise
#   run.sh --install [application…]    only downloads what they need
#   run.sh --page FILE                 writes the table of docs/operate/applications.md
#                                      from the results that --record kept in FILE
#
# Options:
#   --servers zkgo|zookeeper|both   what the application gets (default zkgo); both: one after the other
#   --zkgo PATH                     a zkgo program; without it, we build ./cmd/zkgo
#   --slow FACTOR                   multiplies time limits (default 3), for a busy machine
#   --short                         a part of the checks, for .ci/run (patroni)
#   --record FILE                   appends each result as a line of JSON
#   --keep DIRECTORY                keeps logs and data there, instead of removing them
#   --fault watches|sessions|freeze breaks the servers on purpose: drops watch events, refuses sessions
#                                   that reconnect, or stops all replies after the first check
#
# Downloads go to ~/.cache/zkgo-ci/apps. Exits 0 when every check passed; with --fault, when a
# check of each application failed.
set -euo pipefail
[ -x /usr/bin/python3 ] || { echo "run.sh: /usr/bin/python3 is not installed; on Debian: apt-get install python3 python3-venv" >&2; exit 3; }
exec /usr/bin/python3 -B "$(dirname "$(readlink -f "$0")")/driver/main.py" "$@"
