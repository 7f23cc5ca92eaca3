# `make up` runs a whole cluster in one process; `make test` runs the
# tests. Everything else is for people who change the code. Go is all you need.

GO       ?= go
# What runs tests. Flags come as -name=value, and packages last (tests/rerun).
TEST     ?= $(GO) test
# The packages of the modules that are the product.
PRODUCT  := ./... ./client/... ./internal/...
NODES    ?= 3
DATA_DIR ?= levelwire-data
# What kubectl calls itself that is built from k8s.io/kubectl 0.37.2.
KUBECTL_VERSION ?= v1.37.2

.DEFAULT_GOAL := help
.PHONY: help build up test test-long test-race test-peers test-benchmarks test-kubectl test-adapters bench bench-client bench-server bench-storm bench-startup soak lint fmt ci clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

build: ## build bin/levelwire
	$(GO) build -trimpath -o bin/levelwire ./cmd/levelwire

up: build ## run server, controllers, scheduler and NODES kubelets; data in DATA_DIR
	exec bin/levelwire up --nodes $(NODES) --data-dir $(DATA_DIR)

# Tests wait more than they compute: two packages for each processor.
AT_ONCE = $$((2 * $$(getconf _NPROCESSORS_ONLN)))

test: ## the tests of the product, but for what takes minutes
	$(TEST) -short -p=$(AT_ONCE) $(PRODUCT)

# The packages whose tests ask whether the test is short. The modules below
# these folders have targets of their own.
LONG = $(filter-out ./tests/peers/% ./benchmarks/% ./adapters/%,$(sort $(dir $(shell grep -rl --include='*_test.go' 'testing\.Short()' .))))

test-long: ## the tests that make test leaves out or cuts short: kills, soak, what happens once a minute
	$(TEST) -p=$(AT_ONCE) $(LONG)

test-race: ## the product, without its command, under the race detector
	$(TEST) -race -short ./storage/... ./server/... ./client/... ./components/... ./internal/... ./tests/...

test-peers: ## tests against the upstream libraries (a module of its own; compiles for minutes)
	cd tests/peers && $(GO) vet ./... && $(TEST) -timeout=30m ./...

test-benchmarks: ## what the benchmarks report (a module of its own; compiles for minutes)
	cd benchmarks && $(GO) vet ./... && $(TEST) ./...

test-kubectl: ## a tour of every command of kubectl, with the one that is built from k8s.io/kubectl
	cd tests/peers && $(GO) build -ldflags "-X k8s.io/component-base/version.gitVersion=$(KUBECTL_VERSION)" -o ../../bin/kubectl ./kubectl
	LEVELWIRE_KUBECTL=$(CURDIR)/bin/kubectl $(TEST) -count=1 -run='^TestKubectl' ./cmd/levelwire

test-adapters: ## the adapter for code that expects client-go's informers (a module of its own)
	cd adapters/clientgo && $(GO) vet ./... && $(TEST) -race ./...
	cd tests/peers && $(TEST) -race ./clientgo

bench: ## benchmarks of the core
	$(GO) test -run '^$$' -bench . -benchmem ./server/internal/watchcache ./server/internal/apiserver ./client/cache ./client/informer ./storage/...

bench-startup: ## a cold start of the server, beside one of the upstream libraries
	cd tests/peers && $(GO) test -run '^$$' -bench . -benchtime 20x ./startup

SOAK ?= 30m
SEED ?= 1

soak: ## informers under faults, kills and compaction for SOAK (30m), with SEED, under the race detector
	$(GO) test -race -count=1 -v -timeout 24h -run TestSoak ./tests/soak -soak.duration $(SOAK) -soak.seed $(SEED)

PODS   ?= 200000
EVENTS ?= 100000
REPEAT ?= 3

bench-client: ## the client library beside client-go, into docs/contributors/benchmarks-client.md (PODS=5000 EVENTS=10000 REPEAT=1: a minute)
	cd benchmarks && $(GO) build -o ../bin/clientbench ./clientbench
	bin/clientbench -pods $(PODS) -events $(EVENTS) -repeat $(REPEAT) -report docs/contributors/benchmarks-client.md

ROWS   ?=
SIDES  ?= ours,upstream
REPORT ?= docs/contributors/benchmarks.md

bench-server: build ## the server beside one of the upstream libraries, into docs/contributors/benchmarks.md (ROWS=list SIDES=ours PODS=20000 REPEAT=1: seconds, printed only)
	cd benchmarks && $(GO) build -o ../bin/serverbench ./serverbench
	bin/serverbench -pods $(PODS) -repeat $(REPEAT) -rows "$(ROWS)" -sides "$(SIDES)" -report "$(REPORT)" -data bin/serverbench.json $(if $(PROFILES),-profiles "$(PROFILES)")

INFORMERS    ?= 2000
STORM_REPORT ?= docs/contributors/benchmarks-storm.md

bench-storm: build ## thousands of informers come back at once, on both servers, into docs/contributors/benchmarks-storm.md (PODS=5000 INFORMERS=200 STORM_REPORT=: two minutes, printed only)
	cd benchmarks && $(GO) build -o ../bin/serverbench ./serverbench
	bin/serverbench -pods $(PODS) -informers $(INFORMERS) -repeat 1 -rows storm -sides "$(SIDES)" -report "$(STORM_REPORT)" -data bin/storm.json

fmt: ## format all Go files
	gofmt -w $$(git ls-files '*.go')

lint: ## static analysis; installs golangci-lint below bin/
	.ci/lint

ci: ## what continuous integration runs
	.ci/run

clean: ## remove binaries (data stays)
	rm -rf bin
