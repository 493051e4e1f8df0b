# What developers type; .ci/run is what decides.

export CGO_ENABLED ?= 0

# Where sim and chaos note what each run has shown.
SUMMARY ?= runs.jsonl

# The commit that binary names.
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
TIME ?= $(shell git show -s --format=%cI HEAD 2>/dev/null || echo 1970-01-01T00:00:00Z)

.PHONY: help build release binary test race lint fuzz bench bench-diff bench-compare chaos chaos-planted gray interop golden sim figures hours hours-page failover lockbench apps apps-page ci

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

build: ## build ./zkgo
	go build -o zkgo ./cmd/zkgo

release: ## everything that we publish, in ./dist; VERSION=v1.2.3, without it that of the tag; signed with KEY=secret.asc PASSPHRASE_FILE=…
	go run -C deploy/release . $(if $(VERSION),-version $(VERSION)) $(if $(KEY),-key $(abspath $(KEY))) $(if $(PASSPHRASE_FILE),-passphrase-file $(abspath $(PASSPHRASE_FILE)))

binary: ## build the program of a release for this machine; OUT=./zkgo VERSION=1.2.3
	go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X 'github.com/zkgo/zkgo/internal/version.stamp=$(or $(VERSION),devel) $(REVISION) $(TIME)'" -o $(or $(OUT),zkgo) ./cmd/zkgo

test: ## run the tests that need nothing but Go
	go test ./...

race: ## run the tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -short ./...

lint: ## gofmt, go vet and golangci-lint
	.ci/run format lint
	go vet ./...

fuzz: ## fuzz every target; FUZZTIME=1m for longer
	.ci/run fuzz

bench: ## run the benchmarks of the packages
	go test -run '^$$' -bench . -benchmem ./...

bench-diff: ## the same at another commit and here, in turns, compared with benchstat; BASE=main PKG="./tree ./proto" BENCH=Apply COUNT=8
	BENCH="$(BENCH)" BENCHTIME="$(BENCHTIME)" COUNT="$(COUNT)" tests/perf/benchdiff/run.sh $(or $(BASE),HEAD) $(PKG)

chaos: ## break real processes under load; DURATION=10m SEED=1 SERVERS=5 STORE=bolt NET=netns FAULTS=kill-leader,wipe
	go test -count=1 -timeout 0 -v -run '^TestChaos$$' ./tests/safety/chaos -args -duration=$(or $(DURATION),4m) -seed=$(or $(SEED),0) -servers=$(or $(SERVERS),3) -store=$(or $(STORE),wal) -net=$(or $(NET),proxy) -faults=$(FAULTS) -summary=$(abspath $(SUMMARY))

chaos-planted: ## see that chaos finds servers broken on purpose; DURATION=1m for each
	go test -count=1 -timeout 0 -v ./tests/safety/chaos/planted -args -duration=$(or $(DURATION),1m) -seed=$(or $(SEED),1)

gray: ## what clients notice of gray networks, beside ZooKeeper; half an hour, root; ONLY="forward stream" for some
	go run ./tests/safety/gray/run $(if $(ONLY),-only "$(ONLY)",-page docs/design/reliability-gray.md)

interop: ## other projects' clients and test suites; SUITES="zkcli gozk" for some
	tests/compat/interop/run.sh $(SUITES)

golden: ## record the conformance transcripts anew, from the real ZooKeeper
	ZKGO_REQUIRE=1 go test -count=1 ./tests/compat/conformance -record

sim: ## break simulated ensembles: SEEDS=n runs of 10 minutes each, from SEED on
	go test -count=1 -timeout 0 -v ./tests/safety/sim -run TestSeeds -sim.seeds=$(or $(SEEDS),100) -sim.seed=$(or $(SEED),1) -sim.summary=$(abspath $(SUMMARY))

figures: ## add up what the runs of sim and chaos in SUMMARY have shown, as Markdown; EVERY=1h for a row an hour
	@go run ./tests/safety/summary/total -every $(or $(EVERY),0) $(SUMMARY)

hours: ## run sim or chaos for hours, again where it was stopped; SUITE=sim RUNS=2000 SEED=1 DIR=/tmp/hours
	tests/safety/summary/hours.sh $(or $(SUITE),sim) $(or $(DIR),/tmp/hours) $(or $(SEED),1) $(RUNS)

hours-page: ## write docs/design/reliability-hours.md from what make hours has recorded in DIR
	tests/safety/summary/hours.sh page $(or $(DIR),/tmp/hours) >docs/design/reliability-hours.md

bench-compare: ## zkgo beside ZooKeeper and etcd: throughput, latency, processor time, memory; an hour and more
	go run ./tests/perf/compare/run -plots docs/design/plots -page docs/design/benchmarks.md
	go run ./tests/perf/compare/run -pinned -part matrix -page docs/design/benchmarks.md

failover: ## what clients notice when servers fail, beside ZooKeeper; twelve minutes
	go run ./tests/safety/failover/run -page docs/design/reliability-failover.md

migrate-demo: ## take over from a real ZooKeeper and give it back, told step by step; two minutes, needs Java and Maven
	ZKGO_LIVE=1 ZKGO_REQUIRE=1 go test -count=1 ./tests/compat/operator/takeover -run TestDemo -demo -v

lockbench: ## locks beside ZooKeeper, etcd and Redis; five minutes
	go run ./tests/perf/lockbench/run -page docs/guide/locks.md

# Where apps notes results for apps-page.
RESULTS ?= $(HOME)/.cache/zkgo-ci/apps/results.jsonl

apps: ## real applications on zkgo and on ZooKeeper; an hour and more; APPS="patroni kafka" for some
	tests/compat/apps/run.sh --servers both --record $(RESULTS) $(APPS)

apps-page: ## write the table of docs/operate/applications.md from what make apps has noted in RESULTS
	tests/compat/apps/run.sh --page $(RESULTS)

ci: ## everything
	.ci/run
