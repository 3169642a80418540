//! Hands what libFuzzer makes up to [`penstock_fuzz::provider_answer`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::provider_answer(data));
