//! A provider that answers when it is told to. Each run has its own, so that it is known who asked.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use penstock_model::lines::Lines;

/// No request of these tests is longer on its way.
const PATIENCE: Duration = Duration::from_secs(20);

const ANSWER: &str = r#"{"id":"a","object":"chat.completion","created":0,"model":"model","choices":[{"index":0,"message":{"role":"assistant","content":"an answer"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// A server of one run.
#[derive(Debug)]
pub(crate) struct Provider {
    address: SocketAddr,
    questions: Arc<Questions>,
    closed: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Questions {
    open: Mutex<Vec<Question>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Question {
    line: u8,
    answer: Option<mpsc::Sender<()>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let questions = Arc::new(Questions::default());
        let closed = Arc::new(AtomicBool::new(false));
        let accepting = thread::spawn({
            let (questions, closed) = (Arc::clone(&questions), Arc::clone(&closed));
            move || {
                let mut visits = Vec::new();
                for stream in listener.incoming() {
                    if closed.load(Relaxed) {
                        break;
                    }
                    let questions = Arc::clone(&questions);
                    // A run that ends breaks its connections off.
                    visits.push(thread::spawn(move || questions.visit(&stream.unwrap()).unwrap_or_default()));
                }
                for visit in visits {
                    visit.join().unwrap();
                }
            }
        });
        Self { address, questions, closed, accepting: Some(accepting) }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The lines that were asked for so far.
    pub(crate) fn asked(&self) -> Lines {
        self.questions.open().iter().map(|question| Lines::one(question.line)).collect()
    }

    /// Waits until all of `lines` were asked for; tells which were.
    pub(crate) fn wait(&self, lines: Lines) -> Lines {
        let missing = |open: &mut Vec<Question>| {
            !lines.without(open.iter().map(|question| Lines::one(question.line)).collect()).is_empty()
        };
        drop(self.questions.changed.wait_timeout_while(self.questions.open(), PATIENCE, missing));
        self.asked()
    }

    /// Answers a line.
    pub(crate) fn answer(&self, line: u8) {
        for question in self.questions.open().iter_mut().filter(|question| question.line == line) {
            question.answer = None;
        }
    }
}

impl Questions {
    /// One request on a connection of its own.
    fn visit(&self, stream: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 0 && line != "\r\n" {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let text = String::from_utf8(body).unwrap();
        let Some((_, rest)) = text.split_once("question ") else { return Ok(()) };
        let number = rest.chars().next().and_then(|digit| digit.to_digit(10)).unwrap();
        let (answer, answered) = mpsc::channel();
        self.open().push(Question { line: u8::try_from(number).unwrap(), answer: Some(answer) });
        self.changed.notify_all();
        // The sender is dropped to say that it is time.
        let _ = answered.recv();
        let length = ANSWER.len();
        write!(
            &mut &*stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{ANSWER}"
        )
    }

    fn open(&self) -> MutexGuard<'_, Vec<Question>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.closed.store(true, Relaxed);
        for question in self.questions.open().iter_mut() {
            question.answer = None;
        }
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}
