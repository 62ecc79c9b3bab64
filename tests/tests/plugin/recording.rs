//! Picture of the README: the real output of `get -w` while servers drain. Every run draws it, so that
//! drawing keeps working; `cargo xtask pictures` writes it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use operator_tests::fleet::{GAME, empty_now, game, hooked};
use serde_json::json;

use crate::fleet;
use crate::plugin::Plugin;
use crate::screen::Line;
use crate::terminal::{terminal_of, until};

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/pictures/drain.svg");
const COLUMNS: u16 = 108;
const LINES: u16 = 25;
/// Width and height of a letter, in pixels.
const WIDTH: f64 = 7.83;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 14.0;
/// Maximum and minimum duration of a frame: viewers read slower than the operators work.
const LONGEST: Duration = Duration::from_millis(2500);
const SHORTEST: Duration = Duration::from_millis(700);
/// Duration of a frame before a user's action.
const READ: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_drain_as_the_readme_shows_it() {
    let fleet = fleet("games").await;
    let mut hook = empty_now();
    // Three measurements, so that the picture shows them.
    for (field, value) in [
        ("count", json!(3)),
        ("successfulLimit", json!(3)),
        ("interval", json!("1s")),
    ] {
        hook["metrics"][0][field] = value;
    }
    fleet.hook("nobody-plays", hook).await;
    fleet.launch(&game(4, hooked("nobody-plays"))).await;
    fleet.nodes.every_pod().set_players(0);
    let plugin = Plugin { fleet: &fleet };
    let mut terminal = terminal_of(&fleet, &["get", GAME, "-w"], LINES, COLUMNS);
    let steady = |pods: usize| {
        move |shown: &str| shown.contains("✔ RolloutComplete") && shown.matches("✔ Ready").count() == pods
    };
    until(&terminal, steady(4)).await;
    let mut captions = vec![(
        Instant::now(),
        "four game servers; the hook succeeds when nobody plays".to_owned(),
    )];
    let mut does = |words: &str| captions.push((Instant::now(), words.to_owned()));

    does(&format!(
        "$ kubectl game scale {GAME} --replicas 3     nobody plays: the hook succeeds"
    ));
    plugin.ok(&format!("scale {GAME} --replicas 3")).await;
    until(&terminal, steady(3)).await;
    fleet.nodes.every_pod().set_players(7);
    does(&format!(
        "$ kubectl game scale {GAME} --replicas 2     seven play: the hook fails, the server stays"
    ));
    plugin.ok(&format!("scale {GAME} --replicas 2")).await;
    until(&terminal, |shown| {
        shown.contains("✖ HookUnsuccessful") && shown.contains("last \"7\"")
    })
    .await;
    fleet.nodes.every_pod().set_players(0);
    does(&format!(
        "$ kubectl game retry {GAME}     the match is over: run again, the hook succeeds"
    ));
    plugin.ok(&format!("retry {GAME}")).await;
    until(&terminal, steady(2)).await;
    assert_eq!(terminal.interrupt(), 0, "{}", terminal.transcript());

    let frames = frames(&terminal.recording(), &captions);
    let text = |frame: &Frame| frame.lines.iter().map(Line::text).collect::<Vec<_>>().join("\n");
    let shown: Vec<String> = frames.iter().map(text).collect();
    for wanted in [
        "◌ PreDelete",
        "✖ HookUnsuccessful",
        "kubectl game retry",
        "2 desired, 2 current",
    ] {
        assert!(
            shown.iter().any(|frame| frame.contains(wanted)),
            "{wanted}: {shown:#?}"
        );
    }
    let svg = svg(&frames);
    assert_eq!(svg.matches("<g class=\"frame\"").count(), frames.len());
    if std::env::var("RECORDING").as_deref() == Ok("write") {
        std::fs::write(PICTURE, svg).unwrap();
        println!("wrote docs/pictures/drain.svg: {} frames", frames.len());
    }
    fleet.settled(2).await;
}

/// Screen shown for a while, with the caption of the latest action.
struct Frame {
    lines: Vec<Line>,
    caption: String,
    shown: Duration,
}

/// Returns the screens that differ in more than ages, each for as long as a reader needs.
fn frames(recording: &[(Instant, Vec<Line>)], captions: &[(Instant, String)]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    for (number, (moment, lines)) in recording.iter().enumerate() {
        let caption = captions.iter().rev().find(|(since, _)| since <= moment);
        // Before the first caption, the terminal is still filling; after the end, it is restored.
        let Some((_, caption)) = caption else { continue };
        let until = recording.get(number + 1).map_or(*moment, |(next, _)| *next);
        let shown = until.duration_since(*moment);
        match frames.last_mut() {
            Some(last) if last.caption == *caption && same(&last.lines, lines) => last.shown += shown,
            _ if lines.len() < 4 => {}
            _ => frames.push(Frame {
                lines: lines.clone(),
                caption: caption.clone(),
                shown,
            }),
        }
    }
    let read: Vec<bool> = (0..frames.len())
        .map(|at| {
            frames
                .get(at + 1)
                .is_none_or(|next| next.caption != frames[at].caption)
        })
        .collect();
    for (frame, read) in frames.iter_mut().zip(read) {
        frame.shown = if read {
            READ
        } else {
            frame.shown.clamp(SHORTEST, LONGEST)
        };
    }
    frames
}

