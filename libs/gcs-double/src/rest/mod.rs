//! The JSON API over HTTP: which request is which operation, and how it is answered.

mod content_range;
mod download;
mod error;
mod multipart;
mod query;
mod resource;
mod route;
mod signed;
mod upload;
mod write;

use std::{num::NonZeroUsize, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use self::resource::object as object_resource;
use self::{query::Query, route::Route};
use crate::{
    body::{self, Body},
    bucket::{Composition, ListRequest, Refusal, Source},
    name::{BucketName, ObjectName},
    service::Service,
    visit::{Dropped, Stop, Visit},
};

/// The most bytes of a body that is not content.
const LARGEST_JSON: usize = 4 << 20;

/// One request with its body.
struct Exchange {
    visit: Arc<Visit>,
    query: Query,
    parts: Parts,
    body: Incoming,
}

/// Answers one request.
pub(crate) async fn answer(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Dropped> {
    let (mut parts, body) = request.into_parts();
    if let Err(refusal) = signed::as_json_request(&mut parts, SystemTime::now()) {
        return Ok(error::response(&refusal, true));
    }
    let query = Query::read(parts.uri.query().unwrap_or_default());
    let media = query.get("alt") == Some("media");
    let route = match Route::of(&parts.method, parts.uri.path(), &query) {
        Ok(route) => route,
        Err(refusal) => return Ok(error::response(&refusal, media)),
    };
    let visit = match Visit::arrive(service, route.call(&query)).await {
        Ok(visit) => visit,
        Err(Stop::Dropped) => return Err(Dropped),
        Err(Stop::Refused(refusal)) => return Ok(error::response(&refusal, media)),
    };
    let exchange = Exchange { visit: Arc::clone(&visit), query, parts, body };
    let response = match exchange.carry_out(route).await {
        Ok(response) => response,
        Err(Stop::Refused(refusal)) => error::response(&refusal, media),
        Err(Stop::Dropped) => return Err(Dropped),
    };
    visit.answered(response.status().as_u16());
    Ok(response)
}

impl Exchange {
    async fn carry_out(self, route: Route) -> Result<Response<Body>, Stop> {
        match route {
            Route::CreateBucket => self.create_bucket().await,
            Route::Buckets => self.buckets().await,
            Route::Bucket(bucket) => self.bucket(bucket).await,
            Route::List(bucket) => self.list(bucket).await,
            Route::Read(bucket, name) => self.download(&bucket, &name).await,
            Route::Get(bucket, name) => self.get(bucket, name).await,
            Route::Update(bucket, name) => self.update(bucket, name).await,
            Route::Delete(bucket, name) => self.delete(bucket, name).await,
            Route::Compose(bucket, name) => self.compose(bucket, name).await,
            Route::Write(bucket, kind) => self.write(bucket, kind).await,
            Route::StartUpload(bucket) => self.start_upload(bucket).await,
            Route::UploadChunk(_, id) => self.upload_chunk(&id).await,
            Route::CancelUpload(_, id) => self.cancel_upload(&id).await,
        }
    }

    async fn create_bucket(self) -> Result<Response<Body>, Stop> {
        let resource: resource::BucketBody = json_body(self.body).await?;
        let name = BucketName::parse(&resource.name).map_err(Refusal::from)?;
        let value = self
            .visit
            .change(|buckets, now| {
                let bucket = buckets.create(name.clone(), now)?;
                Ok(resource::bucket(&name, bucket))
            })
            .await?;
        Ok(json(&value))
    }

    async fn buckets(self) -> Result<Response<Body>, Stop> {
        let items = self
            .visit
            .read(|buckets| {
                Ok(buckets.iter().map(|(name, bucket)| resource::bucket(name, bucket)).collect::<Vec<_>>())
            })
            .await?;
        Ok(json(&serde_json::json!({ "kind": "storage#buckets", "items": items })))
    }

    async fn bucket(self, bucket: BucketName) -> Result<Response<Body>, Stop> {
        let value =
            self.visit.read(|buckets| Ok(resource::bucket(&bucket, buckets.bucket(&bucket)?))).await?;
        Ok(json(&value))
    }

    async fn list(self, bucket: BucketName) -> Result<Response<Body>, Stop> {
        let query = &self.query;
        let largest = self.visit.service.settings.largest_page;
        let page_size =
            query.number("maxResults")?.map_or(largest, |asked: NonZeroUsize| asked.get().min(largest));
        let text = |name| query.get(name).map(str::to_owned);
        let request = ListRequest {
            prefix: text("prefix").unwrap_or_default(),
            delimiter: text("delimiter"),
            include_trailing_delimiter: query.get("includeTrailingDelimiter") == Some("true"),
            start: text("startOffset").unwrap_or_default(),
            end: text("endOffset"),
            token: text("pageToken"),
            page_size,
        };
        let page = self.visit.read(|buckets| buckets.list(&bucket, &request)).await?;
        Ok(json(&resource::page(&bucket, &page)))
    }

    async fn get(self, bucket: BucketName, name: ObjectName) -> Result<Response<Body>, Stop> {
        let (generation, preconditions) = (self.query.generation()?, self.query.preconditions()?);
        let object =
            self.visit.read(|buckets| buckets.get(&bucket, &name, generation, &preconditions)).await?;
        Ok(json(&resource::object(&bucket, &object)))
    }

    async fn update(self, bucket: BucketName, name: ObjectName) -> Result<Response<Body>, Stop> {
        let (generation, preconditions) = (self.query.generation()?, self.query.preconditions()?);
        let patch: resource::PatchBody = json_body(self.body).await?;
        let change = patch.change()?;
        let object = self
            .visit
            .change(|buckets, now| buckets.patch(&bucket, &name, generation, change, &preconditions, now))
            .await?;
        Ok(json(&resource::object(&bucket, &object)))
    }

    async fn delete(self, bucket: BucketName, name: ObjectName) -> Result<Response<Body>, Stop> {
        let (generation, preconditions) = (self.query.generation()?, self.query.preconditions()?);
        self.visit
            .change(|buckets, now| buckets.delete(&bucket, &name, generation, &preconditions, now))
            .await?;
        let mut response = Response::new(body::whole(Bytes::new()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    }

    async fn compose(self, bucket: BucketName, name: ObjectName) -> Result<Response<Body>, Stop> {
        let preconditions = self.query.preconditions()?;
        let request: resource::ComposeBody = json_body(self.body).await?;
        let sources = request.source_objects.into_iter().map(resource::SourceBody::read);
        let sources = sources.collect::<Result<Vec<Source>, Refusal>>()?;
        let expected = request.destination.expected()?;
        let composition = Composition { sources, metadata: request.destination.metadata(), expected };
        let object = self
            .visit
            .change(|buckets, now| buckets.compose(&bucket, &name, composition, &preconditions, now))
            .await?;
        Ok(json(&resource::object(&bucket, &object)))
    }
}

/// Reads a body that is JSON.
async fn json_body<T: DeserializeOwned>(body: Incoming) -> Result<T, Stop> {
    let collected = Limited::new(body, LARGEST_JSON).collect().await.map_err(|_| Stop::Dropped)?;
    let bytes = collected.to_bytes();
    let read = serde_json::from_slice(if bytes.is_empty() { b"{}" } else { &bytes });
    Ok(read.map_err(|error| Refusal::invalid(format!("the body is not what it should be: {error}")))?)
}

/// An answer in JSON.
fn json(value: &Value) -> Response<Body> {
    let mut response = Response::new(body::whole(value.to_string()));
    let content_type = http::HeaderValue::from_static("application/json; charset=UTF-8");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
