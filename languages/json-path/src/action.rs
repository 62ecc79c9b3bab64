//! Parser for the content of braces: steps, constants and words. Does not decide the kind of a block.

use super::{Constant, JsonPathError, Slice, Step, StepKind, Until, filter};

/// An element of a block, before the kind of the block is known.
#[derive(Debug)]
pub(super) enum Node {
    Step(Step),
    Constant(usize, Constant),
    Word(usize, String),
}

impl Node {
    pub(super) fn at(&self) -> usize {
        match self {
            Self::Step(step) => step.at,
            Self::Constant(at, _) | Self::Word(at, _) => *at,
        }
    }
}

/// Returns the constant if the nodes are only constants (the last one, if there are several), or else the
/// nodes.
pub(super) fn constant(mut nodes: Vec<Node>) -> Result<Constant, Vec<Node>> {
    let alone = nodes.iter().all(|node| matches!(node, Node::Constant(..)));
    match nodes.pop() {
        Some(Node::Constant(_, constant)) if alone => Ok(constant),
        Some(last) => {
            nodes.push(last);
            Err(nodes)
        }
        None => Err(nodes),
    }
}

/// Converts nodes that must all be steps.
pub(super) fn steps(nodes: Vec<Node>) -> Result<Vec<Step>, JsonPathError> {
    let step = |node| match node {
        Node::Step(step) => Ok(step),
        Node::Constant(at, _) => Err(JsonPathError::at(at, "a constant cannot be mixed with a path")),
        Node::Word(at, word) => {
            let message =
                format!("`{word}` is not a path: keys end at a space; write `\\ ` for a space within a key");
            Err(JsonPathError::at(at, message))
        }
    };
    nodes.into_iter().map(step).collect()
}

