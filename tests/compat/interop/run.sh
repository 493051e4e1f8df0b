#!/usr/bin/env bash
# Runs other projects' clients and their own test suites against zkgo (or, with
# ZKGO_INTEROP_TARGET=zookeeper, against Apache ZooKeeper 3.9.5).
#
#   run.sh [suite…]     suites: gozk kazoo zkcli cclient curator moves reattach; none named: all
#   run.sh --list       the suites and what they need
#   run.sh --install    only installs Java, Curator and Kazoo, and says where they are
#
# The environment:
#   ZKGO_INTEROP_TARGET   zkgo (default) or zookeeper
#   ZKGO_INTEROP_BINARY   a zkgo binary to test; without it, ./cmd/zkgo is built
#   ZKGO_INTEROP_DIR      where everything is installed; default ~/.cache/zkgo-interop
#   ZKGO_INTEROP_LOGS     keeps the logs there instead of a temporary directory
#
# Exits 0 when nothing that passes on the real server failed on the target.
set -euo pipefail
command -v python3 >/dev/null || { echo "run.sh: python3 is not installed" >&2; exit 3; }
exec python3 -B "$(dirname "$(readlink -f "$0")")/driver/main.py" "$@"
