//! One call with one answer, from its bytes to its status.

use std::{
    marker::PhantomData,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tonic::{
    Status,
    server::{Grpc, UnaryService},
};
use tonic_prost::ProstCodec;

use super::status::{status, status_code};
use crate::{
    body::Body,
    operation::{Operation, Transport},
    service::Service,
    visit::{Call, Dropped, Stop, Visit},
};

/// A call that this double serves.
pub(super) trait Method: Send + 'static {
    /// The message that comes.
    type Request: prost::Message + Default + Send + 'static;
    /// The message that goes.
    type Response: prost::Message + Default + Send + 'static;
    /// What it is for.
    const OPERATION: Operation;

    /// The bucket, as messages name it, and the object.
    fn target(request: &Self::Request) -> (&str, &str);

    /// Carries it out.
    fn carry_out(
        visit: &Visit,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Response, Stop>> + Send;
}

/// Answers a call.
pub(super) async fn unary<M: Method>(
    service: &Arc<Service>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Dropped> {
    let dropped = Arc::new(OnceLock::new());
    let handler =
        Handler::<M> { service: Arc::clone(service), dropped: Arc::clone(&dropped), method: PhantomData };
    let codec = ProstCodec::<M::Response, M::Request>::default();
    let response = Grpc::new(codec).unary(handler, request).await;
    if dropped.get().is_some() {
        return Err(Dropped);
    }
    Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
}

/// What the gRPC server calls.
struct Handler<M> {
    service: Arc<Service>,
    /// Set when the connection is to be closed instead of an answer.
    dropped: Arc<OnceLock<Dropped>>,
    method: PhantomData<M>,
}

impl<M: Method> UnaryService<M::Request> for Handler<M> {
    type Response = M::Response;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<M::Response>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<M::Request>) -> Self::Future {
        let (service, dropped) = (Arc::clone(&self.service), Arc::clone(&self.dropped));
        Box::pin(async move {
            match answer::<M>(&service, request.into_inner()).await {
                Ok(response) => Ok(tonic::Response::new(response)),
                Err(Stop::Refused(refusal)) => Err(status(&refusal)),
                Err(Stop::Dropped) => {
                    // The status is never sent: the stream is reset.
                    dropped.get_or_init(|| Dropped);
                    Err(Status::unavailable(Dropped.to_string()))
                }
            }
        })
    }
}

async fn answer<M: Method>(service: &Arc<Service>, request: M::Request) -> Result<M::Response, Stop> {
    let (bucket, object) = M::target(&request);
    let call = Call {
        transport: Transport::Grpc,
        operation: M::OPERATION,
        bucket: bucket.rsplit('/').next().unwrap_or_default().to_owned(),
        object: object.to_owned(),
    };
    let visit = Visit::arrive(service, call).await?;
    let answer = M::carry_out(&visit, request).await;
    if let Some(code) = status_code(answer.as_ref().err()) {
        visit.answered(code);
    }
    answer
}
