#!/usr/bin/env bash
# Runs the simulation or chaos for hours, at the lowest priority. It can be
# stopped at any time and started again: a seed that is in the record is left out.
#
#   tests/safety/summary/hours.sh sim   DIR [FIRST [RUNS]]   2,000 runs of ten simulated minutes, a core for some hours
#   tests/safety/summary/hours.sh chaos DIR [FIRST [RUNS]]   50 runs of about four minutes each, as root
#   tests/safety/summary/hours.sh page  DIR                  what all of them have shown, as a page for docs
#
# The programs are built once for each commit, and the record is of that commit:
#
#   DIR/COMMIT/SUITE.jsonl   a line for each run, for make figures SUMMARY=… EVERY=1h
#   DIR/COMMIT/SUITE.log     what the runs that failed have printed
#
# Several may run at a time, with other seeds. What failed is recorded, and the
# rest goes on.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../../.."
usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
suite=${1:-} dir=${2:-} first=${3:-1} runs=${4:-}
case $suite in
  sim) runs=${runs:-2000} ;;
  chaos) runs=${runs:-50} ;;
  page) ;;
  *) usage ;;
esac
[ -n "$dir" ] || usage

# page prints docs/design/reliability-hours.md.
page() {
  cat <<'END'
# Hours

Written by `make hours-page`: do not edit.

The cumulative record of the simulation and of chaos on real processes ([what they do](reliability.md)). A row adds up the runs at
one commit.

    make hours SUITE=sim DIR=/tmp/hours               # 2,000 seeds
    make hours SUITE=chaos DIR=/tmp/hours SEED=1001   # 50 runs, as root
    make hours-page DIR=/tmp/hours

END
  go run ./tests/safety/summary/total -record simulation $(records sim)
  go run ./tests/safety/summary/total -record chaos $(records chaos)
}

# records prints the names of a suite's records.
records() { find "$dir" -mindepth 2 -maxdepth 2 -name "$1.jsonl" -size +0 | sort; }
[ "$suite" != page ] || { page | cat -s | sed '${/^$/d}'; exit; }

commit=$(git rev-parse --short HEAD)
place=$(mkdir -p "$dir/$commit" && cd "$dir/$commit" && pwd)
record=$place/$suite.jsonl log=$place/$suite.log
export GOFLAGS=-buildvcs=false ZKGO_BINARY=$place/zkgo
(
  flock 9
  [ -x "$place/$suite.test" ] || {
    go build -o "$place/zkgo" ./cmd/zkgo
    go test -c -o "$place/$suite.part" "./tests/safety/$suite" && mv "$place/$suite.part" "$place/$suite.test"
  }
) 9>"$place/lock"

# one SEED carries out a run.
one() {
  local seed=$1 flags=()
  if [ "$suite" = sim ]; then
    GOMAXPROCS=${GOMAXPROCS:-1} nice -n 19 "$place/sim.test" -test.run '^TestSeeds$' -test.timeout 20m -test.v \
      -sim.seed="$seed" -sim.seeds=1 -sim.summary="$record" -sim.out="$place/failed"
    return
  fi
  # Seeds take turns: three and five servers, both log stores, and now and then
  # proxies instead of namespaces.
  [ $((seed % 4)) -ne 3 ] || flags+=(-servers=5)
  [ $((seed % 3)) -ne 2 ] || flags+=(-store=bolt)
  [ $((seed % 6)) -eq 5 ] || flags+=(-net=netns)
  mkdir -p "$place/failed"
  nice -n 19 "$place/chaos.test" -test.run '^TestChaos$' -test.timeout 0 -test.v \
    -duration=2m -seed="$seed" -summary="$record" -dir="$place/failed" "${flags[@]}"
}

out=$(mktemp)
trap 'rm -f "$out"' EXIT
for ((seed = first; seed < first + runs; seed++)); do
  if [ -e "$record" ] && grep -q "\"seed\":$seed," "$record"; then
    continue
  fi
  one "$seed" >"$out" 2>&1 || { echo "=== seed $seed, $(date -u +%FT%TZ)"; cat "$out"; } >>"$log"
done
