//! `kubectl game hook run`: a whole run against a sample server.

use serde_json::{Value, json};
use test_kit::{Answer, Webhook};

use crate::{Manifest, Said, example, hook};

/// Runs a template with one metric against `answers`, and counts the requests.
fn measured(metric: &str, answers: impl Into<test_kit::webhook::Script>) -> (Said, usize) {
    let game = Webhook::start().unwrap();
    game.on("/players", answers);
    let url = game.url("/players");
    let manifest = Manifest::template(metric, &format!("url: {url}\njsonPath: '{{$.players}}'"));
    let said = hook(&["run", "-f", manifest.path()]);
    (said, game.requests("/players").len())
}

fn players(number: i64) -> Answer {
    Answer::json(json!({ "players": number }))
}

/// Removes the time and the durations from live output.
fn timeless(line: &str) -> String {
    let line = line
        .split_once(' ')
        .filter(|(clock, _)| clock.len() == 8 && clock.contains(':'));
    let line = line.map_or("", |(_, rest)| rest);
    let (said, aside) = line.rsplit_once(" (").unwrap_or((line, ""));
    let next = aside
        .split_once(", ")
        .map(|(_, next)| format!(" ({next}"))
        .unwrap_or_default();
    format!("{said}{next}")
}

#[test]
fn every_phase_has_its_exit_code() {
    let (said, requests) = measured("successCondition: result == 0", players(0));
    assert_eq!((said.code, requests), (0, 1), "{said:?}");
    let (said, requests) = measured("successCondition: result == 0", players(7));
    assert_eq!((said.code, requests), (1, 1), "{said:?}");
    let (said, requests) = measured("consecutiveErrorLimit: 0", Answer::status(503));
    assert_eq!((said.code, requests), (2, 1), "{said:?}");
    let both = "successCondition: result == 0\nfailureCondition: result > 9";
    let (said, requests) = measured(both, players(5));
    assert_eq!((said.code, requests), (3, 1), "{said:?}");
}

#[test]
fn a_hostile_server_cannot_command_the_terminal() {
    let hostile = "\u{1b}]0;owned\u{7}bu\u{202e}sy\rx";
    let is_hostile = |c: char| c != '\n' && !redact::is_printable(c);
    let game = Webhook::start().unwrap();
    game.on("/text", Answer::text(hostile));
    game.on("/json", Answer::json(json!({ hostile: hostile })));
    game.on("/page", Answer::text(hostile).with_status(503));
    for (path, metric) in [
        ("/text", "successCondition: result != \"idle\""),
        ("/text", "successCondition: result == \"idle\""),
        ("/text", "successCondition: asInt(result) > 0"),
        ("/json", "successCondition: result.x == 1"),
        ("/json", "failureCondition: len(result) == 2"),
        ("/page", "successCondition: result == \"idle\""),
    ] {
        let metric = format!("{metric}\nconsecutiveErrorLimit: 0");
        let manifest = Manifest::template(&metric, &format!("url: {}", game.url(path)));
        for format in [&["--no-color"][..], &["-o", "json"], &["-o", "yaml"]] {
            let said = hook(&[&["run", "-f", manifest.path()], format].concat());
            assert!(!said.out.contains(is_hostile), "{metric}: {said:?}");
            assert!(!said.err.contains(is_hostile), "{metric}: {said:?}");
            assert!(said.out.contains("owned"), "{metric}: {said:?}");
        }
    }
    let manifest = Manifest::template("successCondition: result == \"idle\"", "url: http://game/");
    let said = hook(&["evaluate", "-f", manifest.path(), "--result", hostile]);
    assert!(
        said.out.contains("owned") && !said.out.contains(is_hostile),
        "{said:?}"
    );
}

#[test]
fn each_measurement_is_shown_when_it_was_taken() {
    let metric = "interval: 100ms\nconsecutiveSuccessfulLimit: 2\nsuccessCondition: result == 0";
    let answers = players(3).then(Answer::status(503)).then(players(0));
    let (said, requests) = measured(metric, answers);
    assert_eq!((said.code, requests), (0, 4), "{said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(
        lines[0].starts_with("metric m: GET http://127.0.0.1:"),
        "{said:?}"
    );
    let live: Vec<String> = lines[1..5].iter().map(|line| timeless(line)).collect();
    assert_eq!(
        live,
        [
            "m #1  x Failed       \"3\" does not satisfy result == 0 (next in 0.1 s)",
            "m #2  ! Error        received status 503 (next in 0.1 s)",
            "m #3  + Successful   \"0\" (next in 0.1 s)",
            "m #4  + Successful   \"0\"",
        ]
    );
    assert_eq!(
        lines[5..],
        [
            "+ Successful   t",
            "  metric m Successful: \"0\" satisfies result == 0 (2 consecutive successes >= consecutiveSuccessfulLimit 2)",
        ]
    );
    assert_eq!(said.err, "");
}

