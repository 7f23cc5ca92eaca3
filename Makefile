# `make up` runs a whole cluster in one process; `make test` runs the
# tests. Everything else is for people who change the code. Go is all you need.

GO       ?= go
# What runs tests. Flags come as -name=value, and packages last (tests/rerun).
TEST     ?= $(GO) test
# The packages of the modules that are the product. The go command begins them in this
# order: those that wait longest come first, and nothing waits for them at the end.
PRODUCT  := ./tests/relay ./storage/... ./conformance ./server/... ./... ./client/... ./internal/...
NODES    ?= 3
DATA_DIR ?= levelwire-data
# What kubectl calls itself that is built from k8s.io/kubectl 0.37.2.
KUBECTL_VERSION ?= v1.37.2

.DEFAULT_GOAL := help
.PHONY: help build up hunt test test-long test-race test-peers test-benchmarks test-kubectl test-adapters test-differential record-differential default-roles test-suites test-upstream test-relay test-conformance judge components bench bench-client bench-server bench-storm bench-tree bench-startup bench-upstream soak filtered ui test-clock hostile crowding neighbours nodes-day cluster relay-faults lint fmt ci clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-20s %s\n", $$1, $$2}'

# Tests run with servers that check their invariants (server/internal/watchcache/invariant), also the
# programs that they build. What is built to be used, and what is measured, has no checks.
CHECKED := test test-long test-race test-peers test-benchmarks test-kubectl test-adapters test-differential record-differential default-roles test-upstream test-relay test-clock hunt soak filtered ui cluster relay-faults
$(CHECKED): export GOFLAGS += -tags=invariants

build: ## build bin/levelwire
	$(GO) build -trimpath -o bin/levelwire ./cmd/levelwire

up: build ## run server, controllers, scheduler and NODES kubelets; data in DATA_DIR
	exec bin/levelwire up --nodes $(NODES) --data-dir $(DATA_DIR)

# Tests wait more than they compute: two packages for each processor.
AT_ONCE = $$((2 * $$(getconf _NPROCESSORS_ONLN)))

# What is left out or cut short, unless SHORT is empty: CI runs make test SHORT=, which has what is in
# test-long, too. What is in both runs once then, of one build, and what takes longest comes first.
SHORT ?= -short

test: ## the tests of the product, but for what takes minutes; SHORT= for that, too
	$(TEST) $(SHORT) -timeout=30m -p=$(AT_ONCE) ./cmd/levelwire $(PRODUCT)

# The packages whose tests ask whether the test is short. The modules below
# these folders have targets of their own.
LONG = $(filter-out ./tests/ui/ ./tests/peers/% ./benchmarks/% ./adapters/%,$(sort $(dir $(shell grep -rl --include='*_test.go' 'testing\.Short()' .))))

test-long: ## the tests that make test leaves out or cuts short: kills, soak, what happens once a minute
	$(TEST) -timeout=20m -p=$(AT_ONCE) $(LONG)

# The race detector runs for the packages that have something to share, locks, channels or timers,
# and that start goroutines, or whose tests do: where one goroutine does everything, it finds nothing.
SHARING = $(sort $(dir $(shell grep -rlE --include='*.go' --exclude='*_test.go' '"sync(/atomic)?"|errgroup|AfterFunc|^[[:space:]]*go |<-' storage server client components internal)))
STARTING = $(sort $(dir $(shell grep -rlE --include='*.go' '^[[:space:]]*go |\.Go[^.[:alnum:]]|AfterFunc|synctest|httptest|t\.Parallel|levelwiretest' storage server client components internal)))
CONCURRENT = $(filter $(STARTING),$(SHARING))

# Tests in these packages that compute in one goroutine, where the detector has nothing to find and multiplies their seconds.
COMPUTING = TestCompressedAnswersThatDoNotEnd TestDearRules TestManyWrongElements TestOpenAPIOffersFieldValidation

test-race: ## what has goroutines, under the race detector
	$(TEST) -race -short -skip='^($(subst $() $(),|,$(strip $(COMPUTING))))$$' -timeout=30m -p=$(AT_ONCE) ./tests/relay/ ./storage/etcd/ ./server/internal/apiserver/ ./server/ $(addprefix ./,$(CONCURRENT)) ./tests/...

