//! The signals that ask a command to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Ctrl-C: somebody sits at the terminal.
    Interrupt,
    /// SIGTERM: a machine or a scheduler wants the process to leave soon.
    Terminate,
}

/// Listens; from here on these signals do not end the process by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Heard {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Heard::Interrupt,
            Some(()) = self.terminate.recv() => Heard::Terminate,
            else => std::future::pending().await,
        }
    }
}
