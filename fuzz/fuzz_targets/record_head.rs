//! Hands what libFuzzer makes up to [`penstock_fuzz::record_head`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::record_head(data));
