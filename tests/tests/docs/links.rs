//! Checks that links have targets, and that every page is reachable.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::page::{self, Page};

/// Start page.
const ENTRANCE: &str = "README.md";

/// Pages only for contributors to the files next to them.
const NOT_FOR_READERS: [&str; 2] = ["tests/", "kubectl-game/src/guide.md"];

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = page::all();
    let anchors: BTreeMap<&Path, Vec<String>> = pages
        .iter()
        .map(|page| (page.path.as_path(), page.anchors()))
        .collect();
    let mut broken = Vec::new();
    for page in &pages {
        // The page generated from it contains its links.
        if page.path == Path::new("kubectl-game/src/guide.md") {
            continue;
        }
        for link in &page.links {
            if let Err(why) = leads(page, &link.target, &anchors) {
                broken.push(format!(
                    "{}:{}: {}: {why}",
                    page.path.display(),
                    link.line,
                    link.target
                ));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn leads(page: &Page, target: &str, anchors: &BTreeMap<&Path, Vec<String>>) -> Result<(), String> {
    if target.contains("://") {
        let host = target.strip_prefix("https://").ok_or("not https")?;
        let host = host.split('/').next().unwrap_or_default();
        return if host.contains('.') && !target.contains(' ') {
            Ok(())
        } else {
            Err("no address".to_owned())
        };
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.path.clone()
    } else {
        beside(&page.path, path)
    };
    if !page::root().join(&path).exists() {
        return Err("no such file".to_owned());
    }
    if anchor.is_empty() {
        return Ok(());
    }
    let there = anchors.get(path.as_path()).ok_or("not a page")?;
    if there.iter().any(|other| other == anchor) {
        Ok(())
    } else {
        Err("no such heading".to_owned())
    }
}

/// Resolves a link target to a path in the repository.
fn beside(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[test]
fn every_page_is_reached_from_the_first() {
    let pages = page::all();
    let by_path: BTreeMap<&Path, &Page> = pages.iter().map(|page| (page.path.as_path(), page)).collect();
    let mut reached = BTreeSet::new();
    let mut next = vec![PathBuf::from(ENTRANCE)];
    while let Some(path) = next.pop() {
        let Some(page) = by_path.get(path.as_path()) else {
            continue;
        };
        if reached.insert(path) {
            let targets = page.links.iter().filter_map(|link| link.target.split('#').next());
            next.extend(
                targets
                    .filter(|target| !target.contains("://"))
                    .map(|target| beside(&page.path, target)),
            );
        }
    }
    let orphans: Vec<&PathBuf> = pages
        .iter()
        .map(|page| &page.path)
        .filter(|path| {
            !reached.contains(*path) && !NOT_FOR_READERS.iter().any(|other| path.starts_with(other))
        })
        .collect();
    assert!(orphans.is_empty(), "no link leads to {orphans:?}");
}
