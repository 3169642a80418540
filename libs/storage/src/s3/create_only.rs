//! Uploads in parts that are completed only where the name is free.
//!
//! `object_store` completes an upload in parts whatever the name holds. Here every write is create-only or replaces a
//! generation, and no upload in parts replaces one, so each completion gets `If-None-Match: *` on its way out. It need
//! not be signed: of the headers, S3 wants `host` and `x-amz-*` signed alone.

use async_trait::async_trait;
use http::header::IF_NONE_MATCH;
use http::{HeaderValue, Method};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// Connects clients whose completions are create-only.
#[derive(Debug, Default)]
pub(super) struct CreateOnly(ReqwestConnector);

impl HttpConnector for CreateOnly {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Completing(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct Completing(HttpClient);

#[async_trait]
impl HttpService for Completing {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if completes_an_upload(&request) {
            request.headers_mut().insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        self.0.execute(request).await
    }
}

/// `POST /key?uploadId=..`; an upload is begun by `POST /key?uploads`.
fn completes_an_upload(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == Method::POST && query.split('&').any(|pair| pair.starts_with("uploadId="))
}
