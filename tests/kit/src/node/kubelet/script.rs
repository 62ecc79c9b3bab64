//! Scripts of commands: output, exit codes and faults.

use std::time::Duration;

use serde_json::{Value, json};

use super::record::ExecCall;

/// Channel of the standard output.
pub(super) const STDOUT: u8 = 1;
/// Channel of the standard error.
const STDERR: u8 = 2;
/// Channel of the Status that ends a command.
const STATUS: u8 = 3;

/// Maximum output in one frame, in bytes. A kubelet copies as much at a time.
pub(super) const CHUNK: usize = 32 * 1024;

/// Frame of an exec connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecFrame {
    /// Binary frame: the number of a channel, then its data. See [`channel`](Self::channel).
    Binary(Vec<u8>),
    /// Text frame. A kubelet sends none.
    Text(String),
    /// End of the `WebSocket` connection.
    Close,
}

impl ExecFrame {
    /// Makes a frame of this channel.
    pub fn channel(number: u8, data: impl AsRef<[u8]>) -> Self {
        Self::Binary([&[number][..], data.as_ref()].concat())
    }

    /// Makes a frame of the standard output.
    pub fn stdout(data: impl AsRef<[u8]>) -> Self {
        Self::channel(STDOUT, data)
    }

    /// Makes a frame of the standard error.
    pub fn stderr(data: impl AsRef<[u8]>) -> Self {
        Self::channel(STDERR, data)
    }

    /// Makes the frame with the command's Status.
    pub fn status(status: &Value) -> Self {
        Self::channel(STATUS, status.to_string())
    }
}

/// Course of a command in a container.
#[derive(Debug, Clone)]
pub struct Exec {
    /// Protocol that the kubelet chooses, instead of the right one.
    pub(super) protocol: Option<String>,
    /// Whether `Sec-WebSocket-Accept` belongs to another key.
    pub(super) wrong_accept: bool,
    /// Status code and text of an answer that refuses the command.
    pub(super) refusal: Option<(u16, String)>,
    /// Frames to send at the start.
    pub(super) frames: Vec<ExecFrame>,
    /// Bytes of standard output to send after the frames.
    pub(super) flood: u64,
    /// Delay of the end.
    pub(super) delay: Duration,
    pub(super) end: ExecEnd,
}

/// End of a command.
#[derive(Debug, Clone)]
pub(super) enum ExecEnd {
    /// The kubelet sends this Status and closes.
    Status(Value),
    /// The kubelet closes without a Status.
    Close,
    /// The TCP connection ends.
    Cut,
    /// Nothing follows.
    Never,
}

impl Exec {
    fn new(end: ExecEnd) -> Self {
        Self {
            protocol: None,
            wrong_accept: false,
            refusal: None,
            // The greeting: it shows that the connection is established.
            frames: vec![ExecFrame::stdout("")],
            flood: 0,
            delay: Duration::ZERO,
            end,
        }
    }

    /// Exits with this code.
    pub fn exits(code: i32) -> Self {
        Self::new(ExecEnd::Status(exit_status(code)))
    }

    /// Runs until the client or the container ends.
    pub fn hangs() -> Self {
        Self::new(ExecEnd::Never)
    }

    /// Writes this many bytes to its standard output, as fast as the client reads, and exits with code 0.
    pub fn floods(bytes: u64) -> Self {
        Self {
            flood: bytes,
            ..Self::exits(0)
        }
    }

    /// Loses its TCP connection after this many bytes of standard output.
    pub fn cut_after(bytes: u64) -> Self {
        Self {
            flood: bytes,
            ..Self::new(ExecEnd::Cut)
        }
    }

    /// Closes its `WebSocket` connection properly, but without a Status.
    pub fn closes_without_status() -> Self {
        Self::new(ExecEnd::Close)
    }

    /// Answers with this status code and plain text, without an upgrade.
    pub fn refuses(code: u16, text: impl Into<String>) -> Self {
        Self {
            refusal: Some((code, text.into())),
            ..Self::exits(0)
        }
    }

