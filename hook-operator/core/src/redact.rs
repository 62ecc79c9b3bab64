//! Takes the texts of Secrets out of values and messages before anyone sees them.

use std::fmt;

/// What stands in a secret's place.
const MASK: &str = "*****";

/// Knows the secrets of one measurement.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret that holds another is masked whole.
    secrets: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// A redactor for these texts, in the forms in which an endpoint could send them back: see [`forms`].
    pub fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = secrets
            .flat_map(|secret| [secret, secret.trim()])
            .flat_map(forms)
            .filter(|form| !form.is_empty())
            .collect();
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Self { secrets: forms }
    }

    /// The text with every secret masked.
    #[must_use]
    pub fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in self
            .secrets
            .iter()
            .filter(|secret| text.contains(secret.as_str()))
        {
            clean = clean.replace(secret.as_str(), MASK);
        }
        clean
    }
}

/// A text as it is, quoted as in JSON (by encoders that escape markup, too) and as in JSON within JSON, and each of
/// these, which may stand in a query, encoded as in a URL and as in a form.
fn forms(text: &str) -> Vec<String> {
    let once = quoted(text);
    let plain = [text.to_owned(), for_markup(&once), quoted(&once), once];
    let encoded = plain
        .iter()
        .flat_map(|text| [percent(text, false), percent(text, true), form(text)]);
    encoded.chain(plain.clone()).collect()
}

/// Within the quotes of a JSON string.
fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default()
        .to_owned()
}

/// JSON as Go's encoder writes it.
fn for_markup(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
}

/// Percent-encodes everything but unreserved characters.
fn percent(text: &str, lower: bool) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ if lower => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// As `application/x-www-form-urlencoded`.
fn form(text: &str) -> String {
    percent(text, false)
        .replace('~', "%7E")
        .replace("%2A", "*")
        .replace("%20", "+")
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_secret_within_something_that_is_quoted_itself_is_masked() {
        let redactor = Redactor::new(["a \"b\"&c~*"].into_iter());
        assert_eq!(
            redactor.clean(r#"{"body":"{\"t\":\"a \\\"b\\\"&c~*\"}"}"#),
            r#"{"body":"{\"t\":\"*****\"}"}"#
        );
        assert_eq!(redactor.clean(r#"{"t":"a \"b\"\u0026c~*"}"#), r#"{"t":"*****"}"#);
        assert_eq!(
            redactor.clean("query=up%22a+%5C%22b%5C%22%26c%7E*%22"),
            "query=up%22*****%22"
        );
    }

    #[test]
    fn an_empty_secret_masks_nothing() {
        assert_eq!(Redactor::new([""].into_iter()).clean("abc"), "abc");
    }
}