#[test]
fn the_final_status_can_be_had_as_json_or_yaml() {
    let game = Webhook::start().unwrap();
    game.on("/players", players(3));
    let manifest = Manifest::template(
        "successCondition: result == 0",
        &format!("url: {}\njsonPath: '{{$.players}}'", game.url("/players")),
    );
    let json = hook(&["run", "-f", manifest.path(), "-o", "json"]);
    let status: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, json.err.as_str()), (1, ""));
    assert_eq!(status["phase"], "Failed");
    assert_eq!(status["reason"], "FailureLimitExceeded");
    assert_eq!(status["metricResults"][0]["measurements"][0]["value"], json!("3"));
    let yaml = hook(&["run", "-f", manifest.path(), "-o", "yaml"]);
    assert_eq!(yaml.code, 1);
    assert!(yaml.out.starts_with("phase: Failed\n"), "{}", yaml.out);
    assert_eq!(game.requests("/players").len(), 2);
}

#[test]
fn arguments_are_filled_in_as_a_workload_would() {
    let game = Webhook::start().unwrap();
    let rooms = json!({ "rooms": [{ "state": "closed" }] });
    game.on("/rooms", Answer::json(rooms));
    let address = game.address().to_string();
    let text = std::fs::read_to_string(example("04"))
        .unwrap()
        .replace("{{ args.PodIP }}:9091", "{{ args.PodIP }}");
    let manifest = Manifest::new(&text);
    let ip = format!("PodIP={address}");
    let arguments = [
        &*ip,
        "PodName=game a&b",
        "PodNamespace=games",
        "service-name=lobby",
        "region=asia",
    ];
    let arguments = arguments.map(|argument| ["--arg", argument]);
    let said = hook(&[&["run", "-f", manifest.path()], arguments.as_flattened()].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let seen = game.all_requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].query, "pod=game%20a%26b&namespace=games");
    assert_eq!(seen[0].header("x-service"), Some("lobby"));
    assert_eq!(seen[0].header("x-region"), Some("asia"));
}

#[test]
fn a_secret_is_sent_and_never_shown() {
    let game = Webhook::start().unwrap();
    game.on("/v1/leave", Answer::echo());
    let address = game.address().to_string();
    let text = std::fs::read_to_string(example("05"))
        .unwrap()
        .replace("matchmaker.games.svc:8080", &address);
    let accepted = "result.accepted && result.pending == 0";
    let text = text.replace(accepted, "result.path == \"/elsewhere\"");
    let manifest = Manifest::new(&text);
    let secret = "matchmaker/authorization=Bearer hush-hush-hush";
    let words = ["--arg", "PodName=game-1", "--secret", secret];
    let said = hook(&[&["run", "-f", manifest.path()], &words[..]].concat());
    assert_eq!(said.code, 1, "{said:?}");
    assert!(!format!("{said:?}").contains("hush-hush-hush"), "{said:?}");
    let seen = game.all_requests();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].header("authorization"), Some("Bearer hush-hush-hush"));
    let sent = json!({ "server": "game-1", "reason": "scale-down", "wait": true });
    assert_eq!(seen[0].json().unwrap(), sent);
}

#[test]
fn a_secret_that_is_not_given_is_an_error_with_its_remedy() {
    let text = std::fs::read_to_string(example("05")).unwrap();
    let name = "    - name: leave\n";
    let text = text.replace(name, &format!("{name}      consecutiveErrorLimit: 0\n"));
    let manifest = Manifest::new(&text);
    let said = hook(&["run", "-f", manifest.path(), "--arg", "PodName=game-1"]);
    assert_eq!(said.code, 2, "{said:?}");
    let remedy = "pass --secret matchmaker/authorization=VALUE";
    assert!(said.out.contains(remedy), "{said:?}");
}

#[test]
fn a_local_run_does_not_wait_for_its_time_to_live() {
    let game = Webhook::start().unwrap();
    game.on("/players", players(0));
    let text = std::fs::read_to_string(example("10")).unwrap();
    let text = text
        .replace("http://{{ args.PodIP }}:9091", &game.url(""))
        .replace("interval: 5s", "interval: 1ms");
    let manifest = Manifest::new(&text);
    let said = hook(&["run", "-f", manifest.path()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("3 of 3 measurements successful"), "{said:?}");
    assert_eq!(game.requests("/players").len(), 3);
}

#[test]
fn a_run_that_polls_in_vain_ends_with_its_timeout() {
    let game = Webhook::start().unwrap();
    game.on("/players", players(3));
    let text = std::fs::read_to_string(example("03")).unwrap();
    let text = text
        .replace("http://{{ args.PodIP }}:9091", &game.url(""))
        .replace("timeoutSeconds: 3600", "timeoutSeconds: 1");
    let manifest = Manifest::new(&text);
    let said = hook(&["run", "-f", manifest.path(), "--arg", "PodIP=unused"]);
    assert_eq!(said.code, 2, "{said:?}");
    let verdict = "! Error        drained\n  metric players Error: run timed out\n";
    assert!(said.out.ends_with(verdict), "{said:?}");
    assert_eq!(game.requests("/players").len(), 1);
}
