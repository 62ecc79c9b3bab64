//! Parser from the text of a path to its blocks: the content of braces and the text around them. Reads no
//! document.
//!
//! The grammar is that of client-go's parser, including its quirks (`[]` is `[0]`, the dot in `['a.b']`
//! separates keys), except that texts that can only be a mistake are rejected, with a remedy.

use super::action::{Node, Parser, constant, steps};
use super::{Block, Constant, JsonPathError, MAX_TEXT};

/// Maximum nesting of ranges. More is a mistake, and each level multiplies the work.
const MAX_RANGES: usize = 4;

/// Parses a whole template.
pub(super) fn template(text: &str) -> Result<Vec<Block>, JsonPathError> {
    if text.len() > MAX_TEXT {
        let message = format!("jsonPath is {} bytes long; the limit is {MAX_TEXT}", text.len());
        return Err(JsonPathError {
            message,
            position: None,
        });
    }
    if !text.contains('{') {
        return bare(text);
    }
    let mut parser = Parser::new(text, 0, text.len());
    let mut blocks = Vec::new();
    while let Some(open) = text.get(parser.pos..).and_then(|rest| rest.find('{')) {
        if open > 0 {
            blocks.push((parser.pos, constant_text(text, parser.pos, parser.pos + open)));
        }
        let at = parser.pos + open;
        parser.pos = at + 1;
        blocks.push((at, block(at, parser.action(true)?)?));
    }
    if parser.pos < text.len() {
        blocks.push((parser.pos, constant_text(text, parser.pos, text.len())));
    }
    check_ranges(&blocks)?;
    Ok(blocks.into_iter().map(|(_, block)| block).collect())
}

/// Parses a path without braces. client-go treats it as literal text, which is never the intention.
fn bare(text: &str) -> Result<Vec<Block>, JsonPathError> {
    let trimmed = text.trim_matches(' ');
    if trimmed.is_empty() {
        return Err(JsonPathError::at(
            0,
            "jsonPath is empty; write {} for the whole document",
        ));
    }
    if !trimmed.starts_with(['$', '.']) {
        let remedy = format!("{text:?} is not a path; write {{.{trimmed}}}");
        return Err(JsonPathError::at(0, remedy));
    }
    let nodes = Parser::new(text, 0, text.len()).action(false)?;
    Ok(vec![block(0, nodes)?])
}

/// Determines the kind of a block from its content.
fn block(at: usize, nodes: Vec<Node>) -> Result<Block, JsonPathError> {
    match nodes.first() {
        Some(Node::Word(_, word)) if word == "range" => {
            let rest = nodes.into_iter().skip(1).collect();
            return Ok(Block::Range(steps(rest)?));
        }
        Some(Node::Word(_, word)) if word == "end" => {
            return match nodes.get(1) {
                None => Ok(Block::End),
                Some(extra) => Err(JsonPathError::at(extra.at(), "{end} must stand alone")),
            };
        }
        Some(Node::Word(at, word)) => {
            let message = format!("`{word}` is not a path; keys start with a dot: {{.{word}}}");
            return Err(JsonPathError::at(*at, message));
        }
        Some(Node::Constant(..) | Node::Step(_)) | None => {}
    }
    match constant(nodes) {
        Ok(constant) => Ok(Block::Constant(constant)),
        Err(nodes) => steps(nodes).map(Block::Path).map_err(|mut error| {
            error.position.get_or_insert(at);
            error
        }),
    }
}

fn check_ranges(blocks: &[(usize, Block)]) -> Result<(), JsonPathError> {
    let mut open = 0usize;
    for (at, block) in blocks {
        match block {
            Block::Range(_) if open == MAX_RANGES => {
                let message = format!("more than {MAX_RANGES} nested ranges");
                return Err(JsonPathError::at(*at, message));
            }
            Block::Range(_) => open += 1,
            Block::End if open == 0 => {
                return Err(JsonPathError::at(
                    *at,
                    "{end} without a {range}; write {.end} for the key end",
                ));
            }
            Block::End => open -= 1,
            Block::Constant(_) | Block::Path(_) => {}
        }
    }
    Ok(())
}

/// Builds a block for text outside of braces.
fn constant_text(text: &str, from: usize, to: usize) -> Block {
    Block::Constant(Constant::Text(text.get(from..to).unwrap_or_default().to_owned()))
}
