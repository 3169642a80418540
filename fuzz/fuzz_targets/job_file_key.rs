//! Hands what libFuzzer makes up to [`penstock_fuzz::job_file_key`].

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| penstock_fuzz::job_file_key(data));
