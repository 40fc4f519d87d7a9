# Every target needs Go only, unless its description names more.

LINT_VERSION := v2.15.0
LINT := bin/golangci-lint-$(LINT_VERSION)
DEADCODE_VERSION := v0.52.0
DEADCODE := bin/deadcode-$(DEADCODE_VERSION)

# The programs, and the tests of the public package, which call all product code. A
# function that only other tests call is dead. Packages of test suites are not reported.
DEADCODE_ROOTS := ./cmd/guideway ./validate ./release/sbom ./conformance/proxy ./conformance/fixture
DEADCODE_FILTER := ^github.com/guideway-dev/guideway/(cmd|internal|release|conformance)/

# The packages with goroutines or locks of their own. All other packages, and the tests
# that kill processes or compare with a model, run nightly.
RACE_PACKAGES := $(addprefix ./internal/,run store/... session contexts contexts/checkpoint gateway/... \
	hooks/admin hooks/sandbox/... catalog catalog/registry machine/driver mcp/transport httpapi/... telemetry/...)

# Do not detect races in C that was translated to Go: it locks in its own way, takes
# most of the time of a run, and takes four times as long with the detector.
NO_RACE := $(foreach p,modernc.org/libc modernc.org/sqlite/lib modernc.org/libquickjs,-gcflags=$(p)=-race=false)

.DEFAULT_GOAL := help
.PHONY: help run build test test-race test-race-all test-postgres lint deadcode conformance bench generate fresh ci clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build guideway and serve the bundled workflows at 127.0.0.1:3000
	./bin/guideway serve --include-project=false

build: ## build bin/guideway as it is released: one static binary, without symbols
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/guideway ./cmd/guideway

test: ## run all tests; set GUIDEWAY_TEST_POSTGRES to an unused server for those of PostgreSQL
	go test $(TEST_FLAGS) ./...

test-race: ## run the tests of packages with goroutines or locks with the race detector (needs gcc)
	CGO_ENABLED=1 go test -count=1 -race -short -timeout 20m $(NO_RACE) $(RACE_PACKAGES)

test-race-all: ## run all tests with the race detector (needs gcc)
	CGO_ENABLED=1 go test -count=1 -race -short -timeout 40m $(NO_RACE) ./...

test-postgres: ## run the tests of the PostgreSQL journal with a temporary server (needs PostgreSQL)
	.ci/postgres go test -count=1 ./internal/store/postgres

lint: $(LINT) deadcode ## lint, check the format, the dependency rule, dead code and the wording (installs pinned tools into bin/)
	$(LINT) config verify
	$(LINT) run ./...
	go test -count=1 ./internal

deadcode: $(DEADCODE) ## list the functions that only tests call, and fail if there are any
	@found=$$($(DEADCODE) -test -filter '$(DEADCODE_FILTER)' $(DEADCODE_ROOTS)) || exit 1; \
	if [ -n "$$found" ]; then printf '%s\n' "$$found" >&2; exit 1; fi

$(DEADCODE):
	GOBIN=$(CURDIR)/bin go install golang.org/x/tools/cmd/deadcode@$(DEADCODE_VERSION)
	mv bin/deadcode $@

$(LINT):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $@

conformance: ## run the official MCP suite and the MCP Inspector (needs npm)
	conformance/run
	conformance/through
	conformance/upstreams
	conformance/inspector

bench: ## measure the budgets
	cd bench && go run .

generate: ## write the generated files
	go generate ./...
	cd bench && go mod tidy

fresh: ## check that the generated files are up to date
	@before=$$(mktemp) && after=$$(mktemp) && trap 'rm -f "$$before" "$$after"' EXIT && \
	state() { git status --porcelain && git diff; } && \
	state >"$$before" && $(MAKE) --no-print-directory generate && state >"$$after" && \
	if ! diff -u "$$before" "$$after"; then echo "run 'make generate' and commit what it changes" >&2; exit 1; fi

ci: ## run the required stages of the continuous integration
	.ci/run

clean: ## remove builds and installed packages
	rm -rf bin conformance/node_modules conformance/clients/node_modules conformance/out
