//! The schemas that several fields share. Every one is bounded: the API server refuses rules over what is not.

use schemars::{Schema, SchemaGenerator, json_schema};

use penstock_job::money;

/// An object or a path in a bucket. That it is well formed is a rule, for the sake of its message.
pub(crate) fn object_uri(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 1024 })
}

/// A base URL. That it is well formed is a rule, for the sake of its message.
pub(crate) fn base_url(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 1024 })
}

/// The name of an object of Kubernetes.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "minLength": 1, "maxLength": 253,
        "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
    })
}

/// The key of a value in a Secret or a ConfigMap.
pub(crate) fn data_key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[-._a-zA-Z0-9]+$" })
}

/// Money or a price, without a sign: at most nine digits before and six after the point.
pub(crate) fn money(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 16, "pattern": money::PATTERN })
}

/// A parameter of sampling, as decimal text.
pub(crate) fn fraction(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 8, "pattern": "^[0-9](\\.[0-9]{1,6})?$" })
}

/// Fields of a request's body, as JSON text.
pub(crate) fn body_fields(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 32,
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 16384 }
    })
}

/// Labels of Kubernetes.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 63 }
    })
}

/// Annotations of Kubernetes.
pub(crate) fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 4096 }
    })
}

/// A point in time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// Conditions as in `meta/v1`, with the bounds that its Go type has and without its pages of text.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 16,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": time(generator),
                "message": { "type": "string", "maxLength": 32768 },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "reason": {
                    "type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
                },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "type": { "type": "string", "minLength": 1, "maxLength": 316 }
            }
        }
    })
}
