//! Screens of the document `docs/screens.md`: the real output for 24 game servers, of which six wait for two reasons, on
//! terminals of two sizes. Every run compares them; `cargo xtask pictures` writes them.

use std::path::Path;

use operator_tests::fleet::{empty_now, game, hooked};
use operator_tests::{Fleet, merge};
use serde_json::{Value, json};
use test_kit::Answer;

use crate::fleet;
use crate::terminal::{Terminal, terminal_with, until};

/// Name of the workload.
const GAME: &str = "arena";
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/screens.md");
/// Lines and columns of the terminals.
const SIZES: [(u16, u16); 2] = [(24, 80), (40, 120)];
/// Suffixes of the waiting pods in the document, sorted.
const SUFFIXES: [&str; 6] = ["b4n8c", "d7k2p", "h5t9w", "m6x4q", "q9w5d", "z2v7f"];

#[tokio::test]
async fn two_reasons_of_six_among_24_servers_on_two_terminals() {
    let fleet = fleet("games").await;
    let waiting = six_wait(&fleet).await;
    let directory = tempfile::tempdir().unwrap();
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::copy(fleet.control_plane.kubeconfig_path(), &kubeconfig).unwrap();
    let file = kubeconfig.to_str().unwrap();
    let namespace = format!("--namespace={}", fleet.namespace);
    let set = [
        "--kubeconfig",
        file,
        "config",
        "set-context",
        "--current",
        &namespace,
    ];
    operator_tests::kubectl(fleet.control_plane, &set, "");
    let mut page = Page::read();
    for (lines, columns) in SIZES {
        let get = shown(&kubeconfig, &["get", GAME, "-w"], (lines, columns)).await;
        assert_has_all(
            &get,
            &[
                "HookUnsuccessful",
                "received status 503",
                "Next:",
                "kubectl game retry",
            ],
        );
        let list = shown(&kubeconfig, &["list", "-w"], (lines, columns)).await;
        assert_has_all(&list, &[GAME, "HookUnsuccessful", "lobby", "ranked"]);
        let why = why(&kubeconfig, (lines, columns)).await;
        assert_has_all(
            &why,
            &["HookUnsuccessful", "Next:", "kubectl game retry", "Runbook:"],
        );
        for pod in &waiting {
            // The list of a group is cut at the end of the line.
            let suffix = pod.rsplit('-').next().unwrap();
            assert!(
                columns < 120 || get.iter().any(|line| line.contains(suffix)),
                "{pod}: {get:#?}"
            );
        }
        for (name, screen) in [("get", get), ("list", list), ("why", why)] {
            // The next prompt takes a line.
            let prompt = usize::from(name == "why");
            let needed = height(&screen, columns) + prompt;
            assert!(
                needed <= lines.into(),
                "{name}: {needed} lines of {columns}: {screen:#?}"
            );
            let screen = with_fixed_names(&screen, &waiting, &fleet.namespace);
            page.compare(&format!("{name}-{columns}x{lines}"), &screen);
        }
    }
    page.write();
    assert_eq!(fleet.nodes.terminations().len(), 0, "players were disconnected");
}

/// Runs 24 servers with players and deletes six of them, of which two answer with an error. Returns the names of the six.
async fn six_wait(fleet: &Fleet<'static>) -> Vec<String> {
    let mut hook = empty_now();
    merge(
        &mut hook["metrics"][0],
        json!({ "interval": "1s", "count": 1, "consecutiveErrorLimit": 100_000 }),
    );
    fleet.hook("empty", hook).await;
    for (name, replicas, template) in [
        (GAME, 24, Some("empty")),
        ("lobby", 2, None),
        ("ranked", 3, Some("nobody-plays")),
    ] {
        fleet.apply(&workload(name, replicas, template));
    }
    fleet.nodes.every_pod().set_players(3);
    for (name, replicas) in [("lobby", 2), ("ranked", 3)] {
        fleet
            .until_of(name, |status| status.available_replicas == replicas)
            .await;
    }
    let pods = fleet.until_pods(|pods| pods.len() == 29).await;
    let names = pods.into_keys().filter(|name| name.starts_with(GAME));
    let names: Vec<String> = names.take(6).collect();
    for name in &names[4..] {
        fleet.nodes.pod(name).otherwise(Answer::status(503));
    }
    // One by one: the status lists the longest wait first.
    for count in 1..=names.len() {
        delete(fleet, &names[..count]).await;
    }
    names
}

/// Scales down to delete these pods, and waits until each of them waits for its reason.
async fn delete(fleet: &Fleet<'_>, names: &[String]) {
    let spec = json!({ "replicas": 24 - names.len(), "scaleStrategy": { "podsToDelete": names } });
    let patch = json!({ "spec": spec }).to_string();
    fleet.kubectl(&["patch", "gd", GAME, "--type=merge", "-p", &patch], "");
    fleet
        .until_of(GAME, |status| {
            let reasons = status.pre_delete_hook_condition.iter();
            let reasons: Vec<_> = reasons.filter_map(|entry| entry.reason.as_deref()).collect();
            let count = |wanted: &str| reasons.iter().filter(|reason| **reason == wanted).count();
            (count("HookUnsuccessful"), count("HookErrors"))
                == (names.len().min(4), names.len().saturating_sub(4))
        })
        .await;
}

/// Builds a workload, optionally with a hook.
fn workload(name: &str, replicas: usize, template: Option<&str>) -> Value {
    let mut manifest = game(replicas, template.map_or(json!({}), hooked));
    manifest["metadata"]["name"] = json!(name);
    let labels = json!({ "app": name });
    manifest["metadata"]["labels"] = labels.clone();
    manifest["spec"]["selector"]["matchLabels"] = labels.clone();
    manifest["spec"]["template"]["metadata"]["labels"] = labels;
    manifest
}

