//! Prometheus' own tool, and the rules as its unit tests take them.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use test_kit::assets;

use crate::files::RULES;

/// Runs promtool in a directory. Returns what it prints if it finds something wrong.
pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Result<(), String> {
    let program = assets::promtool().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// Returns the rules with other annotations: promtool compares each of them literally.
pub(crate) fn rules(annotations: impl Fn(&Value) -> Value) -> Value {
    let mut rules: Value = serde_saphyr::from_str(RULES).unwrap();
    let groups = rules["groups"].as_array_mut().unwrap().iter_mut();
    for rule in groups.flat_map(|group| group["rules"].as_array_mut().unwrap()) {
        rule["annotations"] = annotations(&rule["annotations"]);
    }
    rules
}
