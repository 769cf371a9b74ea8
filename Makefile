# SPDX-License-Identifier: Apache-2.0
#
# Nothing here installs anything: a target that lacks a tool says which, and how
# to get it.

GO       ?= go
GOLANGCI_LINT ?= golangci-lint
FUZZTIME ?= 10s
# In check: a number of inputs, which unlike a time no slow machine can miss.
CHECK_FUZZTIME ?= 10000x
# What reads JSON and protobuf that others write, byte by byte.
SCANNER_TARGETS := codec:FuzzDecode codec:FuzzComposed codec:FuzzScanObject codec:FuzzSyntax codec:FuzzVerify \
  codec:FuzzDecodeProtobuf codec:FuzzVerifyProtobuf codec/json:FuzzScan codec/json:FuzzText
# Inputs of each of them that are made without the fuzzing engine.
INPUTS ?= 1000000
# Admissions at once, for cost.
COST_IN_FLIGHT ?= 1

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -X main.version=$(VERSION)
# What is shipped: one static file, without the pages of gRPC's own tracing, which
# nobody serves. internal/importgraph measures it built like this.
SHIPPED := CGO_ENABLED=0 $(GO) build -trimpath -tags grpcnotrace

GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# What runs tests here; check counts them on the way.
TEST := $(GO) test

# check runs every step, whatever became of those before it. COUNTED steps count
# their tests; any other step counts as one if it fails.
STEPS   := build vet fmt lint imports generated alerts race allocations syscalls examples deploy-test conformance faults e2e fuzz demo-once
COUNTED := imports generated alerts race allocations syscalls examples deploy-test conformance faults e2e fuzz
COUNTS  := bin/check.counts

.DEFAULT_GOAL := help
.PHONY: print-lint help generate generated build image demo demo-once test race allocations syscalls projects examples deploy-test fuzz fuzz-scanners corpus bench profile pgo microbench screenshots lint vet fmt imports alerts conformance long cost faults e2e mutate check clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/dispatcher, bin/dispatcher-kube and bin/dispatcher-forward
	$(SHIPPED) -ldflags "$(LDFLAGS)" -o bin/ ./cmd/dispatcher ./cmd/dispatcher-kube ./cmd/dispatcher-forward

# What is in an image is made from files alone: the same commit gives the same digest.
IMAGE    := bin/image
CREATED  := $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)

image: ## bin/image/oci, an OCI image layout for amd64 and arm64; PUSH=registry/repository:tag pushes it, too
	@mkdir -p $(IMAGE)
	@for arch in amd64 arm64; do \
	  GOOS=linux GOARCH=$$arch $(SHIPPED) -buildvcs=false -ldflags "-s -w $(LDFLAGS)" -o $(IMAGE)/$$arch/ ./cmd/dispatcher ./cmd/dispatcher-kube || exit 1; \
	done
	@cd deploy/image && $(GO) run . -o $(abspath $(IMAGE))/oci -root $(CURDIR) -version "$(VERSION)" -revision "$(REVISION)" -created "$(CREATED)" \
	  $(if $(PUSH),-push "$(PUSH)") $(foreach arch,amd64 arm64,$(foreach program,dispatcher dispatcher-kube,$(abspath $(IMAGE))/$(arch)/$(program)))

demo: ## the main job, on this machine, with nothing to set up
	@$(GO) run -ldflags "$(LDFLAGS)" ./cmd/dispatcher demo

demo-once:
	@$(GO) run -ldflags "$(LDFLAGS)" ./cmd/dispatcher demo --exit

test: ## all tests; needs Go only
	$(GO) test ./...

race: ## all tests with the race detector; needs a C compiler
	@command -v $${CC:-cc} >/dev/null || command -v gcc >/dev/null || { \
	  echo "the race detector needs a C compiler: install gcc, for example with apt-get install gcc libc6-dev" >&2; exit 1; }
	$(TEST) -race $$($(GO) list ./... | grep -v -e /internal/importgraph$$ -e /dashboards$$ -e /loadtest/faults$$)

# The tests that count them have Alloc in their names. They run one package after the
# other: what else is busy takes turns with them.
allocations: ## tests that count allocations, of which the race detector adds its own
	$(TEST) -count=1 -p 1 -run Alloc $$(grep -lrE '^func Test[A-Za-z0-9_]*Alloc' --include='*_test.go' . | xargs -n1 dirname | sort -u)

syscalls: ## what an admission asks of the kernel, counted by strace; skipped where that cannot count
	SYSTEM_CALLS=1 $(TEST) -count=1 -v -run '^TestSystemCalls$$' ./loadtest/bench

projects: ## what becomes of the files that public projects ship: FILES="gatekeeper.yaml cert-manager.yaml"
	@$(GO) run ./internal/projects $(FILES)

examples: ## the examples that are modules of their own
	cd examples/controller-runtime && $(TEST) ./...
	cd examples/plugin && $(TEST) ./...

