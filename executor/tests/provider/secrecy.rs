//! A key goes into the one header that its provider reads it from, and nowhere else.

use std::{
    fmt::Write as _,
    fs, io,
    sync::{Arc, Mutex},
};

use penstock_executor::provider::{Cause, Disposition, classify};
use penstock_job::spec::{KeySource, ProviderKind};
use tracing_subscriber::fmt::MakeWriter;

use super::{
    Setup,
    hostile::{Parrot, answer},
    prompt,
};

const KEY: &str = "sk-5ecret-5ecret";

/// Everything that was logged.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_key_is_in_no_log_no_error_no_answer_and_no_debug_output() {
    let captured = Captured::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(captured.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key");
    fs::write(&path, KEY).unwrap();
    let mut shown = String::new();
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","code":"{KEY}"}}}}"#);
    let kinds = [
        (ProviderKind::OpenAiCompatible, format!("authorization: Bearer {KEY}\r\n")),
        (ProviderKind::Gemini, format!("x-goog-api-key: {KEY}\r\n")),
        (ProviderKind::Anthropic, format!("x-api-key: {KEY}\r\n")),
        (ProviderKind::AzureOpenAi, format!("api-key: {KEY}\r\n")),
    ];
    let answers = [
        answer("401 Unauthorized", "", &echo),
        answer("400 Bad Request", "", &echo),
        answer("500 Internal Server Error", "", &format!("Bearer {KEY} is unknown")),
        answer("200 OK", "", &echo),
        answer("200 OK", "", &format!("{KEY} is not JSON")),
        "nonsense".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\ncut off".to_owned(),
    ];
    for (bytes, (kind, header)) in
        answers.iter().flat_map(|bytes| kinds.iter().map(move |kind| (bytes, kind)))
    {
        let server = Parrot::start(bytes.clone()).await;
        let mut setup = Setup::prompts(&server.base_url());
        setup.provider.kind = *kind;
        setup.provider.api_key = Some(KeySource::File(path.clone()));
        let provider = setup.connect().unwrap();
        let outcome = setup.ask(&provider, &prompt(1)).await;
        let disposition = classify(&outcome, provider.dialect());
        let request = provider.prepare(&prompt(1).into()).unwrap();
        if let Disposition::Blocked { cause: Cause { message, .. }, .. } = &disposition {
            tracing::warn!(message, "dispatch pauses");
        }
        let body = outcome.as_ref().map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
        write!(shown, "{provider:#?} {request:#?} {outcome:?} {body:?} {disposition:#?}").unwrap();
        if let Err(failure) = &outcome {
            write!(shown, "{failure}").unwrap();
        }
        let sent = server.last_request();
        assert_eq!((sent.matches(KEY).count(), sent.matches(header).count()), (1, 1), "{kind}: {sent}");
        server.stop().await;
    }
    fs::write(&path, format!("{KEY}\n{KEY}")).unwrap();
    let mut setup = Setup::prompts("http://127.0.0.1:1");
    setup.provider.api_key = Some(KeySource::File(path));
    let refused = setup.connect().unwrap_err();
    write!(shown, "{refused} {refused:#?}").unwrap();

    let logged = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("dispatch pauses"), "the log is captured");
    assert!(shown.contains("[API key]"), "an echo is shown without the key");
    assert!(!shown.contains(KEY), "{shown}");
    assert!(!logged.contains(KEY), "{logged}");
}
