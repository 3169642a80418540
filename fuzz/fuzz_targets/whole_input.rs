//! Hands what libFuzzer makes up to [`penstock_fuzz::whole_input`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::whole_input(data));
