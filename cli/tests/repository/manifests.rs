//! The manifests of the workspace and `deny.toml`, and the test that each dependency is declared once.

use serde::Deserialize;
use toml::{Table, Value};

use crate::graph::GRAPH;

/// The part of `deny.toml` that the tests apply themselves.
#[derive(Deserialize)]
pub(crate) struct Deny {
    pub(crate) graph: DenyGraph,
    pub(crate) licenses: DenyLicenses,
    pub(crate) bans: DenyBans,
}

#[derive(Deserialize)]
pub(crate) struct DenyGraph {
    pub(crate) targets: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct DenyLicenses {
    pub(crate) allow: Vec<String>,
}

#[derive(Deserialize)]
pub(crate) struct DenyBans {
    pub(crate) deny: Vec<DenyCrate>,
}

#[derive(Deserialize)]
pub(crate) struct DenyCrate {
    #[serde(rename = "crate")]
    pub(crate) name: String,
}

impl Deny {
    pub(crate) fn read() -> Self {
        toml::from_str(&crate::read("deny.toml")).expect("deny.toml has the sections that the tests apply")
    }
}

/// Where a manifest can name dependencies, besides the same under `target.<platform>`.
const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// What a member takes from the root manifest instead of writing it itself.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

fn parse(text: &str) -> Table {
    text.parse().expect("cargo has read this manifest")
}

fn inherits(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

/// Every dependency of a manifest with the table that declares it.
fn declared(manifest: &Table) -> Vec<(&String, &Value)> {
    let platforms =
        manifest.get("target").and_then(Value::as_table).into_iter().flatten().map(|(_, value)| value);
    let tables = platforms.filter_map(Value::as_table).chain([manifest]);
    let sections = tables.flat_map(|table| SECTIONS.map(|section| table.get(section)));
    sections.flatten().filter_map(Value::as_table).flatten().collect()
}

#[test]
fn each_dependency_is_declared_once_in_the_root_and_used_by_a_member() {
    let root = parse(&crate::read("Cargo.toml"));
    let table = root["workspace"]["dependencies"].as_table().unwrap();
    let mut unused: Vec<_> = table.keys().collect();
    for member in GRAPH.members() {
        let manifest = parse(&crate::read(&member.manifest_path));
        for (name, value) in declared(&manifest) {
            let own = value
                .as_table()
                .map(|table| table.keys().any(|key| matches!(key.as_str(), "version" | "path" | "git")));
            assert!(
                inherits(Some(value)) && own == Some(false),
                "{}: write `{name} = {{ workspace = true }}`",
                member.name
            );
            unused.retain(|declared| *declared != name);
        }
    }
    assert!(unused.is_empty(), "no member uses these lines of [workspace.dependencies]: {unused:?}");
    let mut packages: Vec<_> = table
        .iter()
        .map(|(name, value)| value.get("package").and_then(Value::as_str).unwrap_or(name))
        .collect();
    packages.sort_unstable();
    assert!(
        packages.is_sorted_by(|left, right| left < right),
        "a package stands there under two names: {packages:?}"
    );
}

#[test]
fn each_member_inherits_the_lints_and_the_facts_of_its_package() {
    for member in GRAPH.members() {
        let manifest = parse(&crate::read(&member.manifest_path));
        assert!(inherits(manifest.get("lints")), "{}: write `[lints] workspace = true`", member.name);
        for key in INHERITED {
            assert!(
                inherits(manifest["package"].get(key)),
                "{}: write `{key}.workspace = true`",
                member.name
            );
        }
    }
}
