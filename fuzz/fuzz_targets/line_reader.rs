//! Hands what libFuzzer makes up to [`penstock_fuzz::line_reader`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::line_reader(data));
