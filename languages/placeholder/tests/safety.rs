//! Tests that no value escapes from its placeholder.

use placeholder::{PlaceholderError, Template};
use proptest::prelude::*;
use serde_json::Value;
use url::Url;

/// Generates texts that are likely to escape from their context, and arbitrary ones.
fn value() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("`".to_owned()),
        Just("\\".to_owned()),
        Just("/".to_owned()),
        Just("..".to_owned()),
        Just("%2e".to_owned()),
        Just("{{args.x}}".to_owned()),
        Just("@evil.example".to_owned()),
        Just("\r\n".to_owned()),
        Just("*/".to_owned()),
        Just("//".to_owned()),
        Just("#".to_owned()),
        Just("?".to_owned()),
        Just(":".to_owned()),
        Just("\\u0022".to_owned()),
        Just("-1".to_owned()),
        "[a-z0-9.]{1,6}",
        ".{0,4}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat())
}

type Render = fn(&Template, &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError>;

fn render(render: Render, text: &str, value: &str) -> Result<String, PlaceholderError> {
    Template::parse(text).and_then(|template| render(&template, &|_| Some(value.to_owned())))
}

/// Returns the content of the leading string literal with Go's escapes resolved, and the remaining text.
fn read_literal(text: &str) -> Option<(String, &str)> {
    let mut chars = text.char_indices();
    let quote = chars.next()?.1;
    let mut output = String::new();
    while let Some((at, next)) = chars.next() {
        match next {
            next if next == quote => return Some((output, text.get(at + quote.len_utf8()..)?)),
            '\n' if quote != '`' => return None,
            '\\' if quote != '`' => match chars.next()?.1 {
                'n' => output.push('\n'),
                't' => output.push('\t'),
                'u' => {
                    let code: String = (0..4)
                        .filter_map(|_| chars.next())
                        .map(|(_, digit)| digit)
                        .collect();
                    output.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
                }
                escaped if escaped == quote || escaped == '\\' => output.push(escaped),
                _ => return None,
            },
            next => output.push(next),
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_value_stays_in_its_part_of_a_url(value in value()) {
        let rendered = render(Template::render_url, "https://u:{{args.v}}@game.svc:81/a/{{args.v}}/b?c={{args.v}}&d#{{args.v}}", &value);
        let Ok(text) = rendered else {
            // Only a value that is a relative step to another path segment is rejected here.
            prop_assert!(matches!(value.as_str(), "." | ".."));
            return Ok(());
        };
        let url = Url::parse(&text).unwrap();
        prop_assert_eq!(url.host_str(), Some("game.svc"));
        prop_assert_eq!((url.scheme(), url.port(), url.username()), ("https", Some(81), "u"));
        let segments: Vec<&str> = url.path_segments().unwrap().collect();
        prop_assert_eq!(segments.len(), 3);
        prop_assert_eq!((segments[0], segments[2]), ("a", "b"));
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        prop_assert_eq!(pairs, [("c".to_owned(), value), ("d".to_owned(), String::new())]);
    }

    #[test]
    fn a_host_is_a_host_or_refused(value in prop_oneof![value(), "[a-z0-9.:-]{0,12}", "[0-9a-f:]{2,20}", "[0-9x.]{1,12}"]) {
        if let Ok(text) = render(Template::render_url, "http://{{args.v}}:81/a/b", &value) {
            let url = Url::parse(&text);
            prop_assume!(!value.to_ascii_lowercase().contains("xn--"));
            let url = url.unwrap();
            prop_assert_eq!((url.port(), url.path(), url.query(), url.fragment()), (Some(81), "/a/b", None, None));
            prop_assert_eq!(url.username(), "");
            let host = url.host_str().unwrap();
            let given = value.to_ascii_lowercase();
            let same_address = value.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>().ok()
                == host.trim_matches(['[', ']']).parse().ok();
            prop_assert!(host == given || (host.starts_with('[') && same_address), "{} became {}", value, host);
        }
        if let Ok(text) = render(Template::render_url, "http://a.{{args.v}}.svc.b/a", &value) {
            let url = Url::parse(&text).unwrap();
            let host = url.host_str().unwrap();
            prop_assert!(host.starts_with("a.") && host.ends_with(".svc.b"), "{}", host);
            prop_assert_eq!(url.path(), "/a");
        }
        if let Ok(text) = render(Template::render_url, "http://h:{{args.v}}/a", &value) {
            let url = Url::parse(&text).unwrap();
            prop_assert_eq!((url.host_str(), url.path(), url.username()), (Some("h"), "/a", ""));
        }
    }

    #[test]
    fn a_base_keeps_what_follows_it(value in prop_oneof![value(), value().prop_map(|value| format!("http://h{value}"))]) {
        if let Ok(text) = render(Template::render_url, "{{args.v}}/tail?q=1", &value) {
            let url = Url::parse(&text).unwrap();
            prop_assert!(url.path().ends_with("/tail"), "{}", text);
            prop_assert_eq!((url.query(), url.fragment(), url.username()), (Some("q=1"), None, ""));
        }
    }

    #[test]
    fn a_header_stays_one_line(value in value()) {
        if let Ok(text) = render(Template::render_header, "Bearer {{args.v}}", &value) {
            prop_assert!(!text.contains(|next: char| next.is_control()));
            prop_assert_eq!(text, format!("Bearer {value}"));
        }
    }

    #[test]
    fn a_json_body_keeps_its_structure(value in value()) {
        let text = render(Template::render_json, r#"{"a":"x{{args.v}}y","b":["{{args.v}}"],"{{args.v}}":1}"#, &value).unwrap();
        let body: Value = serde_json::from_str(&text).unwrap();
        prop_assume!(value != "a" && value != "b");
        let expected = serde_json::json!({"a": format!("x{value}y"), "b": [value], value.as_str(): 1});
        prop_assert_eq!(body, expected);
        if let Ok(text) = render(Template::render_json, r#"{"a":{{args.v}},"b":1}"#, &value) {
            let body: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(body.as_object().unwrap().len(), 2);
            prop_assert!(!body["a"].is_object() && !body["a"].is_array() && !body["a"].is_string());
        }
    }

    #[test]
    fn a_query_keeps_its_literals(value in value(), quote in prop::sample::select(vec!['"', '\'', '`'])) {
        let template = format!("up{{pod={quote}x{{{{args.v}}}}{quote},other=\"1\"}}");
        match render(Template::render_promql, &template, &value) {
            Ok(text) => {
                let (literal, rest) = read_literal(text.strip_prefix("up{pod=").unwrap()).unwrap();
                prop_assert_eq!(literal, format!("x{value}"));
                prop_assert_eq!(rest, ",other=\"1\"}");
            }
            Err(_) => prop_assert!(quote == '`' && value.contains(['`', '\r'])),
        }
        if let Ok(text) = render(Template::render_promql, "up > {{args.v}} or down", &value) {
            prop_assert!(text.bytes().all(|next| next.is_ascii_alphanumeric() || b" >_:.-+".contains(&next)));
        }
    }

    #[test]
    fn a_condition_keeps_its_literals(value in value(), quote in prop::sample::select(vec!['"', '\'', '`'])) {
        let template = format!("result == {quote}x{{{{args.v}}}}{quote} and true");
        match render(Template::render_condition, &template, &value) {
            Ok(text) => {
                let (literal, rest) = read_literal(text.strip_prefix("result == ").unwrap()).unwrap();
                prop_assert_eq!(literal, format!("x{value}"));
                prop_assert_eq!(rest, " and true");
            }
            Err(_) => prop_assert!(quote == '`' && value.contains(['`', '\r'])),
        }
        if let Ok(text) = render(Template::render_condition, "result > {{args.v}} and true", &value) {
            let number = text.strip_prefix("result > ").unwrap().strip_suffix(" and true").unwrap();
            let number = number.trim_matches(['(', ')']);
            prop_assert!(number == "true" || number == "false" || number.parse::<f64>().is_ok(), "{}", text);
        }
    }

    #[test]
    fn no_template_panics(text in "(\\{\\{|\\}\\}| |args\\.|x|\"|'|`|http://|/|\\\\|:|\\[|[^a]){0,12}", value in value()) {
        if let Ok(template) = Template::parse(&text) {
            let renders: [Render; 6] = [
                Template::render, Template::render_url, Template::render_header,
                Template::render_json, Template::render_promql, Template::render_condition,
            ];
            for render in renders {
                let _ = render(&template, &|name| (name != "x").then(|| value.clone()));
            }
        }
    }
}
