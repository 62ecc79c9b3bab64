//! Parses the plugin's commands in sentences, tables and alerts with the program itself.

use clap::error::ErrorKind;

use crate::page;

/// User-facing texts outside the pages.
const ALERTS: &str = include_str!("../../../helm/alerts/hookgate.yaml");

#[test]
fn the_program_takes_every_command_that_is_mentioned() {
    let (mut mistakes, mut count) = (Vec::new(), 0);
    let mut read = |place: &str, command: &str| {
        let Some(words) = command.strip_prefix("kubectl game ") else {
            return;
        };
        count += 1;
        if let Err(why) = taken(words) {
            mistakes.push(format!("{place}: {command}: {why}"));
        }
    };
    for page in page::all() {
        for code in &page.codes {
            read(&format!("{}:{}", page.path.display(), code.line), &code.words);
        }
    }
    let labels = regex::Regex::new(r"\{\{.*?\}\}").unwrap();
    for mention in ALERTS.split('`').skip(1).step_by(2) {
        // Prometheus fills in the labels.
        let words = mention.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = labels.replace_all(&words, "NAME").into_owned();
        read("helm/alerts", &words);
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 50, "{count}");
}

#[test]
fn what_the_program_would_refuse_is_found() {
    for good in [
        "skip",
        "status --timeout",
        "skip POD --reason 'it hangs'",
        "hook list --failing",
        "lint -f *.yaml",
    ] {
        assert_eq!(taken(good), Ok(()), "{good}");
    }
    for bad in [
        "skip POD",
        "lint FILE",
        "nap",
        "hook nap",
        "skip --raeson",
        "retry arena --hook pre-delet",
    ] {
        assert!(taken(bad).is_err(), "{bad}");
    }
}

/// Checks that the program accepts a command line. One without values refers to the command, or to its flag.
fn taken(command: &str) -> Result<(), String> {
    let words = words(command);
    let program = kubectl_game::described();
    let mut known = &program;
    let mut rest = words.as_slice();
    while let Some((name, more)) = rest.split_first() {
        let Some(next) = known.find_subcommand(name) else {
            break;
        };
        (known, rest) = (next, more);
    }
    if known.has_subcommands() && !rest.is_empty() {
        return Err("no such command".to_owned());
    }
    if rest.iter().all(|word| word.starts_with('-')) {
        let flag = |word: &&String| {
            let mut flags = known.get_arguments();
            let name = word.split('=').next().unwrap_or_default();
            flags.any(|flag| {
                let long = flag.get_long().map(|long| format!("--{long}"));
                let short = flag.get_short().map(|short| format!("-{short}"));
                [long, short].into_iter().flatten().any(|known| known == name)
            })
        };
        let unknown: Vec<&String> = rest.iter().filter(|word| !flag(word)).collect();
        return if unknown.is_empty() {
            Ok(())
        } else {
            Err(format!("no such flag: {unknown:?}"))
        };
    }
    let all = std::iter::once("kubectl game").chain(words.iter().map(String::as_str));
    match program.clone().try_get_matches_from(all) {
        Err(error) if error.kind() != ErrorKind::DisplayHelp => Err(error.to_string()),
        _ => Ok(()),
    }
}

/// Splits a command line into words like a shell.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in command.chars() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => quote = Some(letter),
            (' ', None) => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}
