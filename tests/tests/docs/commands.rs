//! Runs every command of every page, as a reader would type it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt as _;

use crate::harness::PageHarness;
use crate::page::{self, FOR_THE_TEST, Page};
use crate::shown::Memory;
use crate::stand_ins;
use crate::typed::{self, Step, Typed};

/// Selects pages by a substring of their path, and prints their output.
const ONE_PAGE: &str = "DOCS";

/// Pages run concurrently.
const READERS: usize = 3;

/// Maximum time until a page's output appears.
const PATIENCE: Duration = Duration::from_mins(2);

/// Number of mistakes after which the rest of a page is meaningless.
const ENOUGH: usize = 3;

/// Pages whose commands another page includes.
const SOURCES: [&str; 1] = ["kubectl-game/src/guide.md"];

type Used = Arc<Mutex<BTreeSet<&'static str>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_does_what_its_page_shows() {
    let wanted = std::env::var(ONE_PAGE).ok();
    let mut pages = page::all();
    pages.retain(|page| {
        let path = page.path.to_string_lossy();
        consoles(page) > 0
            && !SOURCES.contains(&&*path)
            && wanted
                .as_ref()
                .is_none_or(|wanted| wanted.split(',').any(|wanted| path.contains(wanted)))
    });
    // Starts with the longest pages, so that the others are read beside them.
    pages.sort_by_key(|page| Reverse(consoles(page)));
    let used = Used::default();
    let mistakes: Vec<Vec<String>> = futures::stream::iter(pages)
        .map(|page| {
            let used = Arc::clone(&used);
            async move { read(&page, &used).await }
        })
        .buffer_unordered(READERS)
        .collect()
        .await;
    let mut mistakes = mistakes.concat();
    if wanted.is_none() {
        let used = used.lock().unwrap();
        mistakes.extend(
            stand_ins::stale(&used)
                .iter()
                .map(|shown| format!("no page needs the stand-in for {shown}")),
        );
    }
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n\n"));
}

/// Number of a page's blocks of commands.
fn consoles(page: &Page) -> usize {
    let blocks = page.blocks.iter();
    blocks.filter(|block| block.language == "console").count()
}

/// Follows a page to its end. Returns its deviations.
async fn read(page: &Page, used: &Used) -> Vec<String> {
    let mut harness = PageHarness::new(&page.path).await;
    let (mut memory, mut mistakes) = (Memory::default(), Vec::new());
    let blocks = page.blocks.iter();
    let blocks = blocks.filter(|block| ["console", FOR_THE_TEST].contains(&block.language.as_str()));
    for step in blocks.flat_map(typed::steps) {
        let (line, done) = match &step {
            Step::Order { line, words } => (*line, harness.order(words).await),
            Step::Type(typed) => {
                let instead = stand_ins::instead_of(&typed.command, &mut used.lock().unwrap());
                let done = match instead {
                    Some(command) => types(&mut harness, typed, &command, &mut memory).await,
                    None => Ok(()),
                };
                (typed.line, done)
            }
        };
        if let Err(why) = done {
            let mistake = format!("{}:{line}: {why}", page.path.display());
            eprintln!("{mistake}\n");
            mistakes.push(mistake);
            if mistakes.len() == ENOUGH {
                break;
            }
        }
    }
    harness.end().await;
    mistakes
}

/// Types a command until its output matches the page; only once, if it is not read-only.
async fn types(
    harness: &mut PageHarness,
    typed: &Typed,
    command: &str,
    memory: &mut Memory,
) -> Result<(), String> {
    let command = memory.in_the_world(command);
    let begun = Instant::now();
    loop {
        // Await each attempt: a shell left in the middle of a command would answer the next one with its output.
        match once(harness, typed, &command, memory).await {
            Err(_) if typed.looks() && begun.elapsed() < PATIENCE => {}
            ended => return ended,
        }
    }
}

async fn once(
    harness: &mut PageHarness,
    typed: &Typed,
    command: &str,
    memory: &mut Memory,
) -> Result<(), String> {
    let said = harness.types(command).await?;
    let good = if typed.shown.is_empty() {
        // Without shown output, the command must succeed.
        said.code == 0
    } else {
        memory.fits(&typed.shown, &said.printed)
    };
    let lines = |text: &str| text.trim_end().replace('\n', "\n  | ");
    if good {
        if std::env::var_os(ONE_PAGE).is_some() {
            eprintln!("$ {command}\n  | {}", lines(&said.printed));
        }
        return Ok(());
    }
    let (code, shown, printed) = (said.code, lines(&typed.shown.join("\n")), lines(&said.printed));
    Err(format!(
        "$ {command}\n  it is to print\n  | {shown}\n  it prints, and ends with {code}\n  | {printed}"
    ))
}
