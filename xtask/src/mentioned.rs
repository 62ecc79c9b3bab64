//! Checks that this program accepts every `cargo xtask` command line in the documents.

use std::path::Path;

use clap::{CommandFactory as _, Parser as _};

use crate::Cli;

fn pages(directory: &Path, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push((
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            ));
        }
    }
}

/// Returns the command lines in a page: inline code and console blocks.
fn commands(text: &str) -> Vec<String> {
    let codes = text.split('`').skip(1).step_by(2);
    let typed = text.lines().filter_map(|line| line.strip_prefix("$ "));
    let lines = codes
        .chain(typed)
        .map(|code| code.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| line.starts_with("cargo xtask ")).collect()
}

/// Returns an error if the program rejects the command line. A single word only refers to the command.
fn taken(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split(' ').skip(2).collect();
    let known = Cli::command();
    if let [name] = words.as_slice()
        && known.find_subcommand(name).is_some()
    {
        return Ok(());
    }
    let words = std::iter::once("cargo xtask").chain(words);
    Cli::try_parse_from(words)
        .map(drop)
        .map_err(|error| error.to_string())
}

#[test]
fn every_command_that_the_documents_mention_is_taken() {
    let mut found = Vec::new();
    pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), &mut found);
    let (mut mistakes, mut count) = (Vec::new(), 0);
    for (path, text) in found {
        for command in commands(&text) {
            count += 1;
            if let Err(why) = taken(&command) {
                mistakes.push(format!("{path}: {command}: {why}"));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 20, "{count}");
    assert!(taken("cargo xtask dashboards").is_err());
}
