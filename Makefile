# Everything here works on a machine with Go alone, but for what says otherwise.
# .ci/run runs all of it.

LINT_VERSION := v2.15.0
LINT := bin/golangci-lint-$(LINT_VERSION)

# C that was translated to Go is not watched for races: it locks by its own means, has
# most of the time of a run, and takes four times as long when it is.
NO_RACE := $(foreach p,modernc.org/libc modernc.org/sqlite/lib modernc.org/libquickjs,-gcflags=$(p)=-race=false)

.DEFAULT_GOAL := help
.PHONY: help run build test test-race test-postgres lint conformance bench generate fresh ci clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## build guideway and serve the bundled workflows at 127.0.0.1:3000
	./bin/guideway serve

build: ## build bin/guideway as it is released: one static binary, without symbols
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/guideway ./cmd/guideway

test: ## run all tests; those of PostgreSQL where GUIDEWAY_TEST_POSTGRES names a throw-away server
	go test ./...

test-race: ## run all tests but long measures with the race detector (needs gcc)
	CGO_ENABLED=1 go test -race -short -timeout 20m $(NO_RACE) ./...

test-postgres: ## run the tests of the PostgreSQL journal with a server of their own (needs PostgreSQL)
	.ci/postgres go test -count=1 ./internal/journal/postgres

lint: $(LINT) ## lint, check the format and the dependency rule (installs a pinned linter into bin/)
	$(LINT) config verify
	$(LINT) run ./...
	go test ./internal

$(LINT):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $@

conformance: ## run the official MCP suite and the MCP Inspector against us (needs npm)
	conformance/run
	conformance/through
	conformance/upstreams
	conformance/inspector

bench: ## measure against the budgets
	cd bench && go run .

generate: ## write the generated files again
	go generate ./...
	cd bench && go mod tidy

fresh: ## check that the generated files are those that generate writes
	@before=$$(mktemp) && after=$$(mktemp) && trap 'rm -f "$$before" "$$after"' EXIT && \
	state() { git status --porcelain && git diff; } && \
	state >"$$before" && $(MAKE) --no-print-directory generate && state >"$$after" && \
	if ! diff -u "$$before" "$$after"; then echo "run 'make generate' and commit what it changes" >&2; exit 1; fi

ci: ## run what the continuous integration runs
	.ci/run

clean: ## remove what was built and installed
	rm -rf bin conformance/node_modules conformance/out
