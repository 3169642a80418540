//! Puts the job's model into a request body that names none, without touching any other byte.

use crate::json::append;

/// Appends `body` with `"model":<model>` behind its `{`.
///
/// `body` must be a JSON object without a model, as [`parse`](crate::parse) lets it through; what is no object has no
/// place for a model and is appended as it is.
pub fn splice_model(body: &str, model: &str, out: &mut Vec<u8>) {
    let Some(members) = body.strip_prefix('{') else {
        out.extend_from_slice(body.as_bytes());
        return;
    };
    out.reserve(body.len() + model.len() + 16);
    out.extend_from_slice(b"{\"model\":");
    append(model, out);
    if !members.trim_start().starts_with('}') {
        out.push(b',');
    }
    out.extend_from_slice(members.as_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn splice(body: &str, model: &str) -> String {
        let mut out = Vec::new();
        splice_model(body, model, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_model_is_put_first() {
        assert_eq!(splice(r#"{"a":1}"#, "m"), r#"{"model":"m","a":1}"#);
        assert_eq!(splice("{ \"a\" : 1 }", "m"), "{\"model\":\"m\", \"a\" : 1 }");
        assert_eq!(splice("{}", "m"), r#"{"model":"m"}"#);
        assert_eq!(splice("{ \t}", "m"), "{\"model\":\"m\" \t}");
    }

    #[test]
    fn the_name_is_escaped() {
        assert_eq!(splice("{}", "a\"\\\n"), r#"{"model":"a\"\\\n"}"#);
    }

    proptest! {
        #[test]
        fn nothing_else_changes(
            model: String,
            members in prop::collection::vec(("[ \t]{0,2}", "[a-l]{1,3}", "[ ]{0,2}", 0_u32..9), 0..4),
        ) {
            let members: Vec<_> =
                members.iter().map(|(before, name, after, value)| format!("{before}\"{name}\"{after}:{value}")).collect();
            let body = format!("{{{} }}", members.join(","));
            let spliced = splice(&body, &model);
            prop_assert!(spliced.ends_with(&body[1..]));
            let mut value: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&spliced).unwrap();
            prop_assert_eq!(value.remove("model"), Some(model.into()));
            prop_assert_eq!(value, serde_json::from_str(&body).unwrap());
        }
    }
}
