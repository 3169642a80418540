//! Puts the job's model into a request body that names none, without touching any other byte.

use serde_json::value::RawValue;

use crate::json::append;

/// Appends `body` with `"model":<model>` behind its `{`.
///
/// `body` must be a JSON object without a model, as [`parse`](crate::parse) lets it through; what is no object has no
/// place for a model and is appended as it is.
pub fn splice_model(body: &RawValue, model: &str, out: &mut Vec<u8>) {
    let Some(members) = body.get().strip_prefix('{') else {
        out.extend_from_slice(body.get().as_bytes());
        return;
    };
    out.reserve(body.get().len() + model.len() + 16);
    out.extend_from_slice(b"{\"model\":");
    append(model, out);
    if !members.trim_start().starts_with('}') {
        out.push(b',');
    }
    out.extend_from_slice(members.as_bytes());
}