/// A cursor over a part of the text. Positions refer to the whole text.
pub(super) struct Parser<'t> {
    text: &'t str,
    pub(super) pos: usize,
    limit: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, pos: usize, limit: usize) -> Self {
        Self { text, pos, limit }
    }

    fn rest(&self) -> &'t str {
        self.slice(self.pos, self.limit)
    }

    fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.pos += next.len_utf8();
        Some(next)
    }

    /// Parses the content of braces. `braced` blocks end at `}`, others at the limit.
    pub(super) fn action(&mut self, braced: bool) -> Result<Vec<Node>, JsonPathError> {
        let mut nodes = Vec::new();
        loop {
            let at = self.pos;
            let rest = self.rest();
            if rest.starts_with("[?(") {
                nodes.push(self.filter()?);
                continue;
            }
            if rest.starts_with("..") {
                if matches!(
                    nodes.last(),
                    Some(Node::Step(Step {
                        kind: StepKind::Descend,
                        ..
                    }))
                ) {
                    return Err(JsonPathError::at(at, "`..` must not follow `..`"));
                }
                self.pos += 2;
                self.descend(at, &mut nodes)?;
                continue;
            }
            match self.next() {
                None if braced => return Err(JsonPathError::at(at, "`{` without a closing `}`")),
                Some('}') if braced => return Ok(nodes),
                None => return Ok(nodes),
                Some('}') => {
                    let message = "unexpected `}`; enclose the path in braces, such as {.age}, or write `\\}` for a brace \
                                   within a key";
                    return Err(JsonPathError::at(at, message));
                }
                Some(' ' | '@' | '$') => {}
                Some('[') => self.subscript(at, &mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(at, quote)?),
                Some('.') => nodes.push(self.field(at)?),
                Some(sign) if sign == '+' || sign == '-' || sign.is_numeric() => nodes.push(self.number(at)?),
                Some(letter) if letter == '_' || letter.is_alphabetic() => nodes.push(self.word(at)),
                Some(other) => return Err(unexpected(at, other)),
            }
        }
    }

    /// Parses the text after `..`.
    fn descend(&mut self, at: usize, nodes: &mut Vec<Node>) -> Result<(), JsonPathError> {
        nodes.push(Node::Step(Step {
            at,
            kind: StepKind::Descend,
        }));
        let field_at = self.pos;
        if self
            .rest()
            .starts_with(|next: char| next == '_' || next.is_alphanumeric())
        {
            nodes.push(self.field(field_at)?);
        }
        Ok(())
    }

    /// Parses a key after its dot, up to a terminator that is not escaped.
    fn field(&mut self, at: usize) -> Result<Node, JsonPathError> {
        let start = self.pos;
        loop {
            let before = self.pos;
            match self.next() {
                Some('\\') => {
                    if self.next().is_none() {
                        return Err(JsonPathError::at(
                            before,
                            "expected a character after the backslash",
                        ));
                    }
                }
                Some(next) if is_terminator(next) => {
                    self.pos = before;
                    break;
                }
                Some(_) => {}
                None => break,
            }
        }
        let kind = match self.slice(start, self.pos) {
            "*" => StepKind::Wildcard,
            name => StepKind::Field(name.replace('\\', "")),
        };
        Ok(Node::Step(Step { at, kind }))
    }

    fn word(&mut self, at: usize) -> Node {
        let rest = self.slice(at, self.limit);
        let length = rest.find(is_terminator).unwrap_or(rest.len());
        self.pos = at + length;
        match self.slice(at, self.pos) {
            "true" => Node::Constant(at, Constant::Bool(true)),
            "false" => Node::Constant(at, Constant::Bool(false)),
            word => Node::Word(at, word.to_owned()),
        }
    }

    fn number(&mut self, at: usize) -> Result<Node, JsonPathError> {
        let rest = self.rest();
        let length = rest
            .find(|next: char| next != '.' && !next.is_numeric())
            .unwrap_or(rest.len());
        self.pos += length;
        let text = self.slice(at, self.pos);
        if let Ok(int) = text.parse::<i64>() {
            return Ok(Node::Constant(at, Constant::Int(int)));
        }
        match text.parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(Node::Constant(at, Constant::Float(float))),
            _ => Err(JsonPathError::at(at, format!("`{text}` is not a number"))),
        }
    }

    fn quoted(&mut self, at: usize, quote: char) -> Result<Node, JsonPathError> {
        loop {
            let escaped = self.slice(at, self.pos).ends_with('\\');
            match self.next() {
                Some(next) if next == quote && !escaped => break,
                None | Some('\n') => {
                    return Err(JsonPathError::at(
                        at,
                        format!("`{quote}` without a closing `{quote}`"),
                    ));
                }
                Some(_) => {}
            }
        }
        let inner = self.slice(at + 1, self.pos - 1);
        match filter::unquote(inner, quote) {
            Some(text) => Ok(Node::Constant(at, Constant::Text(text))),
            None => Err(JsonPathError::at(
                at,
                format!("{quote}{inner}{quote} has an unknown escape"),
            )),
        }
    }

    fn filter(&mut self) -> Result<Node, JsonPathError> {
        let at = self.pos;
        let open = at + 2;
        let close = filter::closing(self.slice(open, self.limit), open)?;
        if !self.slice(close + 1, self.limit).starts_with(']') {
            return Err(JsonPathError::at(
                close,
                "missing `]` after the `)` of the filter",
            ));
        }
        self.pos = close + 2;
        let filter = filter::parse(self.text, open + 1, close)?;
        Ok(Node::Step(Step {
            at,
            kind: StepKind::Filter(filter),
        }))
    }

    /// Parses the text after `[`.
    fn subscript(&mut self, at: usize, nodes: &mut Vec<Node>) -> Result<(), JsonPathError> {
        let start = self.pos;
        let rest = self.rest();
        let end = match rest.find([']', '\n']) {
            Some(found) if rest.get(found..).is_some_and(|tail| tail.starts_with(']')) => start + found,
            _ => return Err(JsonPathError::at(at, "`[` without a closing `]`")),
        };
        self.pos = end + 1;
        if !self.slice(start, end).contains(',') {
            return self.subscript_entry(at, start, end, nodes);
        }
        let mut parts = Vec::new();
        let mut from = start;
        for piece in self.slice(start, end).split(',') {
            let next = from + piece.len() + 1;
            from += piece.len() - piece.trim_start_matches(' ').len();
            let to = from + piece.trim_matches(' ').len();
            let mut entry = Vec::new();
            self.subscript_entry(from, from, to, &mut entry)?;
            parts.push(steps(entry)?);
            from = next;
        }
        nodes.push(Node::Step(Step {
            at,
            kind: StepKind::Union(parts),
        }));
        Ok(())
    }

    /// Parses one entry of a subscript: a quoted key, a filter within a union, an index or a slice.
    fn subscript_entry(
        &self,
        at: usize,
        start: usize,
        end: usize,
        nodes: &mut Vec<Node>,
    ) -> Result<(), JsonPathError> {
        let text = self.slice(start, end);
        if text.starts_with("?(") {
            let open = start + 1;
            let close = filter::closing(self.slice(open, end), open)?;
            if close + 1 != end {
                return Err(JsonPathError::at(
                    close,
                    "missing `,` or `]` after the `)` of the filter",
                ));
            }
            let filter = filter::parse(self.text, open + 1, close)?;
            nodes.push(Node::Step(Step {
                at,
                kind: StepKind::Filter(filter),
            }));
            return Ok(());
        }
        let key = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        if key.is_some_and(|key| !key.contains('\'')) {
            let mut inner = Parser::new(self.text, start + 1, end - 1);
            if inner.rest().starts_with('.') {
                // A key that begins with a dot is parsed as `..`, as in client-go; `['\.a']` is the key `.a`.
                inner.pos += 1;
                inner.descend(at, nodes)?;
            } else {
                nodes.push(inner.field(at)?);
            }
            nodes.extend(inner.action(false)?);
            return Ok(());
        }
        let kind = StepKind::Slice(slice(at, text)?);
        nodes.push(Node::Step(Step { at, kind }));
        Ok(())
    }
}

