//! Checks that each function on the map of the code is where the map says.

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
