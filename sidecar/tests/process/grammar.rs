//! Reports that the sidecar can read, and those that void what was known.

use crate::world::{Source, World};

/// Pads a report with blanks to a length.
fn padded(report: &str, length: usize) -> Vec<u8> {
    format!("{report:<length$}").into_bytes()
}

fn readable() -> Vec<(Vec<u8>, u32)> {
    let mut reports: Vec<(Vec<u8>, u32)> = [
        ("0", 0),
        ("3\n", 3),
        ("\t 3\r\n", 3),
        ("4294967295", u32::MAX),
        (r#"{"players":3}"#, 3),
        ("\n{ \"players\" :\t7 }\r\n", 7),
        (r#"{"players":4294967295}"#, u32::MAX),
        (r#"{"map":"x","players":5,"teams":[{"players":9}]}"#, 5),
        (
            r#"{"players":6,"max":1.5e300,"motd":"\u00e9\"players\":0","none":null}"#,
            6,
        ),
        (r#"{"a":1,"a":2,"players":8}"#, 8),
        (r#"{"":0,"Players":0,"players ":0,"players":4}"#, 4),
    ]
    .map(|(text, number)| (text.as_bytes().to_vec(), number))
    .into();
    reports.push((padded("2", 512), 2));
    reports.push((padded(r#"{"players":1}"#, 512), 1));
    reports
}

fn unreadable() -> Vec<Vec<u8>> {
    let texts = [
        "",
        " \n",
        "-1",
        "-0",
        "+3",
        "3.0",
        "3.",
        "3e0",
        "03",
        "00",
        "0x3",
        "1_000",
        "1,000",
        "3 4",
        "3\n0",
        "3\0",
        "\0",
        "abc",
        "NaN",
        "null",
        "true",
        "[3]",
        r#""3""#,
        "3;",
        "4294967296",
        "18446744073709551616",
        "\u{feff}3",
        "\u{ff13}",
        "\u{663}",
        "{}",
        "{",
        r#"{"players":3"#,
        r#"{"players":3}}"#,
        r#"{"players":3} 0"#,
        r#"{"players":3}{"players":0}"#,
        r#"[{"players":3}]"#,
        r#"{"players":"3"}"#,
        r#"{"players":null}"#,
        r#"{"players":[3]}"#,
        r#"{"players":{"players":3}}"#,
        r#"{"players":true}"#,
        r#"{"players":-1}"#,
        r#"{"players":-0}"#,
        r#"{"players":+3}"#,
        r#"{"players":3.0}"#,
        r#"{"players":3e0}"#,
        r#"{"players":0.0}"#,
        r#"{"players":03}"#,
        r#"{"players":4294967296}"#,
        r#"{"players":1e400}"#,
        r#"{"Players":3}"#,
        r#"{"player":3}"#,
        r"{players:3}",
        r"{'players':3}",
        r#"{"players":3,}"#,
        r#"{"players":3,"players":3}"#,
        r#"{"players":3,"players":"x"}"#,
        r#"{"players":0,"x":1,"pl\u0061yers":5}"#,
        r#"{"server":{"players":3}}"#,
        "{\"players\":3,\"x\":\"\n\"}",
    ];
    let mut reports: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    reports.push(vec![0xff]);
    reports.push(b"3\xff".to_vec());
    reports.push(b"3\0\0\0".to_vec());
    reports.push("3".encode_utf16().flat_map(u16::to_le_bytes).collect());
    reports.push(padded("0", 513));
    reports.push(padded(r#"{"players":0}"#, 513));
    reports.push(padded("0", 4096));
    // The longest datagram.
    reports.push(padded("0", 65_507));
    // In a member that is ignored.
    reports.push(b"{\"players\":3,\"x\":\"\xc3\x28\"}".to_vec());
    reports
}

/// Sends every report once, between good ones.
fn check(source: Source) {
    let mut world = World::start(source);
    world.know(0);
    for (report, number) in readable() {
        world.say_bytes(&report, Some(number));
        let shown = String::from_utf8_lossy(&report);
        assert_eq!(world.ask().number(), Some(number), "{shown:?}");
    }
    for report in unreadable() {
        world.say(0);
        assert_eq!(world.ask().number(), Some(0));
        world.say_bytes(&report, None);
        let shown = String::from_utf8_lossy(&report);
        assert_eq!(world.ask().reason(), "Unreadable", "{shown:?}");
        assert_eq!(world.ask().reason(), "Unreadable", "{shown:?}");
        world.say(7);
        assert_eq!(world.ask().number(), Some(7), "after {shown:?}");
    }
}

#[test]
fn each_unreadable_datagram_voids_and_the_next_good_one_counts() {
    check(Source::Udp);
}

#[test]
fn each_unreadable_body_voids_and_the_next_good_one_counts() {
    check(Source::Http);
}

#[test]
fn each_unreadable_file_voids_and_the_next_good_one_counts() {
    check(Source::File);
}

#[test]
fn json_that_is_deeper_than_any_parser_likes_is_survived() {
    let mut world = World::start(Source::Udp);
    world.know(0);
    let deep = format!(r#"{{"x":{},"players":0}}"#, "[".repeat(480));
    world.say_bytes(deep.as_bytes(), None);
    assert_eq!(world.ask().reason(), "Unreadable");
    let closed = format!(r#"{{"x":{}{},"players":2}}"#, "[".repeat(240), "]".repeat(240));
    world.say_bytes(closed.as_bytes(), Some(2));
    let answer = world.ask();
    assert!(
        answer.number() == Some(2) || answer.reason() == "Unreadable",
        "{answer:?}"
    );
    world.say(1);
    assert_eq!(world.ask().number(), Some(1));
}
