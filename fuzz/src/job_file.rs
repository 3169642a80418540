//! The job file: what is read is what a resumed job reads again, and a key never stands in a message.

use penstock_batchfile::Format;
use penstock_job::{
    CanonicalSpec, Identity, JobSpec,
    spec::{BaseUrl, CanonicalInput, text},
};

use crate::bounded;

/// A job file in YAML or JSON.
pub fn job_file(data: &[u8]) {
    let Ok(text) = str::from_utf8(bounded(data, 4096)) else { return };
    let spec: JobSpec = match text::parse(text) {
        Ok(spec) => spec,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let json = serde_json::to_string(&spec).expect("a spec is JSON");
    assert_eq!(text::parse::<JobSpec>(&json).expect("JSON is YAML"), spec, "{json}");
    for format in [Format::Prompts, Format::OpenAi] {
        let input = CanonicalInput { uri: "/in.jsonl".to_owned(), generation: "1-1".to_owned() };
        if let Ok(canonical) = spec.canonical(input, format) {
            makes_sense(&canonical);
        }
    }
}

/// A canonical spec reads back from where it is stored, as the same job, and its addresses are those of servers.
fn makes_sense(spec: &CanonicalSpec) {
    let json = serde_json::to_string(spec).expect("a spec is JSON");
    let again: CanonicalSpec = serde_json::from_str(&json).expect("what was written reads back");
    assert_eq!(&again, spec);
    assert_eq!(Identity::of(&again), Identity::of(spec));
    for url in spec.provider.base_url.iter().chain(spec.provider.routes.values()) {
        let base_url = BaseUrl::parse(url).expect("a canonical base URL is a base URL");
        assert!(BaseUrl::parse(&base_url.endpoint(spec.endpoint)).is_ok(), "{url}");
    }
}

/// A job file with a key where the place of a key belongs; the bytes surround it.
pub fn job_file_key(data: &[u8]) {
    const KEY: &str = "sk-1f7a";
    let Ok(text) = str::from_utf8(bounded(data, 512)) else { return };
    // Another line could name another field, and only the place of a key is no place for one.
    if text.contains(KEY) || text.contains(['\n', '\r']) {
        return;
    }
    let (before, behind) = text.split_once('|').unwrap_or(("", text));
    let job = format!("provider:\n  api_key: {before}{KEY}{behind}\n");
    if let Err(error) = text::parse::<JobSpec>(&job) {
        let message = error.to_string();
        assert!(!message.contains(KEY), "{job}{message}");
    }
}
