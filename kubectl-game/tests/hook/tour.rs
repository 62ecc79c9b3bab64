//! Tests that the commands of `examples/README.md` work. Commands that send no requests are run as written.

use crate::{hook, repository};

/// Splits a command into words, with single quotes as in a shell.
fn words(command: &str) -> Vec<String> {
    let quoted = |(index, part): (usize, &str)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    command.split('\'').enumerate().flat_map(quoted).collect()
}

#[test]
fn every_command_of_the_tour_works() {
    let tour = std::fs::read_to_string(repository("examples/README.md")).unwrap();
    let commands: Vec<&str> = tour
        .lines()
        .filter_map(|line| {
            line.strip_suffix("` |")?
                .rsplit_once("| `")
                .map(|(_, command)| command)
        })
        .collect();
    assert!(commands.len() >= 11, "{commands:?}");
    for command in commands {
        let mut words = words(command);
        for word in &mut words {
            let file = repository("examples").join(&*word);
            if file.is_file() {
                *word = file.to_str().unwrap().to_owned();
            }
        }
        // The server of a run does not exist here, so the test evaluates the hook to check that it is found
        // and complete.
        if words[0] == "run" {
            words[0] = "evaluate".to_owned();
            words.extend(["--result".to_owned(), "{}".to_owned()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let said = hook(&words);
        assert!(said.code < 64, "{command}: {said:?}");
        let is_expected = said.err.is_empty() || said.err.starts_with("not checked: 1 ");
        assert!(is_expected, "{command}: {said:?}");
    }
}