deploy-test: ## the image, the chart, deploy/kustomize and configurations of earlier releases; UPDATE=1 rewrites golden files
	cd deploy/image && $(TEST) .
	cd deploy/test && $(TEST) . $(if $(UPDATE),-args -update)

fuzz: ## every fuzz target for FUZZTIME (10s)
	@set -e; for package in $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
	  listed=$$($(GO) test -list '^Fuzz' $$package); \
	  for target in $$(echo "$$listed" | grep '^Fuzz'); do \
	    echo "fuzz $$package $$target"; \
	    $(TEST) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
	  done; \
	done

fuzz-scanners: ## INPUTS (1000000) of each fuzz target of the scanners, without the engine; SEED=7, WORKERS=1
	@failed=0; for target in $(SCANNER_TARGETS); do \
	  (cd $${target%%:*} && $(GO) test -count=1 -timeout 0 -run "^$${target##*:}\$$" $(if $(WORKERS),-cpu $(WORKERS)) -args -inputs $(INPUTS) $(if $(SEED),-seed $(SEED))) || failed=1; \
	done; exit $$failed

corpus: ## fuzz for FUZZTIME, then keep what has reached new code in testdata/fuzz
	@$(MAKE) --no-print-directory fuzz
	@$(GO) build -o bin/ ./internal/corpus
	@set -e; for package in $$($(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do bin/corpus $$package $$target; done; \
	done

bench: ## the promised figures in one table, under 20 minutes; FIGURE=P1,P2 for some; UPDATE=1 writes docs/benchmarks.md, UPDATE=2 its second run
	@$(GO) build -o bin/ ./loadtest/bench
	@bin/bench -json bin/bench.json -figure "$(FIGURE)" $(if $(UPDATE),-update $(UPDATE)) $(BENCH)

profile: ## a CPU profile of the dispatcher under load, in bin/cpu.pprof, by component; WEBHOOKS=1 instead of 5 (Linux)
	@$(GO) build -o bin/ ./loadtest/bench
	@bin/bench -profile bin/cpu.pprof $(if $(WEBHOOKS),-webhooks $(WEBHOOKS)) $(BENCH)

pgo: ## what a build gains that is guided by such a profile (Linux; builds everything once more)
	@$(GO) build -o bin/ ./loadtest/bench
	@bin/bench -pgo -rounds 7 -json bin/pgo.json $(BENCH)

microbench: ## every Go benchmark as it is
	$(GO) test -run '^$$' -bench . -benchmem ./...

screenshots: ## the status page as PNGs in bin/screenshots; needs chromium
	@command -v chromium >/dev/null || { \
	  echo "chromium is missing: apt-get install --no-install-recommends chromium" >&2; exit 1; }
	@mkdir -p bin/screenshots
	SCREENSHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -run '^TestBrowser$$' ./internal/admin

lint: ## golangci-lint with .golangci.yml
	@command -v $(GOLANGCI_LINT) >/dev/null || { \
	  echo "golangci-lint is missing: $(GO) install $(GOLANGCI)" >&2; exit 1; }
	$(GOLANGCI_LINT) run ./...
	@# Modules of their own, with the same file.
	cd conformance && $(GOLANGCI_LINT) run ./...
	cd conformance/kubernetes && $(GOLANGCI_LINT) run ./...
	cd api/generate && $(GOLANGCI_LINT) run ./...
	cd internal/admin/generate && $(GOLANGCI_LINT) run ./...
	cd e2e && $(GOLANGCI_LINT) run ./...
	cd examples/controller-runtime && $(GOLANGCI_LINT) run ./...
	cd examples/plugin && $(GOLANGCI_LINT) run ./...
	cd deploy/image && $(GOLANGCI_LINT) run ./...
	cd deploy/test && $(GOLANGCI_LINT) run ./...

vet:
	$(GO) vet ./...
	cd conformance && $(GO) vet ./...
	cd conformance/kubernetes && $(GO) vet ./...
	cd api/generate && $(GO) vet ./...
	cd internal/admin/generate && $(GO) vet ./...
	cd e2e && $(GO) vet ./...
	@# They have no package of their own: what can be wrong is their go.mod.
	@for m in kubernetes gatekeeper; do (cd e2e/$$m && $(GO) list -deps tool >/dev/null) || exit 1; done
	cd examples/controller-runtime && $(GO) vet ./...
	cd examples/plugin && $(GO) vet ./...
	cd deploy/image && $(GO) vet ./...
	cd deploy/test && $(GO) vet ./...

fmt:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { \
	  echo "not formatted (gofmt -w):" $$unformatted >&2; exit 1; }

imports: ## who imports whom, and the size of the binary
	$(TEST) ./internal/importgraph

generate: ## deepcopy, CustomResourceDefinitions (and the chart's copies) and JSON Schemas of api/v1alpha1, by the controller-gen of api/generate/go.mod; the status page, by the templ of internal/admin/generate/go.mod
	$(GO) build -C api/generate -o $(CURDIR)/bin/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen
	bin/controller-gen object crd paths=./api/v1alpha1 output:crd:dir=api/v1alpha1/crds output:object:dir=api/v1alpha1
	$(GO) test -count=1 ./api/v1alpha1 -run Schemas -update
	cd api/generate && $(GO) test -count=1 -run Chart -update .
	$(GO) build -C internal/admin/generate -o $(CURDIR)/bin/templ github.com/a-h/templ/cmd/templ
	cd internal/admin && ../../bin/templ fmt . && ../../bin/templ generate

generated: ## that make generate would change nothing
	cd api/generate && $(TEST) -count=1 ./...
	cd internal/admin/generate && $(TEST) -count=1 ./...

alerts: ## alert rules and dashboards: promtool check and unit tests, and Prometheus through a live outage
	@command -v promtool >/dev/null && command -v prometheus >/dev/null || { \
	  echo "prometheus is missing: apt-get install --no-install-recommends prometheus (which also starts a service)" >&2; exit 1; }
	LIVE=1 $(TEST) -count=1 -v ./dashboards

conformance: ## the API server's own webhook plugins as caller and as oracle; N=100000 random pairs, SEED=1, REGISTERED=1 behind printed registrations only
	cd conformance && CONFORMANCE_N=$(N) CONFORMANCE_SEED=$(SEED) CONFORMANCE_REGISTERED=$(REGISTERED) $(TEST) -timeout 3h ./...

faults: ## the fault matrix in smoke size; FULL=1 for full size, ROW=F8 for one row, SEED=7; BITE=1: each row against a bug that it must notice
	FAULTS=1 $(TEST) -count=1 -v -timeout 300m $(if $(BITE),-run '^TestBite$$') ./loadtest/faults $(if $(UPDATE),-args -update)

long: ## what takes hours: 50,000 registered pairs, a million composed answers, large objects in time, 500 requests for each controller of kube-apiserver and for policies, the fault matrix in full size, three replicas that become six, 10 minutes of each fuzz target, 20 million inputs of each scanner's
	$(MAKE) conformance N=50000 REGISTERED=1
	COMPOSED_ANSWERS=1000000 $(GO) test -count=1 -v -timeout 2h -run '^TestComposedAnswers$$' ./webhook
	FULL=1 $(GO) test -count=1 -v -timeout 1h -run '^TestLargeObjectsInTime$$' ./dispatcher
	cd e2e && FULL=1 $(GO) test -count=1 -v -timeout 30m -run '^(TestControllers|TestPolicies)$$' .
	FULL=1 $(MAKE) faults
	FULL=1 $(GO) test -count=1 -v -timeout 30m -run '^TestScaleOutInTime$$' ./loadtest/replica
	$(MAKE) fuzz FUZZTIME=10m
	$(MAKE) fuzz-scanners INPUTS=20000000

cost: ## what webhooks cost the API server, directly and through the dispatcher (Linux)
	cd conformance && $(GO) test -run '^TestCost$$' -count=1 -v . -args -cost -cost-in-flight $(COST_IN_FLIGHT)

e2e: ## real kube-apiservers call the built binary; needs etcd, builds the rest
	@command -v etcd >/dev/null || { \
	  echo "etcd is missing: apt-get install etcd-server" >&2; exit 1; }
	cd e2e && $(TEST) -count=1 -v -timeout 30m .

mutate: ## the tests of PACKAGE=./match against small bugs in it; ONLY=Limiter for some
	@$(GO) run ./internal/mutate -only "$(ONLY)" $(PACKAGE)

check: bin/tally ## what CI runs: build, vet, fmt, lint, imports, generated, alerts, race, allocations, syscalls, examples, deploy-test, conformance, faults, e2e, fuzz, demo
	@: > $(COUNTS); failed=""; \
	for step in $(STEPS); do \
	  echo "== $$step"; start=$$(date +%s); \
	  if $(MAKE) --no-print-directory $$step FUZZTIME=$(CHECK_FUZZTIME) TEST="$(CURDIR)/bin/tally -to $(CURDIR)/$(COUNTS) $(GO) test -json"; then \
	    echo "== $$step: passed in $$(( $$(date +%s) - start )) s"; \
	  else \
	    echo "== $$step: FAILED after $$(( $$(date +%s) - start )) s"; failed="$$failed $$step"; \
	    case " $(COUNTED) " in *" $$step "*) ;; *) echo "0 1 0" >> $(COUNTS);; esac; \
	  fi; \
	done; \
	[ -z "$$failed" ] || echo "failed steps:$$failed"; \
	bin/tally -sum $(COUNTS) && [ -z "$$failed" ]

.PHONY: bin/tally
bin/tally:
	@$(GO) build -o bin/ ./internal/tally

clean: ## remove what was built
	rm -rf bin

print-lint:
	@echo $(GOLANGCI)
