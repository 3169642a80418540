//! `penstock url`: a URL with which somebody without credentials uploads or downloads one object of a bucket.
//!
//! The URL goes to stdout and how it is used to stderr, so that the secret is where its reader has put it.

use std::time::Duration;

use penstock_job::ExitCode;
use penstock_storage::{SignedRequest, SignedUpload, open_signer};
use serde::Serialize;

use crate::{
    arguments::{UploadArguments, UrlArguments, UrlFor},
    error::CommandError,
    lines::Lines,
    view::Screen,
};

/// A signed request, as `--json` tells it.
#[derive(Debug, Serialize)]
struct Told<'a> {
    method: &'a str,
    url: &'a str,
    /// Headers that the request must have.
    headers: serde_json::Map<String, serde_json::Value>,
    /// Whether the answer names in `Location` where the content goes.
    session: bool,
    expires_in_s: u64,
}

/// Makes a URL.
pub(crate) async fn url(wanted: &UrlFor, screen: &Screen) -> Result<ExitCode, CommandError> {
    let (arguments, request, usage, session) = match wanted {
        UrlFor::Download(arguments) => {
            let request = download(arguments).await?;
            (arguments, request, "curl --fail --output FILE URL".to_owned(), false)
        }
        UrlFor::Upload(arguments) => match upload(arguments).await? {
            SignedUpload::Whole(request) => {
                let usage = format!("curl --fail{} --upload-file FILE URL", headers(&request));
                (&arguments.url, request, usage, false)
            }
            SignedUpload::Session(request) => {
                let usage = format!(
                    "curl --fail --include --request POST{} --header 'content-length: 0' URL, then\n\
                     curl --fail --upload-file FILE SESSION, where SESSION is what that answers as `Location`; \
                     it holds for a week, and a broken upload can be resumed there",
                    headers(&request)
                );
                (&arguments.url, request, usage, true)
            }
        },
    };
    let mut stdout = Lines::stdout();
    if arguments.json {
        stdout.json(&Told {
            method: request.method,
            url: &request.url,
            headers: request
                .headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.as_str().into()))
                .collect(),
            session,
            expires_in_s: arguments.expires.get(),
        });
    } else {
        stdout.text(&request.url);
        screen.say(&usage);
    }
    stdout.flush()?;
    Ok(ExitCode::Completed)
}

async fn download(arguments: &UrlArguments) -> Result<SignedRequest, CommandError> {
    let (signer, key) = open_signer(&arguments.object)?;
    Ok(signer.download(&key, expires_in(arguments)).await?)
}

async fn upload(arguments: &UploadArguments) -> Result<SignedUpload, CommandError> {
    let (signer, key) = open_signer(&arguments.url.object)?;
    let content_type = arguments.content_type.as_deref();
    Ok(signer.upload(&key, arguments.size, content_type, expires_in(&arguments.url)).await?)
}

fn expires_in(arguments: &UrlArguments) -> Duration {
    Duration::from_secs(arguments.expires.get())
}

/// The headers of a request as arguments of curl.
fn headers(request: &SignedRequest) -> String {
    let headers: Vec<_> =
        request.headers.iter().map(|(name, value)| format!(" --header '{name}: {value}'")).collect();
    headers.concat()
}
