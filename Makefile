# Set-up, build, tests. DEVELOPMENT.md tells more about each target.

PG_CONFIG ?=
export PG_CONFIG

.DEFAULT_GOAL := help
.PHONY: help setup build install uninstall demo test test-flush-bytes lint fmt fuzz differential bench latency microbench clean

help:
	@echo 'make demo                        sets up what is missing and shows replication at work'
	@echo 'make test                        sets up what is missing and runs all tests'
	@echo 'make install PG_CONFIG=...       builds for your server and installs there'
	@echo 'make uninstall PG_CONFIG=...     takes it out again'
	@echo 'make build PG_CONFIG=...         builds for your server into target/package'
	@echo 'make setup                       only sets up (toolchain, servers), into a cache directory'
	@echo 'make lint                        format and clippy'
	@echo 'make fmt                         formats the code'
	@echo 'make fuzz                        fuzzes the decoder (needs a nightly toolchain and cargo-fuzz)'
	@echo 'make differential SEED=1 ROUNDS=100 [PG=18]   random workloads through both plugins'
	@echo 'make bench [WORKLOADS="narrow wide"]     measures against pgoutput, on a PostgreSQL 18 that it builds first'
	@echo 'make test-flush-bytes            the tests that compare and replicate, at extremes of pgoutput_rs.flush_bytes'
	@echo 'make latency [PG=18]             measures how long transactions take to their client'
	@echo 'make microbench                  measures encoding, decoding and formatting, the latter against the server'
	@echo 'make clean                       removes what was built'

setup:
	@scripts/setup

build install: setup
	@scripts/install $@ "$$PG_CONFIG"

uninstall:
	@scripts/install uninstall "$$PG_CONFIG"

demo: setup
	@scripts/demo

test: setup
	@scripts/test

test-flush-bytes: setup
	@scripts/test-flush-bytes

lint: setup
	@scripts/lint

fmt: setup
	@. scripts/common.sh && use_toolchain && cargo fmt --all

fuzz:
	cd fuzz && cargo +nightly fuzz run decode

differential: setup
	@scripts/differential

bench:
	@PG_BENCH=yes scripts/setup
	@scripts/bench

latency: setup
	@scripts/latency

microbench: setup
	@scripts/microbench

clean:
	rm -rf target fuzz/target
