//! Further fields of each request's body, from text to JSON.

use serde_json::{Map, Number, Value};

use super::ResolveError;
use crate::batch_job::Parameters;

/// The section `parameters` of the job file.
pub(super) fn body(parameters: &Parameters) -> Result<Map<String, Value>, ResolveError> {
    let mut body = Map::new();
    for (field, text) in &parameters.body {
        let value = serde_json::from_str(text).map_err(|error| ResolveError::Body {
            field: field.clone(),
            detail: format!("it is not JSON ({error})"),
        })?;
        body.insert(field.clone(), value);
    }
    let fractions =
        [("temperature", "temperature", &parameters.temperature), ("topP", "top_p", &parameters.top_p)];
    for (field, name, text) in fractions {
        let Some(text) = text else { continue };
        let number: Number =
            serde_json::from_str(text).map_err(|_| ResolveError::Fraction { field, text: text.clone() })?;
        if body.insert(name.to_owned(), Value::Number(number)).is_some() {
            return Err(ResolveError::Twice(field));
        }
    }
    Ok(body)
}
