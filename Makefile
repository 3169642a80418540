# Everything a contributor runs. Cargo installs the toolchain of rust-toolchain.toml by itself where rustup is there.

.PHONY: test format lint docs unit schemas fuzz soak bench bench-cluster model rate run cluster-up cluster-down e2e

# All checks, in the order in which they fail fastest.
test: format lint docs unit

format:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets --locked -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

unit:
	cargo test --workspace --locked

# Writes anew what is generated from the code: the JSON Schema files after a change of the job file or of a stored
# document, the custom resource definitions and their reference after a change of a kind.
schemas:
	UPDATE_SCHEMAS=1 cargo test --package penstock-job --locked schema
	UPDATE_CRDS=1 cargo test --package penstock-crds --locked committed

# Looks for inputs that break a promise: each target of fuzz/ (or TARGET=name) for so many seconds, one after the other.
# What it learns stays in target/fuzz; an input that breaks a promise is written to fuzz/artifacts.
fuzz: SECONDS ?= 60
fuzz:
	@rustup toolchain list | grep --quiet '^nightly' || \
		{ echo 'make fuzz needs the nightly toolchain: run `rustup toolchain install nightly`'; exit 1; }
	@command -v cargo-fuzz > /dev/null || \
		{ echo 'make fuzz needs cargo-fuzz: run `cargo install --locked cargo-fuzz`'; exit 1; }
	@for target in $(or $(TARGET),$$(cargo +nightly fuzz list)); do \
		mkdir -p target/fuzz/$$target && \
		cargo +nightly fuzz run --sanitizer none --features libfuzzer $$target \
			target/fuzz/$$target fuzz/corpus/$$target \
			-- -max_total_time=$(SECONDS) -timeout=10 -print_final_stats=1 || exit 1; \
	done

# Runs jobs that are killed, paused, overtaken and misled, each drawn from SEED, for so many seconds, and accounts for every
# line. ROUND=3 repeats one round of a seed, PLACE=bucket or PLACE=folder takes only rounds there.
soak: SECONDS ?= 600
soak: SEED ?= 1
soak:
	cargo test --locked --package penstock --test soak -- \
		--seed $(SEED) $(if $(PLACE),--place $(PLACE)) $(if $(ROUND),--round $(ROUND),--seconds $(SECONDS))

# Measures this machine with the release build (docs/benchmarks.md). ROWS=requests,validation takes only these subjects,
# LINES=1000000 a smaller input for the memory rows, QUICK=1 little of everything, JSON=1 prints JSON.
bench:
	cargo build --release --locked --package penstock --package penstock-operator --package penstock-bench
	test -x target/bench-python/bin/python || python3 -m venv target/bench-python
	target/bench-python/bin/python -m pip install --quiet --requirement bench/requirements.txt
	target/release/penstock-bench rows --python target/bench-python/bin/python \
		$(if $(ROWS),--only $(ROWS)) $(if $(LINES),--lines $(LINES)) $(if $(QUICK),--quick) $(if $(JSON),--json)

# How soon a job asks its provider, in the real cluster of cluster-up: after kubectl apply, and after its pod was killed.
bench-cluster: cluster-up
	cargo test --locked --package penstock-e2e --test scenarios -- --run --measure

# The job protocol as a model, in configurations that are too large for the tests (docs/model.md). Takes minutes.
model:
	cargo run --release --locked --package penstock-model

# Every rule in every scenario and with 300 providers that are drawn, in virtual time (docs/rate-learning.md). SCENARIOS=steady-500
# takes only these, SEEDS=3 more draws of each, RULES=adaptive only these rules, FROM=300 other
# providers. Takes minutes.
rate: SEEDS ?= 2
rate:
	cargo run --release --locked --package penstock-scenarios --example table -- --seeds $(SEEDS) \
		$(if $(RULES),--rules $(RULES)) $(if $(SCENARIOS),$(SCENARIOS),--generated 300 $(if $(FROM),--from $(FROM)))

# The main job: the example against the simulated provider.
run:
	cargo run --release --locked --bin penstock -- run examples/support-tickets.jsonl --provider simulated --output out/

# A real Kubernetes cluster of two nodes on this machine, as root (docs/cluster.md). The first time takes minutes.
cluster-up:
	cargo run --locked --package penstock-e2e -- up

# Stops it and takes away what it left on the machine; what was built stays in target/cluster.
cluster-down:
	cargo run --locked --package penstock-e2e -- down

# The scenarios of e2e/tests in that cluster, or in the one that KUBECONFIG names. ONLY="zombie drained" takes those whose
# names contain one of these words. The cluster stays up.
e2e:
	$(if $(KUBECONFIG),,$(MAKE) cluster-up)
	cargo test --locked --package penstock-e2e --test scenarios -- --run $(ONLY)
