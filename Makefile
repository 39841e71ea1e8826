# Each target says what it does in `make help`. The scripts that they call need nothing from here.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build install uninstall demo test fmt lint fuzz clean

# Your server's pg_config. Without it, setup, demo and test use the servers that setup has fetched.
PG_CONFIG ?=
export PG_CONFIG
# The servers that setup fetches.
PG_MAJORS ?= 15 18
export PG_MAJORS
# Seconds that `make fuzz` takes.
FUZZ_SECONDS ?= 60

help: ## Tell what there is (the default)
	@echo 'pgoutput_rs: a logical decoding output plugin that stands in for pgoutput'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'PG_CONFIG=/path/of/pg_config names your own server: needed by install and uninstall, heeded by build and test.'

setup: ## Fetch what this machine lacks (Rust, libclang, PostgreSQL, cargo-pgrx) into a cache
	@scripts/setup

build: setup ## Build for the server of PG_CONFIG, or for the fetched PostgreSQL 18
	@scripts/install build "$$(scripts/which-server)"

install: ## Build, and install into the server of PG_CONFIG
	@scripts/install check "$(PG_CONFIG)"
	@scripts/setup
	@scripts/install install "$(PG_CONFIG)"

uninstall: ## Take it out of the server of PG_CONFIG
	@scripts/install uninstall "$(PG_CONFIG)"

demo: setup ## Watch a stock subscriber replicate from pgoutput_rs, both ways to use it
	@scripts/demo

test: setup ## Run every test: unit, property, inside a server, and on real clusters
	@scripts/test

fmt: setup ## Format the sources
	@scripts/with-toolchain cargo fmt --all

lint: setup ## Check format, and clippy for every fetched server
	@scripts/lint

fuzz: ## Fuzz the message decoder for FUZZ_SECONDS (needs rustup's nightly and cargo-fuzz)
	@scripts/fuzz "$(FUZZ_SECONDS)"

clean: ## Remove what was built (the cache of setup stays)
	rm -rf target fuzz/target
