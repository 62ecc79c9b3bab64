//! Escapes in string literals, as in Go expr.

/// Resolves the escapes in `body`, the text between two `quote` characters.
pub(crate) fn unescape(body: &str, quote: char) -> Result<String, String> {
    if !body.contains(['\\', '\r']) {
        return Ok(body.to_owned());
    }
    // Go normalizes line endings in string literals.
    let body = body.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(sign) = rest.next() {
        if sign == '\\' {
            out.push(escape(&mut rest, quote)?);
        } else {
            out.push(sign);
        }
    }
    Ok(out)
}

fn escape(rest: &mut std::str::Chars<'_>, quote: char) -> Result<char, String> {
    let sign = rest.next().ok_or("text ends with a single backslash")?;
    Ok(match sign {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' => '\\',
        sign if sign == quote => sign,
        'x' => fixed(rest, 2)?,
        'u' if rest.as_str().starts_with('{') => braced(rest)?,
        'u' => fixed(rest, 4)?,
        'U' => fixed(rest, 8)?,
        '0'..='3' => octal(sign, rest)?,
        other => return Err(format!("unknown escape \\{other}; write \\\\ for a backslash")),
    })
}

fn fixed(rest: &mut std::str::Chars<'_>, digits: usize) -> Result<char, String> {
    let mut code = 0;
    for _ in 0..digits {
        let digit = rest.next().and_then(|sign| sign.to_digit(16));
        code = code * 16 + digit.ok_or_else(|| format!("this escape needs {digits} hex digits"))?;
    }
    if code > u32::from(char::MAX) {
        return Err("this escape is not a Unicode character".to_owned());
    }
    Ok(scalar(code))
}

fn braced(rest: &mut std::str::Chars<'_>) -> Result<char, String> {
    let bad = "\\u{…} needs one to six hex digits";
    rest.next();
    let mut code = 0;
    for count in 0.. {
        match rest.next() {
            Some('}') if count > 0 => break,
            Some(sign) if count < 6 => code = code * 16 + sign.to_digit(16).ok_or(bad)?,
            _ => return Err(bad.to_owned()),
        }
    }
    if code > u32::from(char::MAX) {
        return Err(bad.to_owned());
    }
    Ok(scalar(code))
}

fn octal(first: char, rest: &mut std::str::Chars<'_>) -> Result<char, String> {
    let mut code = first.to_digit(8).unwrap_or(0);
    for _ in 0..2 {
        let digit = rest.next().and_then(|sign| sign.to_digit(8));
        code = code * 8 + digit.ok_or("an octal escape needs three digits, \\000 to \\377")?;
    }
    Ok(scalar(code))
}

/// Converts a code point. Half a surrogate pair is not a character; Go writes U+FFFD for it.
fn scalar(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn escapes_follow_go() {
        for (body, want) in [
            ("\\n\\t\\\\", "\n\t\\"),
            ("\\x41\\101\\u0041\\U00000041\\u{41}", "AAAAA"),
            ("\\\"", "\""),
            ("é\\u00e9", "éé"),
        ] {
            assert_eq!(unescape(body, '"').as_deref(), Ok(want), "{body}");
        }
        for body in [
            "\\'",
            "\\q",
            "\\/",
            "\\0",
            "\\400",
            "\\x4",
            "\\u12",
            "\\u{}",
            "\\u{1234567}",
            "\\",
        ] {
            assert!(unescape(body, '"').is_err(), "{body}");
        }
    }
}
