//! Hands what libFuzzer makes up to [`penstock_fuzz::validation`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::validation(data));
