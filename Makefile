# Every command that developers need. `make` alone lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# How long each fuzz target runs, in seconds.
FUZZ_SECONDS ?= 20
FUZZ_TARGETS := url signals selection classifier scope_config robots sitemap links fingerprint

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the optimised binary: target/release/forager
	cargo build --release --locked

# What is measured is what would be handed out.
MEASURED = $(or $(CARGO_TARGET_DIR),target)/dist

.PHONY: dist
dist: ## Build the binary to hand out, which takes longer and is a little faster: target/dist/forager
	cargo build --profile dist --locked --package forager

.PHONY: test
test: format lint docs core compat-python check-all ## Everything that must hold: format, lints, docs, core alone, a client, all tests

.PHONY: format
format: ## Check the format of the code (cargo fmt mends it)
	cargo fmt --all --check

.PHONY: lint
lint: ## Clippy, with warnings as errors, for the fuzz targets too; it also keeps core pure
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cd fuzz && CARGO_TARGET_DIR=$(abspath $(or $(CARGO_TARGET_DIR),target)) cargo clippy --locked -- -D warnings

.PHONY: docs
docs: ## Build the documentation of the code without warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

# A workspace build unifies features and would hide it if core came to need more than it asks for.
.PHONY: core
core: ## Build and test core by itself, and check what it depends on
	cargo test --package forager-core --locked
	@if cargo tree --package forager-core --edges normal,features --locked | grep -F 'jiff feature "std"'; then \
		echo 'core must not have the clock: jiff is built with its std feature' >&2; exit 1; fi
	@if cargo tree --package forager-core --edges normal --prefix none --locked \
		| grep -wE '^(tokio|mio|futures|async-std|getrandom|log|tracing|rayon|socket2|libc)'; then \
		echo 'core must not depend on I/O, threads, logging or a random source: see above' >&2; exit 1; fi

# Most tests wait for others, a server or a pause, longer than they compute.
TEST_THREADS ?= $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))

.PHONY: check-all
check-all: ## Run all tests, against a PostgreSQL server of their own, which is installed where it is missing
	RUST_TEST_THREADS=$(TEST_THREADS) scripts/postgres run cargo test --workspace --locked

# The flags that `cargo fuzz` would set, so that it need not be installed.
FUZZ_FLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')

# What is found goes to fuzz/corpus (the first folder), what fails to fuzz/artifacts; both stay local.
.PHONY: fuzz
fuzz: ## Fuzz every target for FUZZ_SECONDS (20) seconds
	cd fuzz && RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --locked --release --target $(FUZZ_HOST)
	cd fuzz && for target in $(FUZZ_TARGETS); do \
		mkdir -p corpus/$$target artifacts/$$target; \
		target/$(FUZZ_HOST)/release/$$target corpus/$$target seeds/$$target \
			-max_total_time=$(FUZZ_SECONDS) -artifact_prefix=artifacts/$$target/ -verbosity=0 -print_final_stats=1; \
	done

.PHONY: wasm
wasm: ## Build core for WebAssembly, where that target is installed
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; then \
		cargo build --package forager-core --target wasm32-unknown-unknown --locked; \
	else \
		echo 'the target wasm32-unknown-unknown is not installed: rustup target add wasm32-unknown-unknown'; fi

.PHONY: deny
deny: ## Check licences, advisories and sources of dependencies, where cargo-deny is installed
	@if command -v cargo-deny > /dev/null; then cargo deny check; \
	else echo 'cargo-deny is not installed: cargo install --locked cargo-deny'; fi

.PHONY: bench
bench: dist ## Measure the decision core against plain JavaScript (needs Node and GNU time); writes bench/DATE-core.md
	@command -v node > /dev/null || { echo 'Node is not installed' >&2; exit 1; }
	@[ -x /usr/bin/time ] || { echo 'GNU time is not installed (package "time")' >&2; exit 1; }
	node bench/core.mjs $(MEASURED)/forager