/// Parses an index or a slice.
fn slice(at: usize, text: &str) -> Result<Slice, JsonPathError> {
    if text == "*" {
        return Ok(Slice {
            from: 0,
            until: Until::End,
            step: 1,
        });
    }
    let parts: Vec<&str> = text.split(':').collect();
    let well_formed = |part: &&str| {
        part.strip_prefix('-')
            .unwrap_or(part)
            .bytes()
            .all(|b| b.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(well_formed) {
        return Err(JsonPathError::at(
            at,
            format!("`[{text}]` is not an index; {}", index_remedy(text)),
        ));
    }
    let number = |index: usize| match parts.get(index).copied() {
        None | Some("") => Ok(None),
        Some(part) => {
            let error = |_| JsonPathError::at(at, format!("`{part}` is not a valid index"));
            part.parse::<i64>().map(Some).map_err(error)
        }
    };
    let from = number(0)?.unwrap_or(0);
    let until = match (parts.len(), number(1)?) {
        (1, _) => Until::Next,
        (_, Some(index)) => Until::At(index),
        (_, None) => Until::End,
    };
    let step = usize::try_from(number(2)?.unwrap_or(1)).unwrap_or(0);
    if step == 0 {
        return Err(JsonPathError::at(
            at,
            format!("the step of `[{text}]` must be greater than 0"),
        ));
    }
    Ok(Slice { from, until, step })
}

fn index_remedy(text: &str) -> &'static str {
    if text.contains('"') {
        "write keys in single quotes: ['key']"
    } else if text.contains('\'') {
        "a key in brackets cannot contain a quote; write .key\\'s"
    } else if text.contains(' ') {
        "remove the spaces"
    } else {
        "write a number, a slice such as 1:3, * or a key in single quotes"
    }
}

fn is_terminator(next: char) -> bool {
    matches!(
        next,
        ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}'
    )
}

fn unexpected(at: usize, found: char) -> JsonPathError {
    let remedy = match found {
        '\t' | '\r' | '\n' => "tabs and line breaks are not allowed within braces",
        '{' => "braces must not be nested; write one pair: {.age}",
        '*' => "write .* or [*]",
        '&' | '|' => "filters do not support `&&` and `||`; use one test per filter",
        ',' => "write several keys as ['a','b']",
        '~' => "filters do not support regular expressions; use the condition instead",
        '!' => "filters do not support `!`; use !=",
        _ => "keys start with a dot: {.name}",
    };
    JsonPathError::at(at, format!("unexpected {found:?}; {remedy}"))
}
