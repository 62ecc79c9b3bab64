//! Character classes of regular expressions: `[a-z]`, `\d`, `\pL`, `[:alpha:]`.

use crate::prepare::re2::Translator;

impl Translator {
    /// Parses `\x41` or `\x{1F600}`, after the `x`.
    pub(crate) fn hex(&mut self) -> Result<u32, String> {
        let bad = || "invalid \\x escape".to_owned();
        let mut code: u32 = 0;
        if self.accept("{") {
            let start = self.at;
            while !self.accept("}") {
                let digit = self.next().and_then(|sign| sign.to_digit(16)).ok_or_else(bad)?;
                code = code
                    .checked_mul(16)
                    .and_then(|code| code.checked_add(digit))
                    .ok_or_else(bad)?;
            }
            return if self.at > start + 1 { Ok(code) } else { Err(bad()) };
        }
        for _ in 0..2 {
            code = code * 16 + self.next().and_then(|sign| sign.to_digit(16)).ok_or_else(bad)?;
        }
        Ok(code)
    }

    pub(crate) fn class(&mut self) -> Result<(), String> {
        let missing = || "missing closing ]".to_owned();
        self.out.push('[');
        if self.accept("^") {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let sign = self.next().ok_or_else(missing)?;
            if sign == ']' && !first {
                break;
            }
            first = false;
            if sign == '[' && self.peek() == Some(':') && self.posix()? {
                continue;
            }
            if sign == '\\' {
                let escaped = self.peek().ok_or_else(missing)?;
                if let Some(class) = ascii_class(escaped) {
                    self.at += 1;
                    self.write(format_args!("[{class}]"));
                    continue;
                }
                if matches!(escaped, 'p' | 'P') {
                    self.at += 1;
                    let class = self.unicode(escaped == 'P')?;
                    self.out.push_str(&class);
                    continue;
                }
            }
            self.class_range(sign)?;
        }
        self.out.push(']');
        self.operand(1);
        Ok(())
    }

    fn class_range(&mut self, sign: char) -> Result<(), String> {
        let low = self.class_character(sign)?;
        let mut high = low;
        if self.peek() == Some('-') && self.signs.get(self.at + 1).is_some_and(|next| *next != ']') {
            self.at += 1;
            let sign = self.next().unwrap_or(']');
            high = self.class_character(sign)?;
        }
        if high < low {
            return Err(format!("invalid range {low}-{high}"));
        }
        self.names_range(low, high);
        self.write(format_args!(
            "\\x{{{:x}}}-\\x{{{:x}}}",
            u32::from(low),
            u32::from(high)
        ));
        Ok(())
    }

    fn class_character(&mut self, sign: char) -> Result<char, String> {
        if sign != '\\' {
            return Ok(sign);
        }
        let escaped = self.next().ok_or_else(|| "trailing backslash".to_owned())?;
        self.character(escaped)
    }

    /// Parses `[:alpha:]`. Returns false for any other text, in which case `[` is a literal.
    fn posix(&mut self) -> Result<bool, String> {
        let rest: String = self.signs.get(self.at..).unwrap_or(&[]).iter().take(16).collect();
        let Some(end) = rest.find(":]").filter(|end| *end > 0) else {
            return Ok(false);
        };
        let name = rest.get(1..end).unwrap_or("");
        let known = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
            "space", "upper", "word", "xdigit",
        ];
        if !known.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("invalid character class [:{name}:]"));
        }
        self.write(format_args!("[:{name}:]"));
        self.at += end + 2;
        Ok(true)
    }

    /// Parses `\pL`, `\p{Greek}` or `\P{^Greek}`.
    pub(crate) fn unicode(&mut self, negated: bool) -> Result<String, String> {
        let mut negated = negated;
        let mut name = String::new();
        match self.next() {
            Some('{') => {
                if self.accept("^") {
                    negated = !negated;
                }
                loop {
                    match self.next() {
                        Some('}') => break,
                        Some(sign) if sign.is_ascii_alphabetic() || sign == '_' => name.push(sign),
                        _ => return Err("invalid character class name".to_owned()),
                    }
                }
            }
            Some(sign) => name.push(sign),
            None => return Err("invalid character class".to_owned()),
        }
        if !name.starts_with(|sign: char| sign.is_ascii_uppercase()) {
            return Err(format!("invalid character class {name}"));
        }
        self.names_class();
        Ok(format!("\\{}{{{name}}}", if negated { 'P' } else { 'p' }))
    }
}

/// Returns the members of `\d`, `\s`, `\w` and their negations: ASCII only, as in Go.
pub(crate) fn ascii_class(sign: char) -> Option<&'static str> {
    Some(match sign {
        'd' => "0-9",
        'D' => "^0-9",
        's' => r"\t\n\x0c\r\x20",
        'S' => r"^\t\n\x0c\r\x20",
        'w' => "0-9A-Za-z_",
        'W' => "^0-9A-Za-z_",
        _ => return None,
    })
}
