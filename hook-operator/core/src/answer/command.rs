//! Commands in containers: the frames of the connection, the container before and after, and the verdict.
//!
//! The subprotocol `v4.channel.k8s.io` sends the channel as the first byte of each frame. All channels share one ordered
//! stream, and the exit status is its last message, so a connection that is cut never looks like a success.

use expr_conditions::{Command, Origin};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::Value;

use super::json_or_text::{value_of, without_mark};
use super::object::check_pod;
use super::{MeasurementFailure, MeasurementReason, ProviderResponse, malformed, to_judge};
use crate::request::{ExecRequest, ObjectName};
use crate::value::{MetricValue, counted, cut};

/// Bytes that are kept of each stream.
pub const KEPT_OF_STREAM: usize = 64 * 1024;
/// Most bytes that a command may print.
const MAX_PRINTED: u64 = 64 * 1024 * 1024;
/// Longest exit status, in bytes.
const MAX_STATUS: usize = 16 * 1024;
/// Bytes that are quoted of a message of the container runtime.
const QUOTED_BYTES: usize = 300;
/// Bytes that are shown of the end of the output.
const OUTPUT_END_BYTES: usize = 512;
/// Exit codes with which shells and runtimes report that a program cannot be run or is not found.
const NOT_RUN: [i32; 2] = [126, 127];
/// Exit code of a command that was killed (SIGKILL). The runtime kills all commands of a container that ends, and the API
/// server may still show this container as running.
const KILLED: i32 = 137;

/// Everything that a command sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    stdout: Stream,
    stderr: Stream,
    status: Vec<u8>,
}

/// Beginning of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Stream {
    kept: Vec<u8>,
    dropped: u64,
}

impl Stream {
    fn add(&mut self, data: &[u8]) -> Result<(), MeasurementFailure> {
        let room = KEPT_OF_STREAM.saturating_sub(self.kept.len());
        let (kept, rest) = data.split_at(room.min(data.len()));
        self.kept.extend_from_slice(kept);
        self.dropped = self.dropped.saturating_add(rest.len() as u64);
        if self.dropped > MAX_PRINTED {
            return Err(malformed(
                "the command printed more than 64 MiB; it may still be running in the container",
            ));
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).trim().to_owned()
    }

    fn length(&self) -> u64 {
        self.dropped.saturating_add(self.kept.len() as u64)
    }

    fn is_cut(&self) -> bool {
        self.dropped > 0
    }
}

/// End of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Exited(i32),
    /// The runtime did not run it, and says why.
    NotRun(String),
}

impl Transcript {
    /// Adds a frame. Returns whether it completes the transcript.
    ///
    /// # Errors
    /// If a kubelet sends no such frame.
    pub fn add(&mut self, frame: &[u8]) -> Result<bool, MeasurementFailure> {
        match frame.split_first() {
            // Streams begin with an empty frame.
            None | Some((1..=3, [])) => Ok(false),
            Some((1, data)) => {
                self.stdout.add(data)?;
                Ok(false)
            }
            Some((2, data)) => {
                self.stderr.add(data)?;
                Ok(false)
            }
            Some((3, data)) if self.status.len() + data.len() <= MAX_STATUS => {
                self.status.extend_from_slice(data);
                Ok(plain_json::from_slice::<Value>(&self.status).is_ok())
            }
            Some((3, _)) => Err(malformed("the exit status of the command is too long")),
            Some((channel, _)) => Err(malformed(format!(
                "the kubelet sent data on unknown channel {channel}"
            ))),
        }
    }

    fn end(&self) -> Result<End, MeasurementFailure> {
        if self.status.is_empty() {
            return Err(lost("the connection was closed before the command finished"));
        }
        let status: Value = plain_json::from_slice(&self.status)
            .map_err(|_| lost("the connection was closed in the middle of the exit status"))?;
        match status["status"].as_str() {
            Some("Success") => Ok(End::Exited(0)),
            Some("Failure") if status["reason"] == "NonZeroExitCode" => {
                let causes = status["details"]["causes"].as_array();
                let mut causes = causes.into_iter().flatten();
                let code = causes.find(|cause| cause["reason"] == "ExitCode");
                let code = code.and_then(|cause| cause["message"].as_str()?.parse().ok());
                code.filter(|code| *code != 0)
                    .map(End::Exited)
                    .ok_or_else(|| malformed("the exit status of the command has no exit code"))
            }
            Some("Failure") => {
                let message = status["message"].as_str().unwrap_or("no reason given");
                Ok(End::NotRun(cut(message, QUOTED_BYTES)))
            }
            Some(_) | None => Err(malformed(
                "the exit status of the command is neither Success nor Failure",
            )),
        }
    }
}

