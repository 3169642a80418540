//! A double of the API server behind the client's own interface, for tests: it keeps objects with resource versions as the
//! real one does, says of tokens what it is told to, counts what it is asked, and is silent to whom it is told to be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::{Bytes, to_bytes},
    extract::{Request, State},
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use kube::Client;
use serde_json::{Value, json};

/// Where reviews of tokens are asked for.
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// The double; its clones are one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiDouble(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    objects: BTreeMap<String, Value>,
    version: u64,
    tokens: BTreeMap<String, Value>,
    asked: Vec<String>,
    unheard: BTreeSet<&'static str>,
    refusing: Option<StatusCode>,
}

impl ApiDouble {
    /// A client of it. What is asked is told apart by `caller`.
    pub(crate) fn client(&self, caller: &'static str) -> Client {
        let double = self.clone();
        let answer =
            async move |State(double): State<Self>, request: Request| double.answer(caller, request).await;
        Client::new(Router::new().fallback(answer).with_state(double), "team")
    }

    /// Keeps an object at this path.
    pub(crate) fn put(&self, path: &str, object: Value) {
        self.kept().store(path, object);
    }

    /// The object at this path.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.kept().objects.get(path).cloned()
    }

    /// Says this of a token.
    pub(crate) fn know(&self, token: &str, review: Value) {
        self.kept().tokens.insert(token.to_owned(), review);
    }

    /// Answers this caller nothing any more.
    pub(crate) fn silence(&self, caller: &'static str) {
        self.kept().unheard.insert(caller);
    }

    /// Answers everybody with this status, or as asked again.
    pub(crate) fn refuse(&self, status: impl Into<Option<StatusCode>>) {
        self.kept().refusing = status.into();
    }

    /// What was asked so far, as in `one POST /path`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.kept().asked.clone()
    }

    async fn answer(self, caller: &'static str, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let path = head.uri.path();
        let refusing = {
            let mut kept = self.kept();
            kept.asked.push(format!("{caller} {} {path}", head.method));
            if kept.unheard.contains(caller) { None } else { Some(kept.refusing) }
        };
        match refusing {
            None => std::future::pending().await,
            Some(Some(status)) => refusal(status),
            Some(None) => self.kept().do_as_asked(&head.method, path, &body),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn do_as_asked(&mut self, method: &Method, path: &str, body: &Bytes) -> Response {
        let said: Value = serde_json::from_slice(body).unwrap_or_default();
        if path == REVIEWS {
            let token = said["spec"]["token"].as_str().and_then(|token| self.tokens.get(token));
            let is_meant = |status: &&Value| {
                let good_for = status["audiences"].as_array();
                good_for.is_none_or(|good_for| {
                    good_for.iter().any(|one| said["spec"]["audiences"].as_array().unwrap().contains(one))
                })
            };
            let refused = json!({"authenticated": false, "error": "the token is not for this audience"});
            let mut review = said.clone();
            review["status"] = token.filter(is_meant).cloned().unwrap_or(refused);
            return answered(StatusCode::CREATED, &review);
        }
        let there = self.objects.get(path).cloned();
        match (method, there) {
            (&Method::POST, _) => {
                let path = format!("{path}/{}", said["metadata"]["name"].as_str().unwrap_or_default());
                if self.objects.contains_key(&path) {
                    return refusal(StatusCode::CONFLICT);
                }
                answered(StatusCode::CREATED, &self.store(&path, said))
            }
            (&Method::GET, Some(there)) => answered(StatusCode::OK, &there),
            (&Method::GET, None) if self.objects.keys().any(|key| is_in(key, path)) => {
                let is_listed = |(key, _): &(&String, &Value)| is_in(key, path);
                let items: Vec<_> = self.objects.iter().filter(is_listed).map(|(_, object)| object).collect();
                answered(StatusCode::OK, &json!({"metadata": {}, "items": items}))
            }
            (&Method::PUT, Some(there)) => {
                if said["metadata"]["resourceVersion"] != there["metadata"]["resourceVersion"] {
                    return refusal(StatusCode::CONFLICT);
                }
                answered(StatusCode::OK, &self.store(path, said))
            }
            (&Method::PATCH, Some(mut there)) => {
                merge(&mut there, &said);
                answered(StatusCode::OK, &self.store(path, there))
            }
            _ => refusal(StatusCode::NOT_FOUND),
        }
    }

    fn store(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(path.to_owned(), object.clone());
        object
    }
}

/// Whether the object at `key` is of the collection at `path`.
fn is_in(key: &str, path: &str) -> bool {
    key.rsplit_once('/').is_some_and(|(collection, _)| collection == path)
}

/// A merge patch, as RFC 7386 says.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *object = patch.clone();
        return;
    };
    for (name, value) in fields {
        if value.is_null() {
            if let Some(object) = object.as_object_mut() {
                object.remove(name);
            }
        } else {
            merge(&mut object[name.as_str()], value);
        }
    }
}

fn refusal(status: StatusCode) -> Response {
    // Clients go by this word, not by the code.
    let reason = match status {
        StatusCode::NOT_FOUND => "NotFound",
        StatusCode::CONFLICT => "Conflict",
        _ => "InternalError",
    };
    let said = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status.as_u16(),
        "reason": reason, "message": "refused by the double",
    });
    answered(status, &said)
}

fn answered(status: StatusCode, object: &Value) -> Response {
    (status, object.to_string()).into_response()
}
