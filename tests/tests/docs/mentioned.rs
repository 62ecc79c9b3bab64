//! Commands of the plugin that sentences and tables mention: they exist, with the flags that are named.

use std::process::Command;

use crate::page;

/// Commands that have commands.
const GROUPS: [&str; 2] = ["hook", "set"];

#[test]
fn every_command_that_is_mentioned_exists() {
    let (mut mistakes, mut count) = (Vec::new(), 0);
    for page in page::all() {
        for code in &page.codes {
            let Some(words) = code.words.strip_prefix("kubectl game ") else {
                continue;
            };
            count += 1;
            if let Err(why) = exists(words) {
                mistakes.push(format!(
                    "{}:{}: {}: {why}",
                    page.path.display(),
                    code.line,
                    code.words
                ));
            }
        }
    }
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    assert!(count > 30, "{count}");
}

fn exists(words: &str) -> Result<(), String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let depth = if GROUPS.contains(&words[0]) && words.len() > 1 {
        2
    } else {
        1
    };
    let output = Command::new(crate::PLUGIN)
        .args(&words[..depth])
        .arg("--help")
        .output();
    let output = output.map_err(|error| error.to_string())?;
    let help = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        return Err("no such command".to_owned());
    }
    let flags = words[depth..].iter().filter(|word| word.starts_with('-'));
    let unknown: Vec<&&str> = { flags }
        .filter(|flag| !help.contains(flag.split('=').next().unwrap_or_default()))
        .collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(format!("no such flag: {unknown:?}"))
    }
}