/// Container in which a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningContainer {
    pod_uid: Option<String>,
    id: String,
}

/// Returns the container of a command.
///
/// # Errors
/// `ObjectGone` if it is another pod of the same name. `CommandNotRun` if the container does not run.
pub fn running_container(
    name: &ObjectName,
    container: &str,
    run_pod: Option<&str>,
    pod: &Pod,
) -> Result<RunningContainer, MeasurementFailure> {
    check_pod(name, run_pod, pod.metadata.uid.as_deref())?;
    let found = statuses(pod).find(|status| status.name == container);
    let state = found.and_then(|status| status.state.as_ref());
    let is_running = state.is_some_and(|state| state.running.is_some());
    if let Some(id) = found
        .and_then(|status| status.container_id.clone())
        .filter(|_| is_running)
    {
        return Ok(RunningContainer {
            pod_uid: pod.metadata.uid.clone(),
            id,
        });
    }
    let why = if statuses(pod).next().is_none() {
        format!("the containers of {name} have not been started yet")
    } else if found.is_some() {
        let waiting = state.and_then(|state| state.waiting.as_ref()?.reason.clone());
        let ended = state.and_then(|state| state.terminated.as_ref()?.reason.clone());
        let reason = waiting
            .or(ended)
            .map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("container {container} of {name} is not running{reason}")
    } else {
        let names: Vec<&str> = statuses(pod).map(|status| status.name.as_str()).collect();
        format!(
            "{name} has no container {container}; its containers are {}",
            names.join(", ")
        )
    };
    Err(MeasurementFailure::new(MeasurementReason::CommandNotRun, why))
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status.iter().flat_map(|status| {
        let lists = [
            &status.container_statuses,
            &status.init_container_statuses,
            &status.ephemeral_container_statuses,
        ];
        lists.into_iter().flatten().flatten()
    })
}

/// Rejects an end that the command did not come to by itself: the runtime kills it when its container ends. `after` is
/// the pod after the command.
///
/// # Errors
/// `ObjectGone` if it is another pod of the same name. `CommandLost` if the command failed and its container is another
/// one, or does not run.
pub fn check_end(
    request: &ExecRequest,
    run_pod: Option<&str>,
    before: &RunningContainer,
    after: &Pod,
    transcript: &Transcript,
) -> Result<(), MeasurementFailure> {
    check_same_pod(&request.pod, run_pod, before, after)?;
    if transcript.end()? == End::Exited(0) {
        return Ok(());
    }
    check_same_container(&request.pod, &request.container, run_pod, before, after)
}

/// Rejects the answer of another pod: an IP that is free again goes to the next one. `after` is the pod after the call.
///
/// # Errors
/// `ObjectGone` if it is another pod of the same name. `CommandLost` if its container is another one, or does not run.
pub fn check_same_container(
    name: &ObjectName,
    container: &str,
    run_pod: Option<&str>,
    before: &RunningContainer,
    after: &Pod,
) -> Result<(), MeasurementFailure> {
    check_same_pod(name, run_pod, before, after)?;
    match running_container(name, container, run_pod, after) {
        Ok(now) if now == *before => Ok(()),
        Ok(_) | Err(_) => Err(lost(&format!(
            "container {container} of {name} terminated in the meantime"
        ))),
    }
}

fn check_same_pod(
    name: &ObjectName,
    run_pod: Option<&str>,
    before: &RunningContainer,
    after: &Pod,
) -> Result<(), MeasurementFailure> {
    let now = after.metadata.uid.as_deref();
    check_pod(name, run_pod, now)?;
    if now == before.pod_uid.as_deref() {
        return Ok(());
    }
    let message = format!("{name} was replaced by another pod with the same name in the meantime");
    Err(MeasurementFailure::new(MeasurementReason::ObjectGone, message))
}

