//! Hands what libFuzzer makes up to [`penstock_fuzz::ordinal_set`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::ordinal_set(data));
