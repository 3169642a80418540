//! The chart's values: what `values.yaml` says of each against the schema, and against the table in its README, which
//! `UPDATE_CHART=1` writes anew.

use serde_json::Value;

const VALUES: &str = "charts/penstock/values.yaml";
const README: &str = "charts/penstock/README.md";

/// One value of the chart.
struct Setting {
    path: String,
    default: Value,
    meaning: String,
}

/// Every value that has a comment of its own, with what the comment says. Groups have none, their members do.
fn settings() -> Vec<Setting> {
    let text = crate::read(VALUES);
    let values: Value = serde_saphyr::from_str(&text).expect("the values are YAML");
    let (mut settings, mut groups, mut comment) = (Vec::new(), Vec::<(usize, String)>::new(), Vec::new());
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        match line.trim() {
            "" => comment.clear(),
            said if said.starts_with('#') => comment.push(said.trim_start_matches(['#', ' ']).to_owned()),
            entry => {
                let (key, _) = entry.split_once(':').expect("a line of values.yaml is a key");
                groups.retain(|(outer, _)| *outer < indent);
                groups.push((indent, key.to_owned()));
                if !comment.is_empty() {
                    let keys: Vec<_> = groups.iter().map(|(_, key)| key.as_str()).collect();
                    let default = values.pointer(&format!("/{}", keys.join("/")));
                    let default = default.expect("a key of values.yaml").clone();
                    settings.push(Setting { path: keys.join("."), default, meaning: comment.join(" ") });
                    comment.clear();
                }
            }
        }
    }
    settings
}

/// The values that a schema describes: those without members of their own.
fn described(path: &str, schema: &Value, found: &mut Vec<String>) {
    match schema["properties"].as_object() {
        Some(members) => {
            assert_eq!(
                schema["additionalProperties"], false,
                "{path}: a value that is misspelt must be refused"
            );
            for (name, member) in members {
                described(
                    &if path.is_empty() { name.clone() } else { format!("{path}.{name}") },
                    member,
                    found,
                );
            }
        }
        None => found.push(path.to_owned()),
    }
}

#[test]
fn the_schema_of_the_chart_describes_exactly_its_values() {
    let schema: Value =
        serde_json::from_str(&crate::read("charts/penstock/values.schema.json")).expect("JSON");
    let mut described_values = Vec::new();
    described("", &schema, &mut described_values);
    // What Helm and a chart above this one set.
    described_values.retain(|path| path != "global" && path != "enabled");
    // The amounts of the operator itself have one comment for both.
    let mut values: Vec<_> = settings().into_iter().map(|setting| setting.path).collect();
    let resources = values.iter().position(|path| path == "resources").expect("the operator has resources");
    values.splice(resources..=resources, ["resources.limits", "resources.requests"].map(str::to_owned));
    values.sort();
    assert_eq!(described_values, values);
}

#[test]
fn the_readme_of_the_chart_has_a_row_for_each_value() {
    let committed = crate::read(README);
    let (before, rest) = committed.split_once("<!-- begin values -->\n").expect("the table begins");
    let (_, after) = rest.split_once("<!-- end -->").expect("the table ends");
    let rows = settings().into_iter().map(|Setting { path, default, meaning }| {
        format!("| `{path}` | `{default}` | {} |\n", meaning.replace('|', "\\|"))
    });
    let table: String = rows.collect();
    let expected = format!(
        "{before}<!-- begin values -->\n| value | by default | meaning |\n|---|---|---|\n{table}<!-- end -->{after}"
    );
    if std::env::var_os("UPDATE_CHART").is_some() {
        std::fs::write(crate::root().join(README), &expected).expect("the README can be written");
    }
    assert_eq!(crate::read(README), expected, "{README} is out of date: set UPDATE_CHART=1 and run again");
}
