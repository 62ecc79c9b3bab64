//! Every command of every page, as a reader would type it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt as _;
use test_kit::wait::within;

use crate::page::{self, FOR_THE_TEST, Page};
use crate::shown::{self, Names};
use crate::stand_ins;
use crate::typed::{self, Step, Typed};
use crate::world::World;

/// Pages at a time.
const READERS: usize = 3;

/// How long somebody looks until a page is right.
const PATIENCE: Duration = Duration::from_secs(30);

/// Mistakes of one page, after which the rest of it says nothing.
const ENOUGH: usize = 3;

/// Pages whose commands are those of another page.
const SOURCES: [&str; 1] = ["kubectl-game/src/guide.md"];

type Used = Arc<Mutex<BTreeSet<&'static str>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_does_what_its_page_shows() {
    let wanted = std::env::var("DOCS").ok();
    let mut pages = page::all();
    pages.retain(|page| {
        let path = page.path.to_string_lossy();
        let typed = page.blocks.iter().any(|block| block.language == "console");
        typed && !SOURCES.contains(&&*path) && wanted.as_ref().is_none_or(|wanted| path.contains(wanted))
    });
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

/// Does what a page says, to its end. Returns what was not as it says.
async fn read(page: &Page, used: &Used) -> Vec<String> {
    let mut world = World::new(&page.path).await;
    let (mut names, mut mistakes) = (Names::new(), Vec::new());
    let blocks = page.blocks.iter();
    let blocks = blocks.filter(|block| ["console", FOR_THE_TEST].contains(&block.language.as_str()));
    for step in blocks.flat_map(typed::steps) {
        let (line, done) = match &step {
            Step::Order { line, words } => (*line, world.order(words)),
            Step::Type(typed) => {
                let instead = stand_ins::instead_of(&typed.command, &mut used.lock().unwrap());
                let done = match instead {
                    Some(command) => types(&mut world, typed, &command, &names)
                        .await
                        .map(|more| names = more),
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
    world.end().await;
    mistakes
}

/// Types a command until it shows what the page shows; once, if it does more than look.
async fn types(world: &mut World, typed: &Typed, command: &str, names: &Names) -> Result<Names, String> {
    let command = shown::in_the_world(command, names);
    if !typed.looks() {
        return once(world, typed, &command, names).await;
    }
    let world = tokio::sync::Mutex::new(world);
    let looked = within(PATIENCE, || async {
        once(&mut *world.lock().await, typed, &command, names).await
    });
    looked
        .await
        .map_err(|late| format!("not within {:?}: {}", late.deadline, unquoted(&late.last_seen)))
}

async fn once(world: &mut World, typed: &Typed, command: &str, names: &Names) -> Result<Names, String> {
    let told = |why: &str, printed: &str| {
        let shown = typed.shown.join("\n  | ");
        format!(
            "$ {command}\n  {why}\n  it is to print\n  | {shown}\n  it prints\n  | {}",
            printed.trim_end().replace('\n', "\n  | ")
        )
    };
    let said = world.types(command).await.map_err(|why| told(&why, ""))?;
    if std::env::var_os("DOCS").is_some() {
        eprintln!("$ {command}\n{}", said.printed);
    }
    if typed.shown.is_empty() {
        // A command that fails is one whose words the page shows.
        return if said.code == 0 {
            Ok(names.clone())
        } else {
            Err(told(&format!("exit code {}", said.code), &said.printed))
        };
    }
    shown::compare(&typed.shown, &said.printed, names).ok_or_else(|| told("", &said.printed))
}

/// The text that `Debug` has put into quotes.
fn unquoted(text: &str) -> String {
    serde_json::from_str(text).unwrap_or_else(|_| text.replace("\\n", "\n"))
}
