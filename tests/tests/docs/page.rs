//! Pages: Markdown files and their contents.

use std::ops::Range;
use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Start of a comment with lines for this test alone, which prepare the harness for the page.
const HIDDEN: &str = "<!-- test";

/// Page of the documents.
#[derive(Debug)]
pub(crate) struct Page {
    /// Path in the repository.
    pub(crate) path: PathBuf,
    pub(crate) blocks: Vec<Block>,
    pub(crate) headings: Vec<String>,
    pub(crate) links: Vec<Link>,
    /// Inline code in prose.
    pub(crate) codes: Vec<Code>,
}

/// Inline code.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) line: usize,
    pub(crate) words: String,
}

/// Block that is not prose.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// Link or picture.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) target: String,
}

/// Language of lines that only the test sees.
pub(crate) const FOR_THE_TEST: &str = "hidden";

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns every page of the repository, by path.
pub(crate) fn all() -> Vec<Page> {
    let mut files = Vec::new();
    find(&root(), Path::new(""), &mut files);
    files.sort();
    files.into_iter().map(Page::read).collect()
}

fn find(root: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let path = below.join(&name);
        if entry.file_type().unwrap().is_dir() {
            let skipped = name == "target" || name.to_string_lossy().starts_with('.');
            if !skipped {
                find(root, &path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

impl Page {
    fn read(path: PathBuf) -> Self {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        Self::parse(path, &text)
    }

    pub(crate) fn parse(path: PathBuf, text: &str) -> Self {
        let mut page = Self {
            path,
            blocks: Vec::new(),
            headings: Vec::new(),
            links: Vec::new(),
            codes: Vec::new(),
        };
        let line = |range: &Range<usize>| text[..range.start].matches('\n').count() + 1;
        let mut code: Option<Block> = None;
        let mut heading: Option<String> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match kind {
                        CodeBlockKind::Fenced(language) => language.to_string(),
                        CodeBlockKind::Indented => "indented".to_owned(),
                    };
                    let line = line(&range);
                    let text = String::new();
                    code = Some(Block { line, language, text });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(code.take()),
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.headings.extend(heading.take()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let (line, target) = (line(&range), dest_url.to_string());
                    page.links.push(Link { line, target });
                }
                Event::Start(Tag::HtmlBlock) => {
                    page.blocks.extend(hidden(&text[range.clone()], line(&range)));
                }
                Event::Text(words) => {
                    let places = [code.as_mut().map(|block| &mut block.text), heading.as_mut()];
                    for place in places.into_iter().flatten() {
                        place.push_str(&words);
                    }
                }
                Event::Code(words) => {
                    if let Some(heading) = heading.as_mut() {
                        heading.push_str(&words);
                    }
                    let (line, words) = (line(&range), words.to_string());
                    page.codes.push(Code { line, words });
                }
                _ => {}
            }
        }
        page
    }

    /// Returns the anchors of its headings, by GitHub's rule.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for heading in &self.headings {
            let plain = slug(heading);
            let mut anchor = plain.clone();
            let mut count = 0;
            while anchors.contains(&anchor) {
                count += 1;
                anchor = format!("{plain}-{count}");
            }
            anchors.push(anchor);
        }
        anchors
    }
}

fn hidden(html: &str, line: usize) -> Option<Block> {
    let text = html.trim_end().strip_prefix(HIDDEN)?.strip_suffix("-->")?;
    let (_, text) = text.split_once('\n')?;
    Some(Block {
        line,
        language: FOR_THE_TEST.to_owned(),
        text: text.to_owned(),
    })
}

fn slug(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    let letters = heading.trim().chars().filter(kept).flat_map(char::to_lowercase);
    letters
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

#[test]
fn a_page_is_read_with_its_hidden_lines() {
    let text = "# Über `a_b`: c!\n\n<!-- test\nplayers 3\n$ true\n-->\n\n```console\n$ ls\n```\n\n## Same\n\n## Same\n[x](y.md#z)\n";
    let page = Page::parse(PathBuf::new(), text);
    let blocks: Vec<(usize, &str, &str)> = page
        .blocks
        .iter()
        .map(|block| (block.line, block.language.as_str(), block.text.as_str()))
        .collect();
    assert_eq!(
        blocks,
        [(3, FOR_THE_TEST, "players 3\n$ true\n"), (8, "console", "$ ls\n")]
    );
    assert_eq!(page.anchors(), ["über-a_b-c", "same", "same-1"]);
    assert_eq!(page.links[0].line, 15);
    assert_eq!(page.links[0].target.as_str(), "y.md#z");
}
