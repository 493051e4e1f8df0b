#!/usr/bin/env bash
# Compares the benchmarks beside the code at another commit with those of this tree,
# whose changes need not be committed. Both take turns, so that an hour in which the
# machine is slow is one for both, and benchstat says which differences are more than
# chance.
#
#   tests/perf/benchdiff/run.sh [commit [package...]]
#
# BENCH is a regular expression of benchmarks, COUNT how often each is run, and
# BENCHTIME for how long.
set -euo pipefail
cd "$(dirname "$0")/../../.."

benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
base=${1:-HEAD}
packages=("${@:2}")
if [ ${#packages[@]} -eq 0 ]; then
    packages=(./proto ./tree ./watch ./raftfsm)
fi

work=$(mktemp -d)
trap 'git worktree remove --force "$work/old" 2>/dev/null || true; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/old" "$base"

# tree names the checkout of a side.
tree() { if [ "$1" = old ]; then echo "$work/old"; else echo "$PWD"; fi; }

for package in "${packages[@]}"; do
    for side in old new; do
        (cd "$(tree "$side")/$package" && go test -c -o "$work/$side-${package//\//_}" .)
    done
done

for ((turn = 1; turn <= ${COUNT:-8}; turn++)); do
    echo "turn $turn of ${COUNT:-8}" >&2
    for package in "${packages[@]}"; do
        for side in old new; do
            (cd "$(tree "$side")/$package" && "$work/$side-${package//\//_}" -test.run '^$' -test.bench "${BENCH:-.}" \
                -test.benchmem -test.benchtime "${BENCHTIME:-200ms}") >>"$work/$side.txt"
        done
    done
done
go run "$benchstat" "$base=$work/old.txt" "this tree=$work/new.txt"
