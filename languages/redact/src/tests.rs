//! Tests with the encodings in which servers return a Secret.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

fn quoting(secret: &str) -> Redactor {
    Redactor::new([secret].into_iter()).quoting()
}

#[test]
fn every_form_of_a_secret_is_masked() {
    let redactor = Redactor::new(["p@ss \"word\"\n", "p@ss"].into_iter());
    assert_eq!(redactor.clean("token p@ss \"word\"\n!"), "token *****!");
    assert_eq!(redactor.clean(r#"{"t":"p@ss \"word\"\n"}"#), r#"{"t":"*****"}"#);
    assert_eq!(redactor.clean("GET /?t=p%40ss%20%22word%22%0A"), "GET /?t=*****");
    assert_eq!(redactor.clean("only p@ss here"), "only ***** here");
    assert_eq!(redactor.clean("nothing here"), "nothing here");
    assert!(!format!("{redactor:?}").contains("p@ss"));
}

/// Observed forms from PHP, Gson, Jackson, Python and HTML pages.
#[test]
fn the_escapes_of_other_encoders_are_undone() {
    let pages = [
        (r"abc/def+ghi=", r#"{"error":"invalid token: abc\/def+ghi="}"#),
        (r"abc/def+ghi=", r"abc/def\u002bghi\u003d"),
        (r"abc/def+ghi=", r"abc\u002Fdef\u002Bghi\u003D"),
        (
            r"abc/def+ghi=",
            "<p>token abc&#x2F;def&#43;ghi&#61; is unknown</p>",
        ),
        (r"abc/def+ghi=", "<p>token abc&sol;def&plus;ghi&equals;</p>"),
        (r"abc/def+ghi=", "abc&amp;#x2F;def&amp;#43;ghi"),
        (r"abc/def+ghi=", "abc%252Fdef%252Bghi%253D"),
        (r"abc/def+ghi=", r#""{\"t\":\"abc\\\/def+ghi=\"}""#),
        (r"abc/def+ghi=", "abc/de\n    f+ghi="),
        (r"abc/def+ghi=", "ABC/DEF+GHI="),
        (r"abc/def+ghi=", r"\x61\x62\x63/\144\145\146+ghi="),
        ("caf\u{e9}-au-lait", r"caf\u00e9-au-lait"),
        ("caf\u{e9}-au-lait", "caf&eacute;-au-lait"),
        ("caf\u{e9}-au-lait", "caf%C3%A9-au-lait"),
        ("it's a 'key'", r"it\u0027s a \u0027key\u0027"),
        ("it's a 'key'", "it&#39;s a &apos;key&apos;"),
        (r#"a "b"&c~*"#, r#"{"body":"{\"t\":\"a \\\"b\\\"&c~*\"}"}"#),
        (r#"a "b"&c~*"#, "query=up%22a+%5C%22b%5C%22%26c%7E*%22"),
        ("\u{1f511}key-of-old", r"\ud83d\udd11key-of-old"),
    ];
    for (secret, page) in pages {
        let clean = quoting(secret).clean(page);
        assert!(clean.contains(MASK), "{secret} in {page}: {clean}");
        for word in ["abc", "ABC", "def", "ghi", "caf", "lait", "key"] {
            assert!(!clean.contains(word), "{secret} in {page}: {clean}");
        }
    }
}

/// A message may have been truncated in the middle of a secret.
#[test]
fn a_piece_of_a_secret_is_masked() {
    let redactor = quoting("Zq7xW1vKp9LmT4rB");
    assert_eq!(
        redactor.clean("began with Zq7xW1vKp9… (cut)"),
        "began with *****… (cut)"
    );
    assert_eq!(
        redactor.clean("nothing of Zq7x is here"),
        "nothing of Zq7x is here"
    );
}

#[test]
fn an_empty_secret_masks_nothing_and_a_secret_hides_the_answer() {
    let empty = Redactor::new([""].into_iter());
    assert_eq!(empty.clean("abc"), "abc");
    assert!(empty.hides() && !empty.quoting().hides());
    assert!(!Redactor::default().hides());
    assert!(!Redactor::of_parts(["Bearer x"].into_iter()).hides());
}

#[test]
fn a_part_that_is_no_secret_is_masked_as_a_whole_only() {
    let redactor = Redactor::of_parts(["namespace-arena/1", "abc"].into_iter());
    assert_eq!(redactor.clean(r"GET ?ns=namespace-arena\/1"), "GET ?ns=*****");
    assert_eq!(
        redactor.clean("the namespace arena is abc"),
        "the namespace arena is abc"
    );
}

/// The longest Secret, with characters that maximize every escape, in the longest response.
#[test]
fn the_longest_secret_costs_little() {
    for sign in ["x", "\"", "%", "\\", "&amp;", "\\u0041"] {
        let secret = sign.repeat(16 * 1024 / sign.len());
        let redactor = quoting(&secret);
        let page = format!("{secret} {}", sign.repeat(1024 * 1024 / sign.len()));
        let shown = redactor.clean(&page);
        assert!(shown.len() <= SHOWN_BYTES, "{}", shown.len());
        assert!(!shown.contains(&sign.repeat(9)), "{sign}");
    }
}

proptest! {
    /// The letters of a secret stay hidden through any sequence of encoders.
    #[test]
    fn no_encoders_one_after_the_other_show_a_secret(
        secret in "([A-Za-z0-9][+/=\"&<>'. -]{1,2}){8,13}|([A-Za-z0-9][+/=\"&<>'. -]?){12,24}",
        encoders in proptest::collection::vec((0_u8..7, any::<bool>()), 1..4),
    ) {
        let letters: String = secret.chars().filter(char::is_ascii_alphanumeric).collect();
        let mut page = secret.clone();
        for (way, of_letters) in &encoders {
            let write = |sign: char| {
                if sign.is_ascii_alphanumeric() && !of_letters {
                    sign.to_string()
                } else {
                    written(sign, *way)
                }
            };
            page = page.chars().map(write).collect();
        }
        let shown = quoting(&secret).clean(&format!("before {page} after"));
        // Resolves the remaining escapes by hand, like a reader who does not know this code.
        let read: String = undo(&undo(&undo(&shown))).chars().filter(char::is_ascii_alphanumeric).collect();
        for piece in letters.as_bytes().windows(8) {
            let piece = String::from_utf8_lossy(piece);
            prop_assert!(!read.contains(&*piece), "{piece} of {secret} is in {shown}");
        }
    }
}

/// Encodes one character as some server does.
fn written(sign: char, way: u8) -> String {
    let code = u32::from(sign);
    match way {
        0 => format!("\\u{code:04x}"),
        1 => format!("\\u{code:04X}"),
        2 => format!("&#{code};"),
        3 => format!("&#x{code:x};"),
        4 => format!("%{code:02X}"),
        _ if matches!(sign, '"' | '\\' | '/') => format!("\\{sign}"),
        _ => sign.to_string(),
    }
}

/// Reverts [`written`] with regular expressions.
fn undo(text: &str) -> String {
    static ESCAPE: LazyLock<regex::Regex> = LazyLock::new(|| {
        regex::Regex::new(r"\\u([0-9a-fA-F]{4})|&#x([0-9a-f]+);|%([0-9A-F]{2})|&#([0-9]+);").unwrap()
    });
    let plain = ESCAPE.replace_all(text, |found: &regex::Captures<'_>| {
        let hex = (1..=3).find_map(|at| found.get(at));
        let code = match hex {
            Some(hex) => u32::from_str_radix(hex.as_str(), 16),
            None => found[4].parse(),
        };
        char::from_u32(code.unwrap()).unwrap().to_string()
    });
    plain.replace('\\', "")
}
