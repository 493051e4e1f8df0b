# What the steps of .ci/run share. Sourced, never run.

# The environment may hold nothing but PATH and HOME.
export HOME=${HOME:-/root} LANG=C.UTF-8 LC_ALL=C.UTF-8 GOFLAGS=-buildvcs=false DEBIAN_FRONTEND=noninteractive
PATH=$PATH:/usr/local/go/bin:$HOME/go/bin
export PATH
work=${CI_WORK:-/nonexistent}
cache=${ZKGO_CI_DIR:-$HOME/.cache/zkgo-ci}
golangci_version=v2.15.0
mkdir -p "$cache" || exit 2

# retry N COMMAND…: for what uses the network.
retry() {
  local tries=$1 n
  shift
  for n in $(seq "$tries"); do
    "$@" && return 0
    echo "try $n of $tries failed: $*"
    sleep $((n * 3))
  done
  return 1
}

# need COMMAND-OR-FILE PACKAGE…: what has to be installed for it to be there.
need() {
  local what=$1
  shift
  case $what in
    /*) [ -e "$what" ] || missing+=("$@") ;;
    *) command -v "$what" >/dev/null || missing+=("$@") ;;
  esac
}

# debian_packages [MORE…] installs what is missing of Debian's packages, one run at
# a time. MORE are servers, whose package is called like the program and -server.
debian_packages() {
  local missing=() server
  for server in "$@"; do
    command -v "$server" >/dev/null || command -v "${server%-server}" >/dev/null ||
      missing+=("$server")
  done
  need javac openjdk-17-jdk-headless
  need curl curl
  need openssl openssl
  need gpg-agent gnupg
  need rpm rpm
  need mvn maven
  need python3 python3
  need git git
  need jq jq
  need make make
  need nc netcat-openbsd
  need gcc gcc libc6-dev
  need fusermount3 fuse3
  need strace strace
  need promtool prometheus
  need systemd-analyze systemd
  need man man-db
  need /usr/lib/zookeeper/bin/cli_mt zookeeper-bin
  need /usr/include/zookeeper/zookeeper.h libzookeeper-mt-dev
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
  python3 -c 'import yaml' 2>/dev/null || /usr/bin/python3 -c 'import yaml' 2>/dev/null || missing+=(python3-yaml)
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" -eq 0 ] || { echo "missing, and only root can install them: ${missing[*]}"; return 1; }
  local options=(-o DPkg::Lock::Timeout=900 -o Acquire::Retries=3)
  (
    flock 9
    retry 3 apt-get -q "${options[@]}" update >"$work/apt.log" 2>&1 &&
      retry 3 apt-get -q "${options[@]}" install -y --no-install-recommends "${missing[@]}" >>"$work/apt.log" 2>&1
  ) 9>"$cache/apt.lock" || { tail -40 "$work/apt.log"; return 1; }
}

# install_golangci_lint builds the linter once per machine and version.
install_golangci_lint() {
  local target=$cache/golangci-lint-$golangci_version
  (
    flock 9
    [ -x "$target" ] && exit 0
    temp=$(mktemp -d "$cache/.golangci-XXXXXX")
    GOBIN=$temp retry 3 go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$golangci_version" &&
      mv "$temp/golangci-lint" "$target"
    status=$?
    rm -rf "$temp"
    exit $status
  ) 9>"$cache/golangci.lock"
}

# build_zkgo builds the server once for the tests of all steps, which look for ZKGO_BINARY.
build_zkgo() {
  export ZKGO_BINARY=$work/zkgo ZKGO_INTEROP_BINARY=$work/zkgo
  flock "$work/zkgo.lock" bash -c '[ -x "$0" ] || go build -o "$0" ./cmd/zkgo' "$ZKGO_BINARY"
}

# go_test [FLAGS…] PACKAGES runs tests, prints what failed and counts. A package
# that fails is run once more by itself, and what passes then is named FLAKY: a
# defect to be found at once, not one to lose a landing to. Nothing of what is
# about losing data gets a second chance.
go_test() {
  local first=$work/first failures=$work/failures package flags=()
  for package in "$@"; do [[ $package == -* ]] && flags+=("$package"); done
  rm -f "$first" "$failures"
  counted_test "$first" "$failures" "$@"
  local code=$?
  if [ $code -ne 0 ] && [ -s "$failures" ] && ! grep -qE '/tests/(safety/(durability|powerloss)|compat/conformance)' "$failures"; then
    echo "once more by themselves:" $(<"$failures")
    # shellcheck disable=SC2046 # one word a package
    if counted_test "$work/second" "" -count=1 "${flags[@]}" -p=1 $(<"$failures"); then
      echo "FLAKY:" $(<"$failures") | tee -a "$work/flaky"
      awk '{ print $1, 0, $3 }' "$first" >"$first.good" && mv "$first.good" "$first"
      code=0
    fi
  fi
  cat "$first" >>"$work/tally"
  return $code
}

# counted_test TALLY FAILURES ARGUMENTS…: go test, its counts and its failures in files.
counted_test() {
  local tally=$1 failures=$2
  shift 2
  go test -timeout "${GO_TEST_TIMEOUT:-20m}" -json "$@" | go run .ci/report.go -tally "$tally" ${failures:+-failures "$failures"} ${no_skips:-}
  local codes=("${PIPESTATUS[@]}")
  [ "${codes[0]}" -eq 0 ] && [ "${codes[1]}" -eq 0 ]
}

# gated_test runs a suite that plain "go test" skips: here nothing may be skipped,
# and nothing may come out of the cache.
gated_test() {
  go test -timeout "${GO_TEST_TIMEOUT:-20m}" -count=1 -json "$@" | go run .ci/report.go -tally "$work/tally" -no-skips
  local codes=("${PIPESTATUS[@]}")
  [ "${codes[0]}" -eq 0 ] && [ "${codes[1]}" -eq 0 ]
}

# lenient_test is gated_test for a suite beside real servers that loses and
# repeats nothing of anybody's data: it has go_test's second chance.
lenient_test() {
  local no_skips=-no-skips
  go_test -count=1 "$@"
}

# tally PASSED FAILED SKIPPED adds to the counts.
tally() { echo "$1 $2 $3" >>"$work/tally"; }

# tally_step_failed makes sure that a step that failed shows in the counts, also
# one that counts nothing.
tally_step_failed() { tally 0 1 0; }

# total prints the closing line, and before it what has to be looked into.
total() {
  [ ! -s "$work/flaky" ] || cat "$work/flaky"
  awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$work/tally" 2>/dev/null || echo "0 passed, 0 failed"
}

# clean_up removes this run's files, also those of a module cache.
clean_up() {
  chmod -R u+w "$work" 2>/dev/null
  rm -rf "$work"
}
