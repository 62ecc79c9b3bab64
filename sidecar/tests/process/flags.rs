//! Errors on the command line.

use std::io::Read;
use std::process::Stdio;

use crate::sidecar::command;
use crate::wait::eventually;

/// Exit code and standard error, with these flags.
fn run(flags: &[&str]) -> (Option<i32>, String) {
    let mut child = command(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut tries = 0;
    let status = eventually(|| {
        let status = child.try_wait().unwrap();
        tries += 1;
        if status.is_none() && tries > 200 {
            child.kill().unwrap();
            return Ok(child.wait().unwrap());
        }
        status.ok_or("runs")
    });
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (status.code(), text)
}

/// A flag with a value that is wrong.
const WRONG: [(&str, &str); 45] = [
    ("--source", "tcp"),
    ("--source", "UDP"),
    ("--source", "udp,http"),
    ("--game-port", "0/udp"),
    ("--game-port", "0/tcp"),
    ("--game-port", "70000/udp"),
    ("--game-port", "65536/tcp"),
    ("--game-port", "7777"),
    ("--game-port", "7777/sctp"),
    ("--game-port", "7777/UDP"),
    ("--game-port", "7777/"),
    ("--game-port", "/udp"),
    ("--game-port", "udp/7777"),
    ("--game-port", "7777/udp/tcp"),
    ("--game-port", "7777 /udp"),
    ("--game-port", "+7777/udp"),
    ("--game-port", "-1/udp"),
    ("--game-port", "7777-7779/udp"),
    ("--game-port", "None"),
    ("--game-port", "none/udp"),
    ("--game-port", "all"),
    ("--fresh-for", "1s"),
    ("--fresh-for", "0s"),
    ("--fresh-for", "1999ms"),
    ("--fresh-for", "11m"),
    ("--fresh-for", "601s"),
    ("--fresh-for", "600001ms"),
    ("--fresh-for", "1h"),
    ("--fresh-for", "abc"),
    ("--fresh-for", "-5s"),
    ("--fresh-for", "99999999999999999999s"),
    ("--fresh-for", "NaN"),
    ("--report-address", "0.0.0.0:1"),
    ("--report-address", "192.0.2.1:1"),
    ("--report-address", "[::]:1"),
    ("--report-address", "[2001:db8::1]:1"),
    ("--report-address", "128.0.0.1:1"),
    ("--report-address", "127.0.0.1"),
    ("--report-address", "127.0.0.1:70000"),
    ("--report-address", "localhost:9358"),
    ("--report-address", ":9358"),
    ("--listen", "9357"),
    ("--listen", "0.0.0.0"),
    ("--listen", "0.0.0.0:70000"),
    ("--listen", "abc"),
];

#[test]
fn a_wrong_value_is_named_with_its_flag() {
    let mut wrong = Vec::new();
    for (flag, value) in WRONG {
        // All others are right, so that only this one can be the cause.
        let mut flags = vec![format!("{flag}={value}")];
        let right = [
            ("--source", "udp"),
            ("--game-port", "none"),
            ("--listen", "127.0.0.1:0"),
            ("--report-address", "127.0.0.1:0"),
        ];
        let others = right.iter().filter(|(other, _)| *other != flag);
        flags.extend(others.map(|(flag, value)| format!("{flag}={value}")));
        let (code, text) = run(&flags.iter().map(String::as_str).collect::<Vec<_>>());
        if code != Some(2) || !text.contains(flag) || !text.contains(value) {
            wrong.push(format!("{flag}={value}: {code:?} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_missing_flag_is_named() {
    for (flags, missing) in [
        (["--game-port", "none"], "--source"),
        (["--source", "udp"], "--game-port"),
        (["--source", "http"], "--game-port"),
        (["--source", "file"], "--game-port"),
    ] {
        let (code, text) = run(&flags);
        assert_eq!(code, Some(2), "{flags:?}: {text}");
        assert!(text.contains(missing), "{flags:?}: {text}");
    }
    let (code, text) = run(&[]);
    assert_eq!(code, Some(2));
    assert!(
        text.contains("--source") && text.contains("--game-port"),
        "{text}"
    );
}

#[test]
fn a_file_needs_the_source_that_reads_it() {
    for source in ["udp", "http"] {
        let flags = [
            "--game-port",
            "none",
            "--source",
            source,
            "--players-file",
            "/tmp/players",
        ];
        let (code, text) = run(&flags);
        assert_eq!(code, Some(2), "{text}");
        assert!(
            text.contains("--players-file") && text.contains("/tmp/players"),
            "{text}"
        );
    }
}

#[test]
fn unknown_flags_and_words_are_errors() {
    for word in ["--fresh", "--port=1", "-x", "players", "--no-such-flag"] {
        let (code, text) = run(&["--source", "udp", "--game-port", "none", word]);
        assert_eq!(code, Some(2), "{word}: {text}");
        assert!(text.contains(word.split('=').next().unwrap()), "{word}: {text}");
    }
    let (code, text) = run(&["--source", "udp", "--source", "http", "--game-port", "none"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--source"), "{text}");
}

#[test]
fn a_port_of_the_sidecar_itself_is_no_game_port() {
    // It would hold the port for ever: no restart of the game server would be noticed.
    let mut wrong = Vec::new();
    for (source, game_port, report) in [
        ("udp", "19358/udp", "127.0.0.1:19358"),
        ("http", "19358/tcp", "127.0.0.1:19358"),
        ("udp", "19357/tcp", "127.0.0.1:19358"),
        ("http", "19357/tcp", "127.0.0.1:19358"),
    ] {
        let listen = ["--listen", "127.0.0.1:19357", "--report-address", report];
        let flags = ["--source", source, "--game-port", game_port];
        let (code, text) = run(&[flags, listen].concat());
        if code != Some(2) || !text.contains("--game-port") || !text.contains(game_port) {
            wrong.push(format!("{flags:?}: {code:?} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