/// Interprets what a command sent.
///
/// # Errors
/// `CommandLost` without an exit status. `CommandNotRun` if the program was not run. `MalformedAnswer` if a condition reads
/// a stream that is too long, or output that begins as JSON and is not JSON.
pub fn interpret_command(
    request: &ExecRequest,
    transcript: &Transcript,
) -> Result<ProviderResponse, MeasurementFailure> {
    let about = request.to_string();
    let code = match transcript.end()? {
        End::Exited(code) if NOT_RUN.contains(&code) => {
            let message = format!(
                "{about} exited with code {code} (program not found or not executable){}",
                shown(request, transcript)
            );
            return Err(MeasurementFailure::new(MeasurementReason::CommandNotRun, message));
        }
        End::Exited(KILLED) => {
            return Err(lost(&format!(
                "{about} was killed (exit code {KILLED}); its container may have terminated or run out of memory"
            )));
        }
        End::Exited(code) => code,
        End::NotRun(why) => {
            let message = format!("{about} could not be run: {why}");
            return Err(MeasurementFailure::new(MeasurementReason::CommandNotRun, message));
        }
    };
    let Some(reads) = request.reads else {
        return Ok(decided(request, transcript, code, &about, ""));
    };
    if code != 0 && !reads.exit_code {
        return Ok(decided(
            request,
            transcript,
            code,
            &about,
            ", and successCondition does not read exec.exitCode",
        ));
    }
    for (is_read, stream, name) in [
        (reads.result, &transcript.stdout, "standard output"),
        (reads.stderr, &transcript.stderr, "standard error"),
    ] {
        if is_read && stream.is_cut() {
            let message = format!(
                "the {name} of the {about} is {} bytes long, but conditions can read at most {KEPT_OF_STREAM} bytes; \
                 print less",
                stream.length()
            );
            return Err(malformed(message));
        }
    }
    let value = if reads.result {
        value_of(without_mark(&transcript.stdout.kept), "the standard output")?
    } else {
        Value::String(transcript.stdout.text())
    };
    let stderr = transcript.stderr.text();
    let origin = Some(Origin::Command(Command {
        exit_code: code,
        stderr,
    }));
    // A command that failed and printed nothing is no answer without data, which could count as a success.
    if code != 0 {
        let result = MetricValue::Json(value);
        return Ok(ProviderResponse::Value { result, origin });
    }
    let no_data = |kind: &str| format!("the standard output is {kind}");
    Ok(to_judge(value, origin, no_data))
}

/// Interprets a text that stands for the standard output of a command with exit code 0, for evaluation without a cluster.
///
/// # Errors
/// As [`interpret_command`].
pub fn interpret_stdout(request: &ExecRequest, stdout: &str) -> Result<ProviderResponse, MeasurementFailure> {
    let mut transcript = Transcript {
        status: br#"{"status":"Success"}"#.to_vec(),
        ..Transcript::default()
    };
    transcript.stdout.add(stdout.as_bytes())?;
    interpret_command(request, &transcript)
}

fn decided(
    request: &ExecRequest,
    transcript: &Transcript,
    code: i32,
    about: &str,
    why: &str,
) -> ProviderResponse {
    ProviderResponse::Decided {
        successful: code == 0,
        message: format!(
            "{about} exited with code {code}{why}{}",
            shown(request, transcript)
        ),
        value: Some(MetricValue::Json(Value::String(transcript.stdout.text()))),
    }
}

/// Describes the output: its length, or its end if it may be shown.
fn shown(request: &ExecRequest, transcript: &Transcript) -> String {
    let stream = if transcript.stderr.kept.is_empty() {
        ("standard output", &transcript.stdout)
    } else {
        ("standard error", &transcript.stderr)
    };
    let (name, stream) = stream;
    let length = stream.length();
    if length == 0 {
        return "; it printed nothing".to_owned();
    }
    if !request.shows_output {
        let length = counted(length, "byte", "bytes");
        return format!("; its {name} ({length}) is hidden; set quoteAnswers: true to show it");
    }
    let text = stream.text();
    let end = text.get(text.ceil_char_boundary(text.len().saturating_sub(OUTPUT_END_BYTES))..);
    format!("; its {name} ends with {:?}", end.unwrap_or_default())
}

