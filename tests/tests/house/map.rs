//! Checks that functions and tests are where pages say.

use std::path::Path;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

/// Returns the links of a page whose text is code: the code, and the link target.
fn named(page: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut target, mut code) = (None, String::new());
    for event in Parser::new(page) {
        match event {
            Event::Start(Tag::Link { dest_url, .. }) => target = Some(dest_url.to_string()),
            Event::Code(text) if target.is_some() => code = text.to_string(),
            Event::End(TagEnd::Link) => {
                let code = std::mem::take(&mut code);
                found.extend(
                    target
                        .take()
                        .filter(|_| !code.is_empty())
                        .map(|target| (code, target)),
                );
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_page_of_removals_names_every_test_of_its_facts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../docs/removals.md")).unwrap();
    let mut named = named(&page);
    let mut tests = Vec::new();
    for entry in std::fs::read_dir(root.join("tests/removals/facts")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let source = std::fs::read_to_string(root.join("tests/removals/facts").join(&file)).unwrap();
        let functions = source.split("#[tokio::test").skip(1).map(|test| {
            let name = test.split_once("async fn ").unwrap().1.split('(').next().unwrap();
            (name.to_owned(), format!("../tests/tests/removals/facts/{file}"))
        });
        tests.extend(functions);
    }
    tests.sort();
    named.sort();
    assert_eq!(named, tests);
}

#[test]
fn every_function_on_the_map_is_where_the_map_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let page = std::fs::read_to_string(docs.join("architecture.md")).unwrap();
    let links = named(&page);
    let links: Vec<_> = links
        .iter()
        .filter(|(name, target)| {
            Path::new(target).extension().is_some_and(|end| end == "rs") && !name.contains('-')
        })
        .collect();
    assert!(links.len() > 30, "{links:?}");
    for (name, target) in links {
        let source =
            std::fs::read_to_string(docs.join(target)).unwrap_or_else(|error| panic!("{target}: {error}"));
        let defined = ["fn", "struct", "enum", "trait"].iter().any(|kind| {
            let words = format!("{kind} {name}");
            let mut places = source.match_indices(&words).map(|(at, found)| at + found.len());
            places.any(|end| !source[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        });
        assert!(defined, "{target} has no {name}");
    }
}
