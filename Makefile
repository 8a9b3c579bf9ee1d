# SPDX-License-Identifier: Apache-2.0
# The doors to the project. The build itself is meson's; see CONTRIBUTING.md.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test guest bench lint format docs fuzz install clean release asan tsan

FUZZ_SECONDS ?= 60
PREFIX ?= /usr/local
RELEASE := build/release
ASAN := build/asan
TSAN := build/tsan
BULKHEAD := $(RELEASE)/src/cli/bulkhead

help: ## say what can be made
	@echo 'usage: make TARGET'; echo
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "  %-9s %s\n", $$1, $$2}'

run: ## build, judge an example policy, start the daemon with another (no GPU needed)
	@tools/setup build
	@$(MAKE) --no-print-directory release
	@tools/demo $(BULKHEAD)
	@tools/scene $(BULKHEAD) $(RELEASE)/src/node/bulkheadd

test: ## build with and without sanitizers, and run every test
	@tools/setup test
	@$(MAKE) --no-print-directory asan release tsan
	@tools/run-tests $(ASAN) $(RELEASE):check,cli,rules,slurm $(TSAN):threads

guest: ## run the tests of leases on cgroups of version 2, in an emulated machine
	@tools/setup guest
	@$(MAKE) --no-print-directory release
	@meson test -C $(RELEASE) --suite guest --verbose

bench: ## measure the checker and print the numbers
	@tools/setup bench
	@$(MAKE) --no-print-directory release
	@meson test -C $(RELEASE) --benchmark --verbose --no-rebuild

lint: ## check the format and run the static analyser
	@tools/setup lint
	@$(MAKE) --no-print-directory release
	@tools/lint $(RELEASE)

format: ## rewrite the sources in the house format
	@tools/setup lint
	@tools/lint --format

docs: ## build the man pages and check the documents
	@tools/setup docs
	@$(MAKE) --no-print-directory release
	@ls $(RELEASE)/docs/*.[1-9] >/dev/null 2>&1 || meson setup --reconfigure $(RELEASE) >/dev/null
	@$(MAKE) --no-print-directory release
	@tools/check-docs . && ls $(RELEASE)/docs/*.[1-9]

fuzz: ## run every fuzzer for FUZZ_SECONDS (60)
	@tools/setup fuzz
	@tools/fuzz $(FUZZ_SECONDS)

install: docs ## install under PREFIX (/usr/local); DESTDIR is honoured
	@meson configure $(RELEASE) -Dprefix=$(PREFIX)
	@$(MAKE) --no-print-directory release
	@meson install -C $(RELEASE) --no-rebuild

clean: ## remove what was built
	rm -rf build

# What the run and the checks use: optimised and hardened as shipped.
release:
	@tools/build $(RELEASE)

# The same code under AddressSanitizer and UndefinedBehaviorSanitizer; single modules are tested here alone. Half of the compiler's
# time went into optimizing what they add. Their reports need lines, not variables.
asan:
	@tools/build $(ASAN) -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dc_args=-g1

# What has threads, under ThreadSanitizer; the test run builds the few programs it needs.
tsan:
	@tools/build --only-set-up $(TSAN) -Db_sanitize=thread -Db_lundef=false -Dc_args=-g1