fn lost(why: &str) -> MeasurementFailure {
    MeasurementFailure::new(MeasurementReason::CommandLost, why)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::request::{ObjectKind, ObjectName, OutputReads};

    fn request(reads: Option<OutputReads>, shows_output: bool) -> ExecRequest {
        ExecRequest {
            pod: ObjectName {
                kind: ObjectKind::pod(),
                name: "arena-x".to_owned(),
                namespace: None,
                is_pod_of_run: true,
            },
            container: "game".to_owned(),
            command: vec!["players".to_owned()],
            timeout: Duration::from_secs(10),
            reads,
            shows_output,
        }
    }

    const RESULT: OutputReads = OutputReads {
        result: true,
        exit_code: false,
        stderr: false,
    };
    const CODE: OutputReads = OutputReads {
        result: false,
        exit_code: true,
        stderr: false,
    };
    const ALL: OutputReads = OutputReads {
        result: true,
        exit_code: true,
        stderr: true,
    };

    fn exit(code: i32) -> Value {
        if code == 0 {
            return json!({ "metadata": {}, "status": "Success" });
        }
        json!({ "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated",
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] } })
    }

    fn frame(channel: u8, data: &[u8]) -> Vec<u8> {
        [&[channel], data].concat()
    }

    fn transcript(stdout: &[u8], stderr: &[u8], status: &Value) -> Transcript {
        let mut transcript = Transcript::default();
        for empty in 1..=3 {
            assert!(!transcript.add(&[empty]).unwrap());
        }
        assert!(!transcript.add(&frame(1, stdout)).unwrap());
        assert!(!transcript.add(&frame(2, stderr)).unwrap());
        let _ = transcript.add(&frame(3, status.to_string().as_bytes())).unwrap();
        transcript
    }

    /// Returns the outcome in one line.
    fn said(outcome: Result<ProviderResponse, MeasurementFailure>) -> String {
        match outcome {
            Ok(ProviderResponse::Decided {
                successful, message, ..
            }) => format!("{successful}: {message}"),
            Ok(ProviderResponse::Value { result, origin }) => format!("value {} {origin:?}", result.text()),
            Ok(ProviderResponse::NoData { message, .. }) => format!("no data: {message}"),
            Err(failure) => format!("{}: {failure}", failure.kind.as_str()),
        }
    }

    type Case<'c> = (Option<OutputReads>, i32, &'c [u8], &'c [u8], String);

    fn decide(cases: &[Case<'_>]) {
        for (reads, code, stdout, stderr, wanted) in cases {
            let transcript = transcript(stdout, stderr, &exit(*code));
            let said = said(interpret_command(&request(*reads, false), &transcript));
            assert!(
                said.starts_with(wanted),
                "{reads:?} {code}: {said}\nwanted {wanted}"
            );
        }
    }

    #[test]
    fn the_exit_code_decides_without_conditions() {
        let long = vec![b'7'; KEPT_OF_STREAM + 5];
        let text = "command in container game of Pod arena-x exited with code";
        decide(&[
            (
                None,
                137,
                b"",
                b"",
                "CommandLost: command in container game of Pod arena-x was killed".to_owned(),
            ),
            (
                Some(ALL),
                137,
                b"0",
                b"",
                "CommandLost: command in container game of Pod arena-x was killed".to_owned(),
            ),
            (None, 143, b"", b"", format!("false: {text} 143")),
            (
                None,
                0,
                &b"0"[..],
                &b""[..],
                format!("true: {text} 0; its standard output (1 byte) is hidden"),
            ),
            (
                None,
                3,
                b"0",
                b"no",
                format!("false: {text} 3; its standard error (2 bytes) is hidden"),
            ),
            (
                None,
                0,
                &long,
                b"",
                format!("true: {text} 0; its standard output (65541 bytes)"),
            ),
            (
                None,
                127,
                b"",
                b"",
                format!("CommandNotRun: {text} 127 (program not found"),
            ),
        ]);
    }

    #[test]
    fn conditions_judge_only_what_is_whole() {
        let long = vec![b'7'; KEPT_OF_STREAM + 5];
        let text = "command in container game of Pod arena-x exited with code";
        decide(&[
            (
                Some(ALL),
                126,
                b"0",
                b"",
                format!("CommandNotRun: {text} 126 (program not found"),
            ),
            (
                Some(RESULT),
                0,
                b" 0\n",
                b"",
                "value 0 Some(Command(Command { exit_code: 0".to_owned(),
            ),
            (
                Some(RESULT),
                0,
                b"\xef\xbb\xbf{\"a\": 1}",
                b"",
                "value {\"a\":1}".to_owned(),
            ),
            (Some(RESULT), 0, b"busy\n", b"", "value busy".to_owned()),
            (
                Some(RESULT),
                0,
                b"{\"a\": ",
                b"",
                "MalformedAnswer: the standard output looks like JSON".to_owned(),
            ),
            (
                Some(RESULT),
                0,
                b"a\0b",
                b"",
                "MalformedAnswer: the standard output is neither".to_owned(),
            ),
            (
                Some(RESULT),
                0,
                b"\xff\xfe",
                b"",
                "MalformedAnswer: the standard output is neither".to_owned(),
            ),
            (
                Some(RESULT),
                0,
                b" \n",
                b"",
                "no data: the standard output is an empty string".to_owned(),
            ),
            (
                Some(RESULT),
                0,
                &long,
                b"",
                "MalformedAnswer: the standard output of the command in container game".to_owned(),
            ),
            // A command that fails may have printed half of its answer.
            (
                Some(RESULT),
                1,
                b"0",
                b"",
                format!("false: {text} 1, and successCondition does not read exec.exitCode"),
            ),
            (
                Some(ALL),
                1,
                b"0",
                b"no",
                "value 0 Some(Command(Command { exit_code: 1, stderr: \"no\" }))".to_owned(),
            ),
            (
                Some(ALL),
                0,
                b"0",
                &long,
                "MalformedAnswer: the standard error of the command".to_owned(),
            ),
            (
                Some(ALL),
                1,
                b"",
                b"",
                "value  Some(Command(Command { exit_code: 1".to_owned(),
            ),
            (Some(CODE), 3, &long, &long, "value 777".to_owned()),
            (
                Some(CODE),
                3,
                b"{",
                b"",
                "value { Some(Command(Command { exit_code: 3".to_owned(),
            ),
        ]);
    }

    #[test]
    fn output_is_in_no_message_unless_it_is_quoted() {
        let secret = transcript(b"secret-of-the-server", b"", &exit(3));
        let words = |shows: bool| said(interpret_command(&request(None, shows), &secret));
        assert!(!words(false).contains("secret-of"), "{}", words(false));
        assert!(
            words(true).contains("ends with \"secret-of-the-server\""),
            "{}",
            words(true)
        );
        let long = format!("{}é{}", "x".repeat(900), "y".repeat(511));
        let long = transcript(long.as_bytes(), b"", &exit(3));
        assert!(said(interpret_command(&request(None, true), &long)).len() < 700);
    }

    #[test]
    fn every_status_but_that_of_an_exit_is_an_error() {
        let mut no_code = exit(3);
        no_code["details"] = json!({});
        let mut zero = exit(3);
        zero["details"]["causes"][0]["message"] = json!("0");
        let not_found = json!({ "status": "Failure", "reason": "InternalError",
            "message": format!("executable file not found in $PATH{}", "x".repeat(9000)) });
        for (status, wanted) in [
            (
                no_code,
                "MalformedAnswer: the exit status of the command has no exit code",
            ),
            (
                zero,
                "MalformedAnswer: the exit status of the command has no exit code",
            ),
            (
                not_found,
                "CommandNotRun: command in container game of Pod arena-x could not be run: executable file not found \
                 in $PATH",
            ),
            (
                json!({ "status": "Failure" }),
                "CommandNotRun: command in container game of Pod arena-x could not be run: no reason given",
            ),
            (
                json!({ "status": "success" }),
                "MalformedAnswer: the exit status of the command is neither",
            ),
            (
                json!({}),
                "MalformedAnswer: the exit status of the command is neither",
            ),
            (
                json!([1]),
                "MalformedAnswer: the exit status of the command is neither",
            ),
        ] {
            for reads in [None, Some(ALL)] {
                let said = said(interpret_command(
                    &request(reads, false),
                    &transcript(b"0", b"", &status),
                ));
                assert!(said.starts_with(wanted) && said.len() < 500, "{status}: {said}");
            }
        }
    }

    /// A kubelet that restarts, a node that dies and a proxy that gives up cut the stream at any byte.
    #[test]
    fn no_beginning_of_a_stream_decides_anything() {
        for code in [0, 3] {
            let status = exit(code).to_string();
            let stream: Vec<(u8, u8)> = [(1, "0\n"), (2, "warning"), (3, status.as_str())]
                .iter()
                .flat_map(|(channel, data)| data.bytes().map(move |byte| (*channel, byte)))
                .collect();
            for end in 0..=stream.len() {
                let mut transcript = Transcript::default();
                let mut is_whole = false;
                for (channel, byte) in &stream[..end] {
                    is_whole = transcript.add(&[*channel, *byte]).unwrap();
                }
                assert_eq!(is_whole, end == stream.len());
                for reads in [None, Some(RESULT), Some(CODE), Some(ALL)] {
                    let outcome = interpret_command(&request(reads, false), &transcript);
                    match outcome {
                        Err(failure) => {
                            assert!(
                                !is_whole && failure.kind == MeasurementReason::CommandLost,
                                "{failure}"
                            );
                        }
                        Ok(_) => assert!(is_whole, "{end} of {}", stream.len()),
                    }
                }
            }
        }
        let mut odd = Transcript::default();
        for channel in [0, 4, 255] {
            assert_eq!(
                odd.add(&[channel, 1]).unwrap_err().kind,
                MeasurementReason::MalformedAnswer
            );
        }
        let chunk = frame(1, &vec![b'y'; 1 << 20]);
        let flood = (0..80).find_map(|_| odd.add(&chunk).err()).unwrap();
        assert_eq!(flood.kind, MeasurementReason::MalformedAnswer);
        let long = frame(3, &vec![b' '; MAX_STATUS + 1]);
        assert_eq!(
            odd.add(&long).unwrap_err().kind,
            MeasurementReason::MalformedAnswer
        );
    }

    fn pod(uid: &str, id: &str, state: &Value) -> Pod {
        let status = json!({ "name": "game", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": id, "state": state });
        let sidecar = json!({ "name": "proxy", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "containerID": "c", "state": { "running": {} } });
        serde_json::from_value(json!({ "metadata": { "uid": uid },
            "status": { "containerStatuses": [status], "initContainerStatuses": [sidecar] } }))
        .unwrap()
    }

    #[test]
    fn a_command_counts_in_the_container_in_which_it_began() {
        let running = json!({ "running": {} });
        let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff" } });
        let request = request(None, false);
        let in_container =
            |container: &str, pod: &Pod| running_container(&request.pod, container, Some("u"), pod);
        let begin = |pod: &Pod| in_container("game", pod);
        let before = begin(&pod("u", "c1", &running)).unwrap();
        assert!(in_container("proxy", &pod("u", "c1", &running)).is_ok());
        let unknown = in_container("nobody", &pod("u", "c1", &running)).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "Pod arena-x has no container nobody; its containers are game, proxy"
        );
        let stopped = begin(&pod("u", "c1", &waiting)).unwrap_err();
        assert_eq!(
            stopped.to_string(),
            "container game of Pod arena-x is not running (CrashLoopBackOff)"
        );
        for failure in [unknown, stopped] {
            assert_eq!(failure.kind, MeasurementReason::CommandNotRun);
        }
        assert_eq!(
            begin(&pod("other", "c1", &running)).unwrap_err().kind,
            MeasurementReason::ObjectGone
        );
        for (code, after, wanted) in [
            (0, pod("u", "c1", &running), None),
            (3, pod("u", "c1", &running), None),
            (0, pod("u", "c2", &running), None),
            (
                137,
                pod("u", "c2", &running),
                Some(MeasurementReason::CommandLost),
            ),
            (1, pod("u", "c1", &waiting), Some(MeasurementReason::CommandLost)),
            (
                0,
                pod("other", "c1", &running),
                Some(MeasurementReason::ObjectGone),
            ),
            (
                1,
                pod("other", "c1", &running),
                Some(MeasurementReason::ObjectGone),
            ),
        ] {
            // Without a pod of its own, the run measures the pod in which its command began.
            let end = check_end(
                &request,
                None,
                &before,
                &after,
                &transcript(b"", b"", &exit(code)),
            );
            assert_eq!(end.err().map(|failure| failure.kind), wanted, "{code}");
            let end = check_end(
                &request,
                Some("u"),
                &before,
                &after,
                &transcript(b"", b"", &exit(code)),
            );
            assert_eq!(end.err().map(|failure| failure.kind), wanted, "{code}");
        }
    }
}