test-peers: ## tests against the upstream libraries (a module of its own; compiles for minutes)
	cd tests/peers && $(GO) vet ./... && $(TEST) -timeout=30m -p=$(AT_ONCE) ./...

test-benchmarks: ## what the benchmarks report (a module of its own; compiles for minutes)
	cd benchmarks && $(GO) vet ./... && $(TEST) ./...

bin/kubectl: tests/peers/go.mod tests/peers/go.sum $(wildcard tests/peers/kubectl/*.go)
	cd tests/peers && $(GO) build -ldflags "-X k8s.io/component-base/version.gitVersion=$(KUBECTL_VERSION)" -o ../../bin/kubectl ./kubectl

test-kubectl: bin/kubectl ## a tour of every command of kubectl, with the one that is built from k8s.io/kubectl, without a relay and through one; of some in front of the upstream libraries
	LEVELWIRE_KUBECTL=$(CURDIR)/bin/kubectl $(TEST) -count=1 -timeout=20m -run='^TestKubectl' ./cmd/levelwire
	cd tests/peers && LEVELWIRE_KUBECTL=$(CURDIR)/bin/kubectl $(TEST) -count=1 -timeout=20m -run='^TestKubectl' ./relay

test-adapters: ## the adapter for code that expects client-go's informers (a module of its own)
	cd adapters/clientgo && $(GO) vet ./... && $(TEST) -race ./...
	cd tests/peers && $(TEST) -race ./clientgo

JUDGE_VERSION = -X k8s.io/component-base/version.gitVersion=$(KUBECTL_VERSION) -X k8s.io/component-base/version.gitMajor=1 \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBECTL_VERSION))) -X k8s.io/component-base/version.gitTreeState=clean

judge: bin/kube-apiserver bin/etcd ## the real kube-apiserver and its etcd, for test-differential (the first time, four minutes of processor time)

# Kubernetes' own components; kubemark is its kubelet with a fake container runtime.
COMPONENTS = kube-controller-manager kube-scheduler kubemark

$(addprefix bin/,kube-apiserver $(COMPONENTS)): tests/differential/judge/go.mod tests/differential/judge/go.sum
	@echo "building $(@F) $(KUBECTL_VERSION): minutes"
	cd tests/differential/judge && GOWORK=off $(GO) build -trimpath -ldflags "$(JUDGE_VERSION)" -o ../../../$@ k8s.io/kubernetes/cmd/$(@F)
	$(if $(filter kube-apiserver,$(@F)),rm -rf bin/differential # what another one has answered)

bin/etcd: tests/differential/judge/go.mod tests/differential/judge/go.sum
	cd tests/differential/judge && GOWORK=off $(GO) build -trimpath -o ../../../bin/etcd go.etcd.io/etcd/server/v3

components: $(addprefix bin/,$(COMPONENTS)) ## Kubernetes' own controller manager, scheduler and kubelet with a fake runtime, below bin/ (the first time, five minutes of processor time)

# Kubernetes' end-to-end tests; of what it links, the components have most.
bin/e2e.test: tests/differential/judge/go.mod tests/differential/judge/go.sum
	@echo "building $(@F) $(KUBECTL_VERSION): minutes"
	cd tests/differential/judge && GOWORK=off $(GO) test -c -vet=off -trimpath -ldflags "$(JUDGE_VERSION)" -o ../../../$@ k8s.io/kubernetes/test/e2e

FLOWS  ?=
FAULTS ?=

test-upstream: build judge components bin/kubectl ## Kubernetes' own components on our server and on kube-apiserver: what FLOWS (all; names of tests/upstream/testdata) end with, compared, and what is logged as an error; FAULTS=kill, three, restart or relay: servers that are killed, three servers on one etcd, components that are killed, a relay in front of kube-apiserver; without, our components on kube-apiserver, too
	$(TEST) -count=1 -v -timeout=2h -run='^Test(Upstream|OurComponents)$$' ./tests/upstream -upstream.binaries=$(CURDIR)/bin -upstream.flows="$(FLOWS)" -upstream.faults="$(FAULTS)" -upstream.keep=$(CURDIR)/bin/upstream/$(or $(FAULTS),none)

RELAY_TESTS ?=

test-relay: build judge bin/kubectl ## relays in front of the real kube-apiserver and its etcd: caches filled from the past, answers to each user, watches, definitions, kubectl, verify, kube-apiserver killed; RELAY_TESTS=watches,kubectl takes some
	$(TEST) -count=1 -v -timeout=2h -run='^TestKubeAPIServer$$' ./tests/relay -relay.binaries=$(CURDIR)/bin -relay.only="$(RELAY_TESTS)" -relay.keep=$(CURDIR)/bin/relay

E2E_SIDES  ?= theirs,ours
E2E_GROUPS ?=
E2E_FOCUS  ?=
E2E_FLAGS  ?=

test-conformance: build components bin/kubectl bin/e2e.test $(if $(findstring judge,$(E2E_SIDES)),judge) ## Kubernetes' conformance tests that need no container, with its components on our server and with ours, into docs/users/conformance.md; E2E_GROUPS=scheduling,auth takes some groups, E2E_FOCUS some tests; E2E_SIDES=theirs,ours,judge runs them on kube-apiserver, too
	$(GO) run ./tests/e2e -sides "$(E2E_SIDES)" -groups "$(E2E_GROUPS)" -focus '$(E2E_FOCUS)' $(E2E_FLAGS)

REQUESTS ?= 50000
KINDS    ?=
VERBS    ?=
MATCH    ?=
ONLY     ?=
PAIRS    ?=
VALIDATION ?=
GROUPS   ?= 40
LIST     ?=

test-differential: judge ## compare our answers with those of the real kube-apiserver, 50,000 requests in five minutes; KINDS=Pod VERBS=create,life REQUESTS=1000 SEED=2 and more: docs/contributors/differential.md
	$(TEST) -count=1 -v -timeout=4h -run='^TestDifferential$$' ./tests/differential -differential.binaries=$(CURDIR)/bin -differential.recording=$(CURDIR)/bin/differential/recording$(if $(GATES),-gates).json.gz $(if $(GATES),-differential.gates) -differential.seed=$(SEED) -differential.requests=$(REQUESTS) -differential.kinds="$(KINDS)" $(if $(VERBS),-differential.verbs=$(VERBS)) -differential.match='$(MATCH)' -differential.only='$(ONLY)' -differential.groups=$(GROUPS) $(if $(PAIRS),-differential.pairs=$(PAIRS)) $(if $(VALIDATION),-differential.validation) $(if $(LIST),-differential.list=$(abspath $(LIST)))

record-differential: REQUESTS = 20000
record-differential: judge ## ask kube-apiserver what make test compares with its answers (tests/differential/testdata), and list what it answers otherwise than in the recording before (bin/differential/changes)
	$(TEST) -count=1 -v -timeout=4h -run='^TestDifferential$$' ./tests/differential -differential.binaries=$(CURDIR)/bin -differential.recording=$(CURDIR)/bin/differential/recording.json.gz -differential.seed=$(SEED) -differential.requests=$(REQUESTS) -differential.record=$(CURDIR)/tests/differential/testdata/recording.json.gz -differential.changes=$(CURDIR)/bin/differential/changes

default-roles: ## list Kubernetes' default roles anew, from the module that judge builds (server/internal/rbac/defaults/testdata)
	kubernetes="$$(cd tests/differential/judge && GOWORK=off $(GO) mod download k8s.io/kubernetes && GOWORK=off $(GO) list -m -f '{{.Dir}}' k8s.io/kubernetes)" && \
	$(GO) test -count=1 -run='^Test(PublishedListing|DefaultsAreThoseOfKubernetes)$$' ./server/internal/rbac/defaults -kubernetes="$$kubernetes"

SUITES       ?=
SUITES_JUDGE ?= $(if $(and $(wildcard bin/kube-apiserver),$(wildcard bin/etcd)),bin)
SUITES_FLAGS ?=

test-suites: build ## other projects' envtest suites, unmodified, on Levelwire, into docs/users/suites.md; SUITES=lws,kro takes some; on the real kube-apiserver, too, if make judge has built it (SUITES_JUDGE: its folder); fetches modules, compiles for an hour
	$(GO) run ./tests/suites -suites "$(SUITES)" -judge "$(SUITES_JUDGE)" $(SUITES_FLAGS)

bench: ## benchmarks of the core
	$(GO) test -run '^$$' -bench . -benchmem ./server/internal/watchcache ./server/internal/apiserver ./client/cache ./client/informer ./storage/...

bench-startup: ## a cold start of the server, beside one of the upstream libraries
	cd tests/peers && $(GO) test -run '^$$' -bench . -benchtime 20x ./startup

HUNT     ?= 20m
RACE     ?=
PACKAGES ?=

# Make passes SIGTERM on to what it has started, and "go run" does not.
hunt: AT_ONCE = 3
hunt: ## find tests that fail by chance: every test binary over and over for HUNT (20m), AT_ONCE (3) for each processor; RACE=1, PACKAGES, SEED
	$(GO) build -o bin/hunt/hunt ./tests/hunt
	exec bin/hunt/hunt -for $(HUNT) -at-once $(AT_ONCE) $(if $(RACE),-race) $(if $(filter command line,$(origin SEED)),-seed $(SEED)) $(PACKAGES)

# Wall clocks jump in a process whose package time is another one: the first build compiles
# everything once more. "./..." leaves out a folder with an underscore.
WALLCLOCK = -tags=wallclock,invariants -overlay=bin/_wallclock/overlay.json

test-clock: ## what lasts while the wall clock jumps: keys with a time to live, watches, history
	$(GO) run ./tests/soak/wallclock bin/_wallclock
	$(TEST) $(WALLCLOCK) -run=TestClock ./tests/soak

SOAK ?= 30m
SEED ?= 1

soak: ## informers under faults, kills, full disks and jumping clocks for SOAK (30m), with SEED, under the race detector; as root, disks of their own
	$(GO) run ./tests/soak/wallclock bin/_wallclock
	$(GO) test -race $(WALLCLOCK) -count=1 -v -timeout 24h -run 'TestSoak|TestClock' ./tests/soak -soak.duration $(SOAK) -soak.seed $(SEED)

FILTERED ?= 10m

filtered: ## filtered lists and watches of one server, and of two on one store, against a model for FILTERED (10m), with SEED: random rights, kills, cut connections, compaction
	$(GO) test -count=1 -v -timeout 24h ./tests/filtered -filtered.duration $(FILTERED) -filtered.seed $(SEED) -filtered.grace 1s

ui: ## the page at /ui in a headless Chromium (apt-get install chromium-headless-shell); UI_PICTURES, UI_PODS and AXE as tests/ui/doc.go says
	@$(TEST) -count=1 -v ./tests/ui

CLUSTER ?= 10m

cluster: ## three servers on three etcd members: kills, stops, slow disks, partitions, compaction for CLUSTER (10m) each, with SEED; an upgrade; a full quota (partitions need root)
	$(GO) test -count=1 -v -timeout 24h ./tests/cluster -cluster.duration $(CLUSTER) -cluster.seed $(SEED)

RELAY_FAULTS ?= 2m

relay-faults: ## two relays and their upstream: kill -9, stops, and wires that lose, delay and reorder packets for RELAY_FAULTS (2m) each, with SEED (wires need root on Linux)
	$(GO) test -count=1 -v -timeout 24h -run '^TestRelay' ./tests/cluster -cluster.relays $(RELAY_FAULTS) -cluster.seed $(SEED)

DURATION ?= 1h
RATE     ?= 1

hostile: build ## all attacks at once against quiet clients, on our server and on one of the upstream libraries, for DURATION (1h) each (DURATION=1m: two minutes); RATE=2: twice as many
	cd benchmarks && $(GO) build -o ../bin/hostile ./hostile
	bin/hostile -duration $(DURATION) -rate $(RATE) -sides "$(SIDES)"

crowding: build ## one restricted user with 10,000 requests in flight, 5,000 watches, slow readers, endless bodies and floods against quiet clients, on both servers
	cd benchmarks && $(GO) build -o ../bin/hostile ./hostile
	bin/hostile -crowding -duration 2m -quiet 40s -sides "$(SIDES)"

OBJECTS ?= 100000

neighbours: build ## what definitions that change, a namespace or an owner with OBJECTS (100000) objects that is deleted, and a conversion webhook that hangs cost other clients
	cd benchmarks && $(GO) build -o ../bin/neighbours ./neighbours
	bin/neighbours -objects $(OBJECTS)

NODE_RATE ?= 0.1
STEPS     ?= 1

nodes-day: NODES = 10000
nodes-day: DURATION = 30s
nodes-day: build ## leases, statuses, restarts and watches of NODES (10000) nodes at NODE_RATE (0.1) of their real rate, STEPS (1) times twice as much until something breaks (NODES=200 NODE_RATE=1 DURATION=3s SIDES=ours: seconds)
	cd benchmarks && $(GO) build -o ../bin/nodesday ./nodesday
	bin/nodesday -nodes $(NODES) -rate $(NODE_RATE) -steps $(STEPS) -duration $(DURATION) -sides "$(SIDES)"

PODS   ?= 200000
EVENTS ?= 100000
REPEAT ?= 3

bench-client: ## the client library beside client-go, into docs/contributors/benchmarks-client.md (PODS=5000 EVENTS=10000 REPEAT=1: a minute)
	cd benchmarks && $(GO) build -o ../bin/clientbench ./clientbench
	bin/clientbench -pods $(PODS) -events $(EVENTS) -repeat $(REPEAT) -report docs/contributors/benchmarks-client.md

ROWS   ?=
SIDES  ?= ours,upstream
REPORT ?= docs/contributors/benchmarks.md

bench-server: REPEAT = 2
bench-server: build ## the server beside one of the upstream libraries, into docs/contributors/benchmarks.md (ROWS=list SIDES=ours PODS=20000 REPEAT=1: seconds, printed only)
	cd benchmarks && $(GO) build -o ../bin/serverbench ./serverbench
	bin/serverbench -pods $(PODS) -repeat $(REPEAT) -rows "$(ROWS)" -sides "$(SIDES)" -report "$(REPORT)" -data bin/serverbench.json $(if $(PROFILES),-profiles "$(PROFILES)")

INFORMERS    ?= 2000
STORM_REPORT ?= docs/contributors/benchmarks-storm.md

bench-tree: ## a tree of relays with 1,000,000 watchers in one process
	$(GO) test -run '^$$' -bench TreeOfCaches -benchtime 20x ./server/internal/relay

bench-storm: build ## thousands of informers come back at once, on both servers, into docs/contributors/benchmarks-storm.md (PODS=5000 INFORMERS=200 STORM_REPORT=: two minutes, printed only)
	cd benchmarks && $(GO) build -o ../bin/serverbench ./serverbench
	bin/serverbench -pods $(PODS) -informers $(INFORMERS) -repeat 1 -rows storm -sides "$(SIDES)" -report "$(STORM_REPORT)" -data bin/storm.json

UPSTREAM_REPORT ?= docs/users/upstream-components.md

bench-upstream: PODS = 1000,5000
bench-upstream: NODES = 100
bench-upstream: REPEAT = 1
bench-upstream: build judge components ## Kubernetes' own controller manager and scheduler bind and delete PODS (1000,5000) pods on NODES (100) nodes, each of several numbers if there are commas, on our server and on kube-apiserver, into docs/users/upstream-components.md (PODS=1000 UPSTREAM_REPORT=: minutes, printed only)
	cd benchmarks && $(GO) build -o ../bin/upstreambench ./upstreambench
	bin/upstreambench -pods "$(PODS)" -nodes "$(NODES)" -repeat $(REPEAT) -report "$(UPSTREAM_REPORT)"

fmt: ## format all Go files
	gofmt -w $$(git ls-files '*.go')

lint: ## static analysis; installs golangci-lint below bin/
	.ci/lint

ci: ## what continuous integration runs
	.ci/run

clean: ## remove bin/: binaries, kube-apiserver and its kept answers, what test-suites fetched (data stays)
	rm -rf bin