fn same(one: &[Line], other: &[Line]) -> bool {
    let words = |lines: &[Line]| -> Vec<String> {
        let text = lines.iter().map(Line::text).collect::<Vec<_>>().join(" ");
        text.split_whitespace()
            .filter(|word| !is_age(word))
            .map(str::to_owned)
            .collect()
    };
    words(one) == words(other)
}

fn is_age(word: &str) -> bool {
    word.ends_with(['s', 'm']) && word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// Renders the frames one after the other, in an endless loop.
fn svg(frames: &[Frame]) -> String {
    let total: f64 = frames.iter().map(|frame| frame.shown.as_secs_f64()).sum();
    let (width, height) = (
        f64::from(COLUMNS).mul_add(WIDTH, 2.0 * MARGIN),
        f64::from(LINES + 2).mul_add(HEIGHT, 2.0 * MARGIN),
    );
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\">\n\
         <title>kubectl game get -w while two game servers are drained</title>\n<style>\n\
         text {{ white-space: pre; fill: #d0d4dc }} .c1 {{ font-weight: bold }} .c2 {{ fill: #7d8590 }}\n\
         .c31 {{ fill: #ff7b72 }} .c32 {{ fill: #56d364 }} .c33 {{ fill: #e3b341 }} .c35 {{ fill: #d2a8ff }} \
         .c36 {{ fill: #56d4dd }}\n.does {{ fill: #79c0ff }} .frame {{ visibility: hidden }}\n"
    );
    let mut begins = 0.0;
    for (number, frame) in frames.iter().enumerate() {
        let ends = begins + frame.shown.as_secs_f64();
        let (from, to) = (100.0 * begins / total, 100.0 * ends / total);
        let before = if number == 0 {
            String::new()
        } else {
            format!("0%, {:.3}% {{ visibility: hidden }} ", from - 0.001)
        };
        let _ = writeln!(
            svg,
            "@keyframes f{number} {{ {before}{from:.3}% {{ visibility: visible }} {:.3}% {{ visibility: visible }} \
             {to:.3}%, 100% {{ visibility: hidden }} }}\n#f{number} {{ animation: f{number} {total:.1}s step-end infinite }}",
            to - 0.001
        );
        begins = ends;
    }
    let _ = writeln!(
        svg,
        "</style>\n<rect width=\"{width:.0}\" height=\"{height:.0}\" rx=\"8\" fill=\"#0d1117\"/>"
    );
    for (number, frame) in frames.iter().enumerate() {
        let _ = writeln!(svg, "<g class=\"frame\" id=\"f{number}\">");
        svg += &row(0, "does", &[(&frame.caption, 0, 0)]);
        for (line, cells) in frame.lines.iter().take(usize::from(LINES)).enumerate() {
            svg += &row(
                line + 2,
                "",
                &runs(cells)
                    .iter()
                    .map(|(text, colour, at)| (text.as_str(), *colour, *at))
                    .collect::<Vec<_>>(),
            );
        }
        svg += "</g>\n";
    }
    svg + "</svg>\n"
}

/// Splits a line into runs of one colour, with their start columns.
fn runs(line: &Line) -> Vec<(String, u8, usize)> {
    let mut runs: Vec<(String, u8, usize)> = Vec::new();
    for (at, (letter, colour)) in line.0.iter().enumerate() {
        match runs.last_mut() {
            Some((text, same, _)) if same == colour => text.push(*letter),
            _ => runs.push((letter.to_string(), *colour, at)),
        }
    }
    runs.retain(|(text, ..)| !text.trim().is_empty());
    runs
}

fn row(line: usize, class: &str, runs: &[(&str, u8, usize)]) -> String {
    let mut text = String::new();
    let y = f64::from(u32::try_from(line + 1).unwrap()).mul_add(HEIGHT, MARGIN);
    for (run, colour, at) in runs {
        let x = f64::from(u32::try_from(*at).unwrap()).mul_add(WIDTH, MARGIN);
        let escaped = run.trim_end().replace('&', "&amp;").replace('<', "&lt;");
        let class = if *colour == 0 {
            class.to_owned()
        } else {
            format!("c{colour}")
        };
        let length = f64::from(u32::try_from(run.trim_end().chars().count()).unwrap()) * WIDTH;
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{y:.0}\" class=\"{class}\" textLength=\"{length:.1}\">{escaped}</text>"
        );
    }
    text
}