fn assert_has_all(screen: &[String], words: &[&str]) {
    for word in words {
        assert!(
            screen.iter().any(|line| line.contains(word)),
            "{word}: {screen:#?}"
        );
    }
}

/// Returns the last screen of a command that is redrawn.
async fn shown(kubeconfig: &Path, words: &[&str], (lines, columns): (u16, u16)) -> Vec<String> {
    let mut terminal = terminal_with(kubeconfig, words, lines, columns);
    until(&terminal, |shown| {
        shown.contains("✖ HookUnsuccessful") && shown.contains("INFO") != shown.contains("lobby")
    })
    .await;
    assert_eq!(terminal.interrupt(), 0, "{}", terminal.transcript());
    terminal.last_screen()
}

/// Returns the output of `kubectl game why`.
async fn why(kubeconfig: &Path, (lines, columns): (u16, u16)) -> Vec<String> {
    let mut terminal: Terminal = terminal_with(kubeconfig, &["why", GAME], lines, columns);
    until(&terminal, |shown| shown.contains("Runbook:")).await;
    assert_eq!(terminal.ended(), 0, "{}", terminal.transcript());
    terminal.shows()
}

/// Returns the number of lines that the terminal needs.
fn height(screen: &[String], columns: u16) -> usize {
    let rows = |line: &String| line.chars().count().div_ceil(columns.into()).max(1);
    screen.iter().map(rows).sum()
}

/// First three numbers of a pod's address in the document, by their length.
fn network(length: usize) -> &'static str {
    match length {
        ..=7 => "10.24.7",
        8 => "10.244.7",
        9 => "10.244.17",
        _ => "10.244.117",
    }
}

/// Replaces the addresses of simulated nodes by those of a cluster.
fn with_addresses(mut text: String) -> String {
    while let Some((before, rest)) = text.split_once("http://127.") {
        let length = "127.".len() + rest.match_indices('.').nth(1).unwrap().0;
        let rest = &rest[length - "127.".len()..];
        text = format!("{before}http://{}{rest}", network(length));
    }
    text
}

/// Replaces the random parts of names and addresses by others of the same length. `pods`: sorted.
fn with_fixed_names(screen: &[String], pods: &[String], namespace: &str) -> String {
    let mut text = with_addresses(screen.join("\n") + "\n");
    let (_, random) = namespace.rsplit_once('-').unwrap();
    text = text.replace(random, &"x7k2p9w4m6b8".repeat(3)[..random.len()]);
    for (pod, fixed) in pods.iter().zip(SUFFIXES) {
        let (_, suffix) = pod.rsplit_once('-').unwrap();
        assert_eq!(suffix.len(), fixed.len(), "{pod}");
        text = text.replace(suffix, fixed);
    }
    text
}

/// Document with the screens, each below a mark with its name.
struct Page {
    text: String,
    writes: bool,
    differences: Vec<String>,
}

impl Page {
    fn read() -> Self {
        Self {
            text: std::fs::read_to_string(PAGE).unwrap(),
            writes: std::env::var("RECORDING").as_deref() == Ok("write"),
            differences: Vec::new(),
        }
    }

    /// Compares a screen with that of the document, apart from ages and counts that grow; or replaces it.
    fn compare(&mut self, name: &str, screen: &str) {
        let mark = format!("<!-- screen {name} -->\n```text\n");
        let (before, rest) = self
            .text
            .split_once(&mark)
            .unwrap_or_else(|| panic!("no {mark:?}"));
        let (known, after) = rest.split_once("```").unwrap();
        if self.writes {
            self.text = format!("{before}{mark}{screen}```{after}");
        } else if timeless(known) != timeless(screen) {
            self.differences.push(format!("{name}:\n{screen}"));
        }
    }

    fn write(self) {
        if self.writes {
            std::fs::write(PAGE, self.text).unwrap();
            println!("wrote docs/screens.md");
        }
        assert!(
            self.differences.is_empty(),
            "docs/screens.md differs, `cargo xtask pictures` writes it:\n{}",
            self.differences.join("\n")
        );
    }
}

/// Returns the words of a screen, without ages, addresses, counts of errors and words that are cut.
fn timeless(screen: &str) -> Vec<String> {
    let counts_errors = screen.replace(" consecutive errors", "_errors");
    let words = counts_errors.split_whitespace().map(|word| {
        let is_age = word.ends_with(['s', 'm'])
            && word
                .trim_end_matches(['s', 'm'])
                .bytes()
                .all(|b| b.is_ascii_digit());
        match word {
            _ if is_age || word.contains('…') => "",
            _ if word.starts_with('⚠') => "⚠",
            _ if word.contains("http://10.") => "(URL)",
            _ if word.ends_with("_errors).") => "(errors)",
            word => word,
        }
    });
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn ages_addresses_and_counts_of_errors_are_not_compared() {
    let one = "a  5s ⚠12 b (GET http://10.1.2.3:9091): (5 consecutive errors).\n";
    let other = "a 12s  ⚠130 b (GET\nhttp://10.11.22.33:9091): (6 consecutive errors).";
    assert_eq!(timeless(one), timeless(other));
    assert_ne!(timeless("a 5s b"), timeless("a 5s c"));
    assert_eq!(
        with_addresses("(GET http://127.182.0.36:9091): http://127.8.0.20:1".to_owned()),
        "(GET http://10.244.17.36:9091): http://10.24.7.20:1"
    );
}