# How long the soak runs: rounds of kills, and steps of random calls.
SOAK_ROUNDS ?= 300
SOAK_STEPS ?= 200000

.PHONY: soak
soak: ## The long form of the queue's tests: hundreds of kills, many thousand random calls
	FORAGER_SOAK_ROUNDS=$(SOAK_ROUNDS) FORAGER_SOAK_STEPS=$(SOAK_STEPS) \
		cargo test --release --package forager-frontier --locked -- --nocapture

# The size of the workload; 10 million URLs need about 4 GB of disk and 1.2 GB of memory.
BENCH_URLS ?= 10000000
BENCH_HOSTS ?= 100000

.PHONY: bench-frontier
bench-frontier: dist ## Measure the queue against the raw engine; prints a table (BENCH_URLS, BENCH_HOSTS)
	$(MEASURED)/forager bench frontier --urls $(BENCH_URLS) --hosts $(BENCH_HOSTS) --format table

# The numbers of pending URLs that claims are compared at; 4 million need about 2 GB of disk.
BENCH_PENDING ?= 40000,4000000

.PHONY: bench-postgres
bench-postgres: dist ## Measure the queue in a PostgreSQL server of its own, which forces all to the medium (BENCH_PENDING)
	DURABLE=yes scripts/postgres run bash -c \
		'$(MEASURED)/forager bench frontier --store "$$FORAGER_TEST_POSTGRES" --pending $(BENCH_PENDING) --format table'

# How many URLs are put in each way, and how many queues there are when few of them have something due.
BENCH_PUTS ?= 500000
BENCH_QUEUES ?= 1000000

.PHONY: bench-urlfrontier
bench-urlfrontier: dist ## Measure the server against one that only acknowledges; prints a table (BENCH_PUTS, BENCH_QUEUES)
	$(MEASURED)/forager bench urlfrontier --urls $(BENCH_PUTS) --queues $(BENCH_QUEUES) --format table

# What clients of the server need is installed here; they check the binary that tests use.
COMPAT_TOOLS := compat/.tools
COMPAT_BINARIES = $(or $(CARGO_TARGET_DIR),target)/debug

.PHONY: compat-python
compat-python: ## Check the server with a Python client that is generated from our description, call by call
	cargo build --locked --package forager
	compat/python/run $(COMPAT_BINARIES)/forager $(COMPAT_TOOLS)

.PHONY: compat-java
compat-java: ## Check the server with the published Java client of URLFrontier (needs Maven and a JDK)
	cargo build --locked --package forager
	compat/java/run $(COMPAT_BINARIES)/forager $(COMPAT_TOOLS)

.PHONY: compat-scrapy
compat-scrapy: ## Have Scrapy crawl the demonstration web, with the server for its queue
	cargo build --locked --package forager
	cargo build --locked --package forager-site --example demo_site
	compat/scrapy/run $(COMPAT_BINARIES)/forager $(COMPAT_BINARIES)/examples/demo_site $(COMPAT_TOOLS)

# What the crawler is compared with is installed here.
BENCH_TOOLS := bench/.tools
BENCH_CRAWL = python3 bench/crawl/run.py --tools $(BENCH_TOOLS) \
	--binaries $(MEASURED)/examples

.PHONY: bench-crawl-tools
bench-crawl-tools:
	cargo build --profile dist --locked --package forager-crawl --examples
	bench/crawl/tools.sh $(BENCH_TOOLS)

.PHONY: bench-crawl
bench-crawl: bench-crawl-tools ## Measure the crawler against Scrapy, colly and wrk, which it installs; writes bench/DATE-crawl.md
	$(BENCH_CRAWL) --memory 10000 100000 --out bench

.PHONY: bench-crawl-small
bench-crawl-small: bench-crawl-tools ## The same on a small site, to see that it works; writes nothing
	$(BENCH_CRAWL) --hosts 10 --pages 50 --rounds 1
