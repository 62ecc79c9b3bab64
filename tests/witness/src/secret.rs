//! Searches for a secret as a reader would, in any encoding that a server applied. It has no list of what the
//! operators mask: it removes every known escape and compares only letters and digits.

/// Number of consecutive letters and digits that reveal a secret.
const RUN: usize = 8;

/// Returns a run of letters and digits of the secret that appears in the text, escaped or not.
pub fn run_of(secret: &str, text: &str) -> Option<String> {
    let secret = letters(secret);
    let length = secret.len().min(RUN);
    if length < 4 {
        return None;
    }
    let mut readings = vec![text.to_owned()];
    for _ in 0..3 {
        let last = readings.last().cloned().unwrap_or_default();
        let next = of_urls(&of_pages(&of_strings(&last)));
        if next == last {
            break;
        }
        readings.push(next);
    }
    let readings: Vec<String> = readings.iter().map(|reading| letters(reading)).collect();
    let mut runs = secret
        .as_bytes()
        .windows(length)
        .map(|run| String::from_utf8_lossy(run).into_owned());
    runs.find(|run| readings.iter().any(|reading| reading.contains(run.as_str())))
}

fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Removes JSON escapes: `\u0041`, `\/`, `\"`.
fn of_strings(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.strip_prefix(['u', 'U']).and_then(|rest| rest.get(..4));
        let sign = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
        match (sign, part.strip_prefix(['n', 'r', 't'])) {
            (Some(sign), _) => {
                plain.push(sign);
                plain.push_str(part.get(5..).unwrap_or_default());
            }
            (None, Some(rest)) => plain.push_str(rest),
            (None, None) => plain.push_str(part),
        }
    }
    plain
}

/// Removes HTML escapes: `&#65;`, `&#x41;`. For `&sol;` it matters only that it is no letter.
fn of_pages(text: &str) -> String {
    let mut parts = text.split('&');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((name, rest)) = part.split_once(';').filter(|(name, _)| is_name(name)) else {
            plain.push('&');
            plain.push_str(part);
            continue;
        };
        let code = match name.strip_prefix('#') {
            Some(code) => match code.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => code.parse().ok(),
            },
            None if name == "amp" => Some(u32::from('&')),
            None => Some(u32::from(' ')),
        };
        plain.extend(code.and_then(char::from_u32));
        plain.push_str(rest);
    }
    plain
}

fn is_name(name: &str) -> bool {
    (1..=10).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '#')
}

/// Removes URL escapes: `%41`.
fn of_urls(text: &str) -> String {
    let mut parts = text.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        if let Some(byte) = code {
            plain.push(char::from(byte));
            plain.push_str(part.get(2..).unwrap_or_default());
        } else {
            plain.push('%');
            plain.push_str(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_recognised_whatever_was_made_of_it() {
        let secret = "abc/def+ghi=";
        for text in [
            "abc/def+ghi=",
            r"abc\/def+ghi=",
            r"abc\u002fdef\u002Bghi",
            "abc&#x2F;def&#43;ghi",
            "abc&sol;def&plus;ghi",
            "abc%2Fdef%2bghi",
            r#"{"a":"{\"b\":\"abc\\\/def+gh\"}"}"#,
            "abc%252Fdef%252Bghi",
        ] {
            assert!(run_of(secret, text).is_some(), "{text}");
        }
        for text in ["", "abc/de", "nothing of it: 100% & more; \\"] {
            assert_eq!(run_of(secret, text), None, "{text}");
        }
    }
}
