//! How fast a job sends its requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds::{ModelBounds, RateBounds};

/// How fast requests are sent. The Provider's limits hold beside these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// How the rate is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RateMode>,
    /// Upper bounds of the whole job.
    #[serde(flatten)]
    pub bounds: RateBounds,
    /// Upper bounds of single models, within those of the job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["model"]))]
    pub per_model: Vec<ModelBounds>,
}

/// How the request rate is found: `Adaptive` finds the provider's limit from its answers, `Fixed` takes the bounds and
/// nothing else, `AIMD` increases and decreases with care. By default `Adaptive`, and `Fixed` with a simulated Provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RateMode {
    /// From the provider's answers: its limit is found, stated or not.
    Adaptive,
    /// The bounds and nothing else.
    Fixed,
    /// Careful increase and decrease.
    #[serde(rename = "AIMD")]
    Aimd,
}
