//! Translation of Go's regular expressions (RE2 syntax) to those of the `regex` crate.
//!
//! Both share the engine idea but differ in details: in Go, `\d \w \s \b` are ASCII, `&&` in a class is two
//! characters, `{` may stand for itself, `\Q…\E` quotes, and repetition counts end at 1000. Patterns that Go
//! rejects (look-around, back-references, `a**`) are rejected, so a pattern never gains a new meaning.

use std::fmt::Write as _;

use crate::prepare::re2_class::ascii_class;

const MAX_REPEAT: u32 = 1000;

/// A pattern in the syntax of the `regex` crate.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) text: String,
    /// Estimated maximum effort of compiling it, in microseconds. It depends on the characters that classes
    /// name, and is higher if case is ignored.
    pub(crate) effort: usize,
}

/// Effort of a pattern without classes, in microseconds.
const EFFORT: usize = 300;
/// Effort of a `\pL` in microseconds, with case folding and (`CLASS`) without.
const FOLDED_CLASS: usize = 600;
const CLASS: usize = 15;
/// Number of characters of a range that are folded per microsecond.
const FOLDED_IN_ONE: usize = 50;

/// Translates a pattern.
pub(crate) fn translate(source: &str) -> Result<Translated, String> {
    let mut translator = Translator {
        signs: source.chars().collect(),
        at: 0,
        out: String::with_capacity(source.len() * 2),
        groups: vec![Group::default()],
        names: Vec::new(),
        folds: false,
        classes: 0,
        ranged: 0,
    };
    while let Some(sign) = translator.next() {
        translator.sign(sign)?;
    }
    if translator.groups.len() > 1 {
        return Err("missing closing )".to_owned());
    }
    Ok(Translated {
        effort: translator.effort(),
        text: translator.out,
    })
}

/// State of one open group.
#[derive(Debug, Default, Clone, Copy)]
struct Group {
    /// Maximum repetitions of the last operand, with inner repetitions multiplied; `None` before the first
    /// operand.
    operand: Option<u32>,
    /// Largest such product in this group.
    largest: u32,
    /// Whether the last item was a repetition, which cannot be repeated again.
    repeated: bool,
}

pub(crate) struct Translator {
    pub(crate) signs: Vec<char>,
    pub(crate) at: usize,
    pub(crate) out: String,
    groups: Vec<Group>,
    names: Vec<String>,
    /// Whether case is ignored anywhere.
    folds: bool,
    /// Number of Unicode classes.
    classes: usize,
    /// Number of characters in ranges beyond ASCII.
    ranged: usize,
}

impl Translator {
    pub(crate) fn peek(&self) -> Option<char> {
        self.signs.get(self.at).copied()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let sign = self.peek()?;
        self.at += 1;
        Some(sign)
    }

