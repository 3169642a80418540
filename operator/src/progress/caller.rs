//! Who calls: a pod, by the projected token that its kubelet gave it for this one job.
//!
//! The API server checks the token (`TokenReview`) and names the pod. What it said is kept for a while, so that a job that
//! reports every ten seconds does not cost a review each time.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::call::{CallError, bounded};

/// How long a review holds. A token of a pod that was deleted is believed no longer than this.
const REVIEW_HOLDS: Duration = Duration::from_mins(2);
/// Reviews kept at once; the oldest go first.
const REVIEWS: usize = 4_096;
/// Where a bound token carries the uid of its pod.
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// What was said of tokens, by their hash, and when.
type Reviewed = HashMap<[u8; 32], (Instant, Option<String>)>;

/// Checks tokens.
#[derive(Debug)]
pub struct Reviewer {
    api: Api<TokenReview>,
    reviewed: Mutex<Reviewed>,
}

impl Reviewer {
    /// Asks the API server behind `client`.
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client), reviewed: Mutex::default() }
    }

    /// The uid of the pod that holds `token`, if the token is good for `audience`.
    pub async fn pod(&self, token: &str, audience: &str) -> Result<Option<String>, CallError> {
        let key = key(token, audience);
        let now = Instant::now();
        if let Some((at, pod)) = self.reviewed().get(&key)
            && now.duration_since(*at) < REVIEW_HOLDS
        {
            return Ok(pod.clone());
        }
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: Some(vec![audience.to_owned()]),
            },
            ..TokenReview::default()
        };
        let answer = bounded(self.api.create(&PostParams::default(), &review)).await?;
        let pod = answer.status.and_then(|status| pod_of(status, audience));
        let mut reviewed = self.reviewed();
        if reviewed.len() >= REVIEWS {
            reviewed.retain(|_, (at, _)| now.duration_since(*at) < REVIEW_HOLDS / 2);
        }
        if reviewed.len() < REVIEWS {
            reviewed.insert(key, (now, pod.clone()));
        }
        Ok(pod)
    }

    fn reviewed(&self) -> MutexGuard<'_, Reviewed> {
        // Nothing panics while it holds this lock.
        self.reviewed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pod that a review names.
fn pod_of(status: TokenReviewStatus, audience: &str) -> Option<String> {
    let is_meant = status.audiences.unwrap_or_default().iter().any(|named| named == audience);
    if !status.authenticated.unwrap_or_default() || !is_meant {
        return None;
    }
    status.user?.extra?.remove(POD_UID)?.pop()
}

/// Tokens themselves are not kept.
fn key(token: &str, audience: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(audience);
    hash.update([0]);
    hash.update(token);
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(status: Value) -> Option<String> {
        pod_of(serde_json::from_value(status).unwrap(), "ours")
    }

    #[test]
    fn only_a_token_for_this_audience_that_is_bound_to_a_pod_counts() {
        let user = json!({"username": "system:serviceaccount:a:b", "extra": {(POD_UID): ["uid-1"]}});
        let good = json!({"authenticated": true, "audiences": ["ours"], "user": user});
        assert_eq!(pod(good.clone()).as_deref(), Some("uid-1"));
        for (field, value) in [
            ("authenticated", json!(false)),
            ("audiences", json!(["theirs"])),
            ("audiences", json!(null)),
            ("user", json!({"username": "someone"})),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            assert_eq!(pod(bad.clone()), None, "{bad}");
        }
    }

    #[test]
    fn a_review_for_one_audience_says_nothing_of_another() {
        assert_ne!(key("token", "a"), key("token", "b"));
        assert_ne!(key("a", "b"), key("b", "a"));
    }
}
