use super::translate;

fn is_match(pattern: &str, text: &str) -> bool {
    let rust = translate(pattern).expect("translates");
    regex_automata::meta::Regex::new(&rust.text)
        .expect("compiles")
        .is_match(text)
}

#[test]
fn classes_are_ascii() {
    assert!(!is_match(r"^\w$", "é"));
    assert!(is_match(r"^\pL$", "é"));
    assert!(!is_match(r"^\d$", "٣"));
    assert!(is_match(r"^[\d.]+$", "1.2"));
    assert!(is_match(r"é\b", "é") == is_match(r"^\B$", "a"));
}

#[test]
fn signs_that_mean_more_in_rust_are_plain_here() {
    assert!(is_match("^[a&&b]$", "&"));
    assert!(is_match("^[[a]b$", "[b"));
    assert!(is_match("^a{,2}$", "a{,2}"));
    assert!(is_match("^{$", "{"));
    assert!(is_match(r"^\Qa.b\E$", "a.b"));
    assert!(!is_match(r"^\Qa.b\E$", "axb"));
    assert!(is_match(r"^\x41\101\x{41}\.\<$", "AAA.<"));
    assert!(is_match("(?i)^abc$", "ABC"));
    assert!(is_match("^[]a-]+$", "]-a"));
    assert!(is_match("^[^[:digit:]]$", "x"));
}

#[test]
fn what_go_refuses_is_refused() {
    for pattern in [
        "(?=a)",
        "(?<!a)",
        r"(a)\1",
        "a**",
        "a{2}{3}",
        "*a",
        "a{1001}",
        "(a{100}){100}",
        "(",
        ")",
        "[a",
        r"\8",
        r"\u0041",
        r"\Z",
        "(?x)a",
        "(?P<n>a)(?P<n>b)",
        "[b-a]",
        "[[:foo:]]",
        r"\",
        "(?i",
        "a{3,2}",
        r"\C",
    ] {
        assert!(translate(pattern).is_err(), "{pattern}");
    }
}
