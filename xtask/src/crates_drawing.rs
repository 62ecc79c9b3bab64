//! Diagram of the crates in `docs/architecture.md`, from their manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Path of the page in the repository.
pub(crate) const PATH: &str = "docs/architecture.md";

const BEGIN: &str = "<!-- Drawn by `cargo xtask gen` from the manifests of the crates; do not edit. -->\n";
const END: &str = "<!-- End of the drawing. -->\n";

/// Dependencies between the product's crates.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Returns the page with an up-to-date diagram.
pub(crate) fn page(root: &Path) -> Result<String, Box<dyn Error>> {
    let page = std::fs::read_to_string(root.join(PATH))?;
    let (before, rest) = page
        .split_once(BEGIN)
        .ok_or_else(|| format!("{PATH} does not say where the drawing begins: {BEGIN}"))?;
    let (_, after) = rest
        .split_once(END)
        .ok_or_else(|| format!("{PATH} does not say where the drawing ends: {END}"))?;
    let drawing = mermaid(&uses(&metadata(root)?));
    Ok(format!(
        "{before}{BEGIN}\n```mermaid\n{drawing}```\n\n{END}{after}"
    ))
}

fn metadata(root: &Path) -> Result<Value, Box<dyn Error>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Returns the released crates and their build dependencies on one another.
fn uses(metadata: &Value) -> Uses {
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let tools = [format!("{root}/tests/"), format!("{root}/xtask/")];
    let released = packages.into_iter().filter(|package| {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        !tools.iter().any(|folder| manifest.starts_with(folder))
    });
    released
        .map(|package| {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let ours = dependencies.filter(|found| found["kind"].is_null() && found["path"].is_string());
            let names = ours.filter_map(|found| found["name"].as_str().map(str::to_owned));
            let name = package["name"].as_str().unwrap_or_default();
            (name.to_owned(), names.collect())
        })
        .collect()
}

/// Returns whether one crate depends on another, directly or indirectly.
fn reaches(uses: &Uses, from: &str, to: &str) -> bool {
    let mut direct = uses.get(from).into_iter().flatten();
    direct.any(|next| next == to || reaches(uses, next, to))
}

/// Renders the diagram. Arrows point at dependencies. An arrow is omitted if the crate is also an indirect
/// dependency.
fn mermaid(uses: &Uses) -> String {
    let mut drawing = String::from("flowchart BT\n");
    for (name, used) in uses {
        if used.is_empty() {
            let _ = writeln!(drawing, "    {name}");
        }
        for to in used {
            let by_way_of_another = used.iter().any(|other| other != to && reaches(uses, other, to));
            if !by_way_of_another {
                let _ = writeln!(drawing, "    {name} --> {to}");
            }
        }
    }
    drawing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrow_that_others_imply_is_left_out() {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let uses = Uses::from([
            ("api".to_owned(), set(&[])),
            ("core".to_owned(), set(&["api"])),
            ("operator".to_owned(), set(&["api", "core"])),
        ]);
        let expected = "flowchart BT\n    api\n    core --> api\n    operator --> core\n";
        assert_eq!(mermaid(&uses), expected);
    }
}
