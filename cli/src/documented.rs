//! Holds `docs/cli.md` against the code: its tables must have the fields, flags and commands that there are.

use std::collections::BTreeSet;

use serde_json::Value;

/// The page.
const PAGE: &str = include_str!("../../docs/cli.md");

/// What a reader sees of a cell.
fn plain(cell: &str) -> String {
    cell.trim().replace('`', "")
}

/// The headings of this level below another one, as plain text.
pub(crate) fn headings(level: &str, below: &str) -> Vec<String> {
    let start = format!("{level} ");
    let above = &level[1..];
    PAGE.lines()
        .skip_while(|line| plain(line) != format!("{above} {below}"))
        .skip(1)
        .take_while(|line| !line.starts_with(&format!("{above} ")))
        .filter_map(|line| line.strip_prefix(&start).map(plain))
        .collect()
}

/// The rows of the first table below a heading, without their header.
pub(crate) fn table(heading: &str) -> Vec<Vec<String>> {
    let is_heading = |line: &str| plain(line.trim_start_matches('#')) == heading && line.starts_with('#');
    let mut below = PAGE.lines().skip_while(|line| !is_heading(line)).skip(1);
    let table: Vec<_> = below
        .by_ref()
        .take_while(|line| !line.starts_with('#'))
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(plain).collect())
        .collect();
    assert!(!table.is_empty(), "docs/cli.md has no table below `{heading}`");
    table
}

/// Whether the table below a heading names exactly the fields of these objects, with the types that they have there.
pub(crate) fn check_fields(heading: &str, samples: &[Value]) {
    let objects: Vec<_> = samples.iter().map(|sample| sample.as_object().unwrap()).collect();
    let names: BTreeSet<_> = objects.iter().flat_map(|object| object.keys()).collect();
    let real: BTreeSet<_> = names
        .into_iter()
        .filter(|name| *name != "event")
        .map(|name| (name.clone(), kind(objects.iter().map(|object| &object[name]))))
        .collect();
    let told: BTreeSet<_> =
        table(heading).into_iter().map(|row| (row[0].clone(), ordered(&row[1]))).collect();
    assert_eq!(told, real, "docs/cli.md, `{heading}`: left is the page, right the code");
}

/// The type of a field by the values that it takes.
fn kind<'a>(values: impl Iterator<Item = &'a Value>) -> String {
    let (nulls, values): (Vec<_>, Vec<_>) = values.partition(|value| value.is_null());
    // An array may be empty, so the items of all of them tell.
    if nulls.is_empty() && !values.is_empty() && values.iter().all(|value| value.is_array()) {
        return format!("array of {}s", kind(values.into_iter().filter_map(Value::as_array).flatten()));
    }
    let kinds: BTreeSet<_> = values.into_iter().map(kind_of).collect();
    assert_eq!(kinds.len(), 1, "a field has one type, and one sample at least shows it: {kinds:?}");
    let kind = kinds.into_iter().collect::<String>();
    if nulls.is_empty() { kind } else { format!("{kind} or null") }
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => unreachable!("nulls were taken out"),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(number) if number.is_f64() => "number".to_owned(),
        Value::Number(_) => "integer".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => kind(std::iter::once(value)),
        Value::Object(fields) => {
            ordered(&format!("{{{}}}", fields.keys().cloned().collect::<Vec<_>>().join(", ")))
        }
    }
}

/// The same type with the fields of an object in alphabetical order.
fn ordered(kind: &str) -> String {
    let Some((fields, rest)) = kind.strip_prefix('{').and_then(|kind| kind.split_once('}')) else {
        return kind.to_owned();
    };
    let mut fields: Vec<_> = fields.split(", ").collect();
    fields.sort_unstable();
    format!("{{{}}}{rest}", fields.join(", "))
}
