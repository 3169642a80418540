//! A server that gives every request one fixed answer, the size of a small chat completion.
//!
//! It reads just enough of HTTP/1.1 to know where a request ends, so that one core of it serves more than one core of any
//! client can ask for. It is told what to do on stdin: `reset` forgets what was counted, and every line is answered with
//! the [`Tally`] so far. It ends with stdin, and so with whoever started it.

use std::{
    cell::Cell,
    io::{self, BufRead, Write},
    net::Ipv4Addr,
    rc::Rc,
    thread,
    time::Duration,
};

use memchr::memmem;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::LocalSet,
};

use crate::{error::BenchError, process::since_epoch};

/// What stands around the text that every request is answered with.
const BEFORE: &str = r#"{"id":"chatcmpl-Bench00000000000000000000000","object":"chat.completion","created":1790000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":""#;
const AFTER: &str = r#"","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":131,"completion_tokens":2,"total_tokens":133,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}},"service_tier":"default","system_fingerprint":null}"#;

/// The longest request that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// What the server has seen since it was last reset.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// Requests that were answered.
    pub(crate) requests: u64,
    /// When the first had arrived, since the epoch.
    pub(crate) first: Duration,
    /// When the last was answered, since the epoch.
    pub(crate) last: Duration,
    /// Connections that are open now; a reset leaves them as they are.
    pub(crate) open: u64,
}

/// Serves answers with a text of this length until stdin ends. The first line on stdout is the base URL.
pub(crate) fn serve(text_bytes: usize) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (orders, heard) = mpsc::channel(1);
    let reader = thread::spawn(move || {
        for order in io::stdin().lock().lines().map_while(Result::ok) {
            if orders.blocking_send(order).is_err() {
                return;
            }
        }
    });
    let served = LocalSet::new().block_on(&runtime, listen(heard, text_bytes));
    // A server that failed ends at once, whoever still holds its stdin.
    served?;
    reader.join().map_err(|_| io::Error::other("the reader of stdin panicked"))?;
    Ok(())
}

async fn listen(mut orders: mpsc::Receiver<String>, text_bytes: usize) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    say(&format!("http://{}", listener.local_addr()?))?;
    let response: Rc<[u8]> = response(text_bytes).into_bytes().into();
    let tally = Rc::new(Cell::new(Tally::default()));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let (response, tally) = (Rc::clone(&response), Rc::clone(&tally));
                tokio::task::spawn_local(async move {
                    count_open(&tally, |open| open + 1);
                    // A client that goes away ends its connection, and nothing else.
                    let _ = converse(stream, &response, &tally).await;
                    count_open(&tally, |open| open - 1);
                });
            }
            order = orders.recv() => match order {
                None => return Ok(()),
                Some(order) => {
                    if order == "reset" {
                        tally.set(Tally { open: tally.get().open, ..Tally::default() });
                    }
                    say(&serde_json::to_string(&tally.get())?)?;
                }
            },
        }
    }
}

fn count_open(tally: &Cell<Tally>, change: impl FnOnce(u64) -> u64) {
    let seen = tally.get();
    tally.set(Tally { open: change(seen.open), ..seen });
}

/// Says one line on stdout, at once.
pub(crate) fn say(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

fn response(text_bytes: usize) -> String {
    let answer = answer(text_bytes);
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: req_bench\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    )
}

fn answer(text_bytes: usize) -> String {
    let text: String = "billing ".chars().cycle().take(text_bytes).collect();
    [BEFORE, &text, AFTER].concat()
}

/// Answers the requests of one connection, one after the other.
async fn converse(mut stream: TcpStream, response: &[u8], tally: &Cell<Tally>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = Vec::with_capacity(4 << 10);
    loop {
        let length = loop {
            match request_length(&read)? {
                Some(length) if length <= read.len() => break length,
                _ => {}
            }
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
        };
        let mut seen = tally.get();
        if seen.requests == 0 {
            seen.first = since_epoch();
            tally.set(seen);
        }
        stream.write_all(response).await?;
        let mut seen = tally.get();
        seen.requests += 1;
        seen.last = since_epoch();
        tally.set(seen);
        read.drain(..length);
    }
}

/// How many bytes the first request in `read` has with its body; `None` until its head is there.
fn request_length(read: &[u8]) -> io::Result<Option<usize>> {
    let refused = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    if read.len() > LONGEST {
        return Err(refused("the request is too long"));
    }
    let Some(end) = memmem::find(read, b"\r\n\r\n") else { return Ok(None) };
    let body = std::str::from_utf8(&read[..end])
        .map_err(|_| refused("the head is no text"))?
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .map_or(Ok(0), |(_, value)| value.trim().parse::<usize>())
        .map_err(|_| refused("the length is no number"))?;
    Ok(Some(end + 4 + body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_ends_with_its_body() {
        let request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcPOST";
        assert_eq!(request_length(request).unwrap(), Some(request.len() - 4));
        assert_eq!(request_length(&request[..30]).unwrap(), None);
        assert_eq!(request_length(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap(), Some(27));
        assert!(request_length(b"POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n").is_err());
    }

    #[test]
    fn the_answer_is_one_that_a_client_understands() {
        for (length, text) in [(7, "billing"), (12, "billing bill")] {
            let answer: serde_json::Value = serde_json::from_str(&answer(length)).unwrap();
            assert_eq!(answer["choices"][0]["message"]["content"], text);
        }
        assert!(response(7).ends_with(&answer(7)));
    }
}
