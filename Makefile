# Everything a contributor runs. Cargo installs the toolchain of rust-toolchain.toml by itself where rustup is there.

.PHONY: test format lint docs unit schemas run

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

# Writes the JSON Schema files anew after a change of the job file or of a stored document.
schemas:
	UPDATE_SCHEMAS=1 cargo test --package penstock-job --locked schema

# The main job: the example against the simulated provider.
run:
	cargo run --release --locked --bin penstock -- run examples/support-tickets.jsonl --provider simulated --output out/
