//! The gRPC API: the calls of `google.storage.v2.Storage` that clients use to look after objects.

mod call;
mod message;
mod status;

use std::sync::Arc;

use googleapis_tonic_google_storage_v2::google::storage::v2 as proto;
use http::{Request, Response};
use hyper::body::Incoming;
use tonic::Status;

use self::{
    call::{Method, unary},
    message::bucket_name,
};
use crate::{
    body::Body,
    bucket::{Composition, Generation, ListRequest, Preconditions, Refusal, Source},
    name::{BucketName, ObjectName},
    operation::Operation,
    service::Service,
    visit::{Dropped, Stop, Visit},
};

/// Answers one call.
pub(crate) async fn answer(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Dropped> {
    let path = request.uri().path().to_owned();
    match path.strip_prefix("/google.storage.v2.Storage/") {
        Some("GetObject") => unary::<GetObject>(service, request).await,
        Some("ListObjects") => unary::<ListObjects>(service, request).await,
        Some("DeleteObject") => unary::<DeleteObject>(service, request).await,
        Some("ComposeObject") => unary::<ComposeObject>(service, request).await,
        Some("UpdateObject") => unary::<UpdateObject>(service, request).await,
        Some("GetBucket") => unary::<GetBucket>(service, request).await,
        Some("CreateBucket") => unary::<CreateBucket>(service, request).await,
        _ => {
            let status = Status::unimplemented(format!("{path} is not served by this double."));
            Ok(status.into_http())
        }
    }
}

struct GetObject;

impl Method for GetObject {
    type Request = proto::GetObjectRequest;
    type Response = proto::Object;
    const OPERATION: Operation = Operation::Get;

    fn target(request: &Self::Request) -> (&str, &str) {
        (&request.bucket, &request.object)
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<proto::Object, Stop> {
        if request.soft_deleted == Some(true) {
            return Err(Refusal::NotServed { what: "a soft-deleted object".to_owned() }.into());
        }
        let (bucket, name) = named(&request.bucket, &request.object)?;
        let preconditions = Preconditions {
            generation_match: request.if_generation_match,
            generation_not_match: request.if_generation_not_match,
            metageneration_match: request.if_metageneration_match,
            metageneration_not_match: request.if_metageneration_not_match,
        };
        let generation = generation(request.generation);
        let object = visit.read(|buckets| buckets.get(&bucket, &name, generation, &preconditions)).await?;
        Ok(message::object(&bucket, &object))
    }
}

struct ListObjects;

impl Method for ListObjects {
    type Request = proto::ListObjectsRequest;
    type Response = proto::ListObjectsResponse;
    const OPERATION: Operation = Operation::List;

    fn target(request: &Self::Request) -> (&str, &str) {
        (&request.parent, &request.prefix)
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<proto::ListObjectsResponse, Stop> {
        let filtered = [&request.match_glob, &request.filter].iter().any(|text| !text.is_empty());
        if filtered || request.soft_deleted {
            return Err(Refusal::NotServed { what: "a filtered listing".to_owned() }.into());
        }
        let bucket = bucket_name(&request.parent)?;
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let asked = usize::try_from(request.page_size).map_err(|_| Refusal::invalid("page_size"))?;
        let largest = visit.service.settings.largest_page;
        let listing = ListRequest {
            prefix: request.prefix,
            delimiter: said(request.delimiter),
            include_trailing_delimiter: request.include_trailing_delimiter,
            start: request.lexicographic_start,
            end: said(request.lexicographic_end),
            token: said(request.page_token),
            page_size: if asked == 0 { largest } else { asked.min(largest) },
        };
        let page = visit.read(|buckets| buckets.list(&bucket, &listing)).await?;
        Ok(proto::ListObjectsResponse {
            objects: page.objects.iter().map(|object| message::object(&bucket, object)).collect(),
            prefixes: page.prefixes,
            next_page_token: page.next.unwrap_or_default(),
        })
    }
}

struct DeleteObject;

impl Method for DeleteObject {
    type Request = proto::DeleteObjectRequest;
    type Response = ();
    const OPERATION: Operation = Operation::Delete;

    fn target(request: &Self::Request) -> (&str, &str) {
        (&request.bucket, &request.object)
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<(), Stop> {
        let (bucket, name) = named(&request.bucket, &request.object)?;
        let preconditions = Preconditions {
            generation_match: request.if_generation_match,
            generation_not_match: request.if_generation_not_match,
            metageneration_match: request.if_metageneration_match,
            metageneration_not_match: request.if_metageneration_not_match,
        };
        let generation = generation(request.generation);
        visit.change(|buckets, now| buckets.delete(&bucket, &name, generation, &preconditions, now)).await
    }
}

struct ComposeObject;

impl Method for ComposeObject {
    type Request = proto::ComposeObjectRequest;
    type Response = proto::Object;
    const OPERATION: Operation = Operation::Compose;

    fn target(request: &Self::Request) -> (&str, &str) {
        request.destination.as_ref().map_or(("", ""), |object| (&object.bucket, &object.name))
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<proto::Object, Stop> {
        if request.delete_source_objects == Some(true) {
            return Err(Refusal::NotServed { what: "deleting the sources of a compose".to_owned() }.into());
        }
        let destination = request.destination.ok_or(Refusal::Required { what: "destination" })?;
        let (bucket, name) = named(&destination.bucket, &destination.name)?;
        let sources = request.source_objects.into_iter().map(|source| {
            Ok(Source {
                name: ObjectName::parse(&source.name)?,
                generation: generation(source.generation),
                generation_match: source
                    .object_preconditions
                    .and_then(|conditions| conditions.if_generation_match),
            })
        });
        let composition = Composition {
            sources: sources.collect::<Result<_, Refusal>>()?,
            metadata: message::metadata(&destination),
            expected: message::expected(destination.checksums.as_ref())?
                .and(message::expected(request.object_checksums.as_ref())?),
        };
        let preconditions = Preconditions {
            generation_match: request.if_generation_match,
            metageneration_match: request.if_metageneration_match,
            ..Preconditions::default()
        };
        let object = visit
            .change(|buckets, now| buckets.compose(&bucket, &name, composition, &preconditions, now))
            .await?;
        Ok(message::object(&bucket, &object))
    }
}

struct UpdateObject;

impl Method for UpdateObject {
    type Request = proto::UpdateObjectRequest;
    type Response = proto::Object;
    const OPERATION: Operation = Operation::Update;

    fn target(request: &Self::Request) -> (&str, &str) {
        request.object.as_ref().map_or(("", ""), |object| (&object.bucket, &object.name))
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<proto::Object, Stop> {
        let object = request.object.ok_or(Refusal::Required { what: "object" })?;
        let mask = request.update_mask.ok_or(Refusal::Required { what: "update_mask" })?;
        let (bucket, name) = named(&object.bucket, &object.name)?;
        let change = message::change(&object, &mask.paths)?;
        let preconditions = Preconditions {
            generation_match: request.if_generation_match,
            generation_not_match: request.if_generation_not_match,
            metageneration_match: request.if_metageneration_match,
            metageneration_not_match: request.if_metageneration_not_match,
        };
        let generation = generation(object.generation);
        let object = visit
            .change(|buckets, now| buckets.patch(&bucket, &name, generation, change, &preconditions, now))
            .await?;
        Ok(message::object(&bucket, &object))
    }
}

struct GetBucket;

impl Method for GetBucket {
    type Request = proto::GetBucketRequest;
    type Response = proto::Bucket;
    const OPERATION: Operation = Operation::Bucket;

    fn target(request: &Self::Request) -> (&str, &str) {
        (&request.name, "")
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<proto::Bucket, Stop> {
        let name = bucket_name(&request.name)?;
        visit.read(|buckets| Ok(message::bucket(&name, buckets.bucket(&name)?))).await
    }
}

struct CreateBucket;

impl Method for CreateBucket {
    type Request = proto::CreateBucketRequest;
    type Response = proto::Bucket;
    const OPERATION: Operation = Operation::Bucket;

    fn target(request: &Self::Request) -> (&str, &str) {
        (&request.bucket_id, "")
    }

    async fn carry_out(visit: &Visit, request: Self::Request) -> Result<proto::Bucket, Stop> {
        let name = BucketName::parse(&request.bucket_id).map_err(Refusal::from)?;
        visit
            .change(|buckets, now| {
                let bucket = buckets.create(name.clone(), now)?;
                Ok(message::bucket(&name, bucket))
            })
            .await
    }
}

fn named(bucket: &str, object: &str) -> Result<(BucketName, ObjectName), Refusal> {
    Ok((bucket_name(bucket)?, ObjectName::parse(object)?))
}

/// A generation that a message names; 0 stands for none.
fn generation(number: i64) -> Option<Generation> {
    Some(number).filter(|number| *number != 0).map(Generation)
}
