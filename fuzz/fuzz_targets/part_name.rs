//! Hands what libFuzzer makes up to [`penstock_fuzz::part_name`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::part_name(data));
