//! Hands what libFuzzer makes up to [`penstock_fuzz::state`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::state(data));
