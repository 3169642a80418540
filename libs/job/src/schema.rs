//! JSON Schema of the documents and the job file. The files under `schemas/` are generated from here; a test fails when
//! they differ, and `UPDATE_SCHEMAS=1 cargo test -p penstock-job schema` writes them anew.

use schemars::{Schema, schema_for};

use crate::{
    directives::Directives, last_word::LastWord, receipt::Receipt, report::Report, spec::JobSpec,
    state::State, validation::Validation,
};

/// Every schema with the name of its file.
pub fn all() -> [(&'static str, Schema); 7] {
    [
        ("job.schema.json", schema_for!(JobSpec)),
        ("validation.schema.json", schema_for!(Validation)),
        ("state.schema.json", schema_for!(State)),
        ("receipt.schema.json", schema_for!(Receipt)),
        ("report.schema.json", schema_for!(Report)),
        ("directives.schema.json", schema_for!(Directives)),
        ("last-word.schema.json", schema_for!(LastWord)),
    ]
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    #[test]
    fn the_committed_schemas_are_those_of_the_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, schema) in super::all() {
            let path = folder.join(name);
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            if std::env::var_os("UPDATE_SCHEMAS").is_some() {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, &text).unwrap();
            }
            let committed = fs::read_to_string(&path).unwrap_or_default();
            assert_eq!(
                committed,
                text,
                "{} is out of date: set UPDATE_SCHEMAS=1 and run again",
                path.display()
            );
        }
    }
}