    pub(crate) fn accept(&mut self, text: &str) -> bool {
        let found = text
            .chars()
            .enumerate()
            .all(|(i, sign)| self.signs.get(self.at + i) == Some(&sign));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    pub(crate) fn operand(&mut self, product: u32) {
        if let Some(group) = self.groups.last_mut() {
            group.operand = Some(product);
            group.largest = group.largest.max(product);
            group.repeated = false;
        }
    }

    /// Appends formatted text. Writing to a `String` cannot fail.
    pub(crate) fn write(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
    }

    fn effort(&self) -> usize {
        let classes = self.classes * if self.folds { FOLDED_CLASS } else { CLASS };
        let ranged = if self.folds {
            self.ranged / FOLDED_IN_ONE
        } else {
            0
        };
        EFFORT + classes + ranged
    }

    /// Counts the characters of a range that goes beyond ASCII.
    pub(crate) fn names_range(&mut self, low: char, high: char) {
        if !high.is_ascii() {
            let wide = u32::from(high).saturating_sub(u32::from(low));
            self.ranged = self
                .ranged
                .saturating_add(usize::try_from(wide).unwrap_or(usize::MAX));
        }
    }

    pub(crate) fn names_class(&mut self) {
        self.classes += 1;
    }

    fn literal(&mut self, sign: char) {
        if sign.is_ascii_alphanumeric() || !sign.is_ascii() {
            self.out.push(sign);
        } else {
            self.write(format_args!("\\x{{{:x}}}", u32::from(sign)));
        }
        self.operand(1);
    }

    fn sign(&mut self, sign: char) -> Result<(), String> {
        match sign {
            '(' => self.open(),
            ')' => {
                let group = self.groups.pop().unwrap_or_default();
                if self.groups.is_empty() {
                    return Err("unexpected )".to_owned());
                }
                self.out.push(')');
                self.operand(group.largest.max(1));
                Ok(())
            }
            '|' => {
                if let Some(group) = self.groups.last_mut() {
                    group.operand = None;
                    group.repeated = false;
                }
                self.out.push('|');
                Ok(())
            }
            '*' | '+' | '?' => self.repeat(&sign.to_string(), 1),
            '{' => self.counted(),
            '[' => self.class(),
            '^' | '$' | '.' => {
                self.out.push(sign);
                self.operand(1);
                Ok(())
            }
            '\\' => self.escape(),
            _ => {
                self.literal(sign);
                Ok(())
            }
        }
    }

    fn open(&mut self) -> Result<(), String> {
        self.out.push('(');
        if !self.accept("?") {
            self.groups.push(Group::default());
            return Ok(());
        }
        if self.accept("P<") || (self.peek() == Some('<') && self.accept("<")) {
            let mut name = String::new();
            while let Some(sign) = self.next() {
                match sign {
                    '>' if !name.is_empty() && !self.names.contains(&name) => {
                        self.names.push(name);
                        self.groups.push(Group::default());
                        return Ok(());
                    }
                    sign if sign.is_ascii_alphanumeric() || sign == '_' => name.push(sign),
                    _ => break,
                }
            }
            return Err("invalid named group (look-behind is not supported)".to_owned());
        }
        let mut flags = String::from("?");
        let mut seen = false;
        while let Some(sign) = self.next() {
            flags.push(sign);
            match sign {
                'i' | 'm' | 's' | 'U' => {
                    seen = true;
                    self.folds |= sign == 'i';
                }
                '-' if !flags
                    .get(..flags.len() - 1)
                    .is_some_and(|before| before.contains('-')) =>
                {
                    seen = false;
                }
                ':' | ')' if flags.contains('-') && !seen => break,
                ':' => {
                    self.out.push_str(&flags);
                    self.groups.push(Group::default());
                    return Ok(());
                }
                ')' => {
                    if seen {
                        self.out.push_str(&flags);
                    } else {
                        // `(?)` is an empty group in Go.
                        self.out.push_str("?:)");
                    }
                    return Ok(());
                }
                _ => break,
            }
        }
        Err(format!(
            "({flags} is not supported (no look-around, no back-references)"
        ))
    }

    fn repeat(&mut self, op: &str, count: u32) -> Result<(), String> {
        let lazy = self.accept("?");
        let Some(group) = self.groups.last_mut() else {
            return Ok(());
        };
        let Some(inner) = group.operand else {
            return Err(format!("nothing to repeat before {op}"));
        };
        if group.repeated {
            return Err(format!("invalid nested repetition {op}"));
        }
        let product = inner.saturating_mul(count.max(1));
        if count > 1 && product > MAX_REPEAT {
            return Err(format!("the repeat count is greater than {MAX_REPEAT}"));
        }
        group.operand = Some(product);
        group.largest = group.largest.max(product);
        group.repeated = true;
        self.out.push_str(op);
        if lazy {
            self.out.push('?');
        }
        Ok(())
    }

    /// Parses `{n}`, `{n,}` or `{n,m}`; anything else is a literal brace.
    fn counted(&mut self) -> Result<(), String> {
        let start = self.at;
        let Some((low, high)) = self.counts() else {
            self.at = start;
            self.literal('{');
            return Ok(());
        };
        let top = high.unwrap_or(low);
        if low > MAX_REPEAT || top > MAX_REPEAT || (high.is_some() && top < low) {
            return Err("invalid repeat count".to_owned());
        }
        let inside: String = self.signs.get(start..self.at).unwrap_or(&[]).iter().collect();
        self.repeat(&format!("{{{inside}"), top)
    }

    fn counts(&mut self) -> Option<(u32, Option<u32>)> {
        let low = self.number()?;
        if self.accept("}") {
            return Some((low, Some(low)));
        }
        if !self.accept(",") {
            return None;
        }
        if self.accept("}") {
            return Some((low, None));
        }
        let high = self.number()?;
        self.accept("}").then_some((low, Some(high)))
    }

    fn number(&mut self) -> Option<u32> {
        let start = self.at;
        let mut number: u32 = 0;
        while let Some(digit) = self.peek().and_then(|sign| sign.to_digit(10)) {
            number = number.saturating_mul(10).saturating_add(digit);
            self.at += 1;
        }
        let leading_zero = self.at > start + 1 && self.signs.get(start) == Some(&'0');
        (self.at > start && !leading_zero).then_some(number)
    }

    fn escape(&mut self) -> Result<(), String> {
        let Some(sign) = self.next() else {
            return Err("trailing backslash".to_owned());
        };
        match sign {
            'A' | 'z' => {
                self.out.push('\\');
                self.out.push(sign);
                self.operand(1);
            }
            'b' | 'B' => {
                self.out
                    .push_str(if sign == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                self.operand(1);
            }
            'Q' => {
                while self.peek().is_some() && !self.accept("\\E") {
                    if let Some(sign) = self.next() {
                        self.literal(sign);
                    }
                }
            }
            _ => {
                if let Some(class) = ascii_class(sign) {
                    self.write(format_args!("(?-i:[{class}])"));
                } else if matches!(sign, 'p' | 'P') {
                    let class = self.unicode(sign == 'P')?;
                    self.out.push_str(&class);
                } else {
                    let code = self.character(sign)?;
                    self.write(format_args!("\\x{{{:x}}}", u32::from(code)));
                }
                self.operand(1);
            }
        }
        Ok(())
    }

    /// Translates an escaped character.
    pub(crate) fn character(&mut self, sign: char) -> Result<char, String> {
        let code = match sign {
            'a' => 7,
            'f' => 12,
            'n' => 10,
            'r' => 13,
            't' => 9,
            'v' => 11,
            'x' => self.hex()?,
            '1'..='7' if !self.peek().is_some_and(|next| next.is_digit(8)) => {
                return Err("back-references are not supported".to_owned());
            }
            '0'..='7' => {
                let mut code = sign.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|next| next.to_digit(8)) else {
                        break;
                    };
                    code = code * 8 + digit;
                    self.at += 1;
                }
                code
            }
            sign if sign.is_ascii() && !sign.is_ascii_alphanumeric() => u32::from(sign),
            _ => return Err(format!("invalid escape \\{sign}")),
        };
        char::from_u32(code).ok_or_else(|| "not a character".to_owned())
    }
}

#[cfg(test)]
mod tests;