    /// Fails as a command that the container runtime cannot start: its Status has the reason `InternalError`
    /// and no exit code.
    pub fn cannot_start(message: impl AsRef<str>) -> Self {
        let message = format!("error executing command in container: {}", message.as_ref());
        Self::new(ExecEnd::Status(json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("Internal error occurred: {message}"),
            "reason": "InternalError",
            "details": {"causes": [{"message": message}]},
            "code": 500,
        })))
    }

    /// Sends exactly these frames, then ends the TCP connection.
    pub fn raw(frames: impl IntoIterator<Item = ExecFrame>) -> Self {
        Self {
            frames: frames.into_iter().collect(),
            ..Self::new(ExecEnd::Cut)
        }
    }

    /// Chooses this protocol, whether the client offers it or not, and exits with code 0.
    pub fn protocol(name: impl Into<String>) -> Self {
        Self {
            protocol: Some(name.into()),
            ..Self::exits(0)
        }
    }

    /// Answers the upgrade with the `Sec-WebSocket-Accept` of another key, and exits with code 0.
    pub fn wrong_accept() -> Self {
        Self {
            wrong_accept: true,
            ..Self::exits(0)
        }
    }

    /// Writes to its standard output at the start, after everything that it writes so far.
    #[must_use]
    pub fn stdout(self, data: impl AsRef<[u8]>) -> Self {
        self.writes(STDOUT, data.as_ref())
    }

    /// Writes to its standard error at the start, after everything that it writes so far.
    #[must_use]
    pub fn stderr(self, data: impl AsRef<[u8]>) -> Self {
        self.writes(STDERR, data.as_ref())
    }

    fn writes(mut self, channel: u8, data: &[u8]) -> Self {
        let chunks = data.chunks(CHUNK);
        self.frames
            .extend(chunks.map(|chunk| ExecFrame::channel(channel, chunk)));
        self
    }

    /// Delays the end of the command. Its output comes at once.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Runs once like this, then like the next.
    #[must_use]
    pub fn then(self, next: impl Into<ExecScript>) -> ExecScript {
        ExecScript::from(self).then(next)
    }
}

/// Returns the Status of a command that ran to its end.
pub(super) fn exit_status(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {},
        "status": "Failure",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

/// Courses of successive commands. The last one repeats forever.
pub struct ExecScript {
    turns: Vec<Turn>,
}

enum Turn {
    Fixed(Exec),
    By(Box<dyn FnMut(&ExecCall) -> Exec + Send>),
}

impl ExecScript {
    /// Chooses the course of each command by its call. The function must not call back into the simulation.
    pub fn by(choose: impl FnMut(&ExecCall) -> Exec + Send + 'static) -> Self {
        Self {
            turns: vec![Turn::By(Box::new(choose))],
        }
    }

    /// Appends these courses.
    #[must_use]
    pub fn then(mut self, next: impl Into<Self>) -> Self {
        self.turns.extend(next.into().turns);
        self
    }

    pub(super) fn next(&mut self, call: &ExecCall) -> Exec {
        let exec = match self.turns.first_mut() {
            Some(Turn::Fixed(exec)) => exec.clone(),
            Some(Turn::By(choose)) => choose(call),
            None => Exec::exits(0),
        };
        if self.turns.len() > 1 {
            self.turns.remove(0);
        }
        exec
    }
}

impl From<Exec> for ExecScript {
    fn from(exec: Exec) -> Self {
        Self {
            turns: vec![Turn::Fixed(exec)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_sent_in_chunks_and_in_order() {
        let long = vec![b'x'; CHUNK + 1];
        let exec = Exec::exits(0).stderr("a").stdout(&long).stderr("");
        let expected = [
            ExecFrame::Binary(vec![1]),
            ExecFrame::Binary(vec![2, b'a']),
            ExecFrame::stdout(&long[..CHUNK]),
            ExecFrame::stdout("x"),
        ];
        assert_eq!(exec.frames, expected);
    }
}
