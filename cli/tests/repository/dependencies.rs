//! What may be in the dependency tree: one TLS provider, permissive licences, crates.io, and no runtime in pure rooms.

use std::process::Command;

use cargo_metadata::Package;
use spdx::{Expression, Licensee, ParseMode};

use crate::{graph::GRAPH, manifests::Deny};

/// The rooms that do no I/O: their tests need no runtime, no clock and no network.
const PURE: [&str; 4] = ["penstock-batchfile", "penstock-crds", "penstock-job", "penstock-rate"];

/// What a pure room must not lead to.
const IMPURE: [&str; 4] = ["tokio", "mio", "hyper", "reqwest"];

fn names<'a>(packages: &[&'a Package]) -> Vec<&'a str> {
    packages.iter().map(|package| package.name.as_str()).collect()
}

#[test]
fn there_is_one_tls_provider() {
    let banned = Deny::read().bans.deny;
    for name in ["ring", "openssl-sys", "native-tls"] {
        assert!(banned.iter().any(|entry| entry.name == name), "deny.toml must ban {name}");
    }
    let everything = names(&GRAPH.everything());
    let found: Vec<_> =
        everything.iter().filter(|name| banned.iter().any(|entry| entry.name == **name)).collect();
    assert!(found.is_empty(), "deny.toml bans {found:?}");
    assert!(everything.contains(&"aws-lc-rs"), "the TLS provider itself is missing");
}

#[test]
fn every_licence_is_allowed_by_deny_toml() {
    let allow = Deny::read().licenses.allow;
    let allowed: Vec<_> =
        allow.iter().map(|name| Licensee::parse(name).expect("an SPDX identifier")).collect();
    for package in GRAPH.everything() {
        let text = package.license.as_deref().unwrap_or_default();
        // Older crates write `MIT/Apache-2.0` where SPDX wants OR.
        let licence = Expression::parse_mode(text, ParseMode::LAX);
        let licence = licence.unwrap_or_else(|error| panic!("{}: licence `{text}`: {error}", package.name));
        let accepted =
            licence.evaluate(|required| allowed.iter().any(|licensee| licensee.satisfies(required)));
        assert!(accepted, "{}: licence `{text}` is not allowed by deny.toml", package.name);
    }
}

#[test]
fn every_source_is_crates_io_or_this_repository() {
    for package in GRAPH.everything() {
        let allowed = match &package.source {
            Some(source) => source.is_crates_io(),
            None => package.manifest_path.starts_with(crate::root()),
        };
        assert!(allowed, "{} comes from {:?}", package.name, package.source);
    }
}

/// What a crate leads to when it is built by itself: in the whole workspace, other crates turn on features of what it uses.
fn built_alone(name: &str) -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", name, "--edges", "normal", "--prefix", "none"])
        .current_dir(crate::root())
        .output()
        .expect("cargo is there");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).expect("names are text");
    text.lines().filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn pure_rooms_lead_to_no_runtime_and_no_network() {
    for name in PURE {
        let mut found = built_alone(name);
        assert!(found.iter().any(|found| found == name), "{name} is no member of the workspace");
        found.retain(|name| IMPURE.contains(&name.as_str()));
        assert!(found.is_empty(), "{name} leads to {found:?}");
    }
}
