//! Values in a JSON body. Parses only enough to know whether a placeholder is inside a string.

use serde_json::Value;

use super::{Part, PlaceholderError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonContext {
    Outside,
    Inside,
    /// After a backslash in a string, and in the four digits of `\u`.
    Escape(u8),
}

pub(super) fn render(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    let mut output = String::new();
    let mut context = JsonContext::Outside;
    for part in parts {
        match *part {
            Part::Literal(text) => {
                context = text.chars().fold(context, follow);
                output.push_str(text);
            }
            Part::Argument { name, value } => match context {
                JsonContext::Inside => {
                    let quoted = Value::from(value).to_string();
                    output.push_str(quoted.get(1..quoted.len() - 1).unwrap_or_default());
                }
                JsonContext::Escape(_) => {
                    let message =
                        format!("args.{name} follows a backslash in jsonBody; remove the backslash");
                    return Err(PlaceholderError::new(message));
                }
                JsonContext::Outside if is_plain(value) => output.push_str(value),
                JsonContext::Outside => {
                    let message = format!(
                        "args.{name} is not a number, true, false or null; put the placeholder in quotes in jsonBody"
                    );
                    return Err(PlaceholderError::new(message));
                }
            },
        }
    }
    match plain_json::from_str::<Value>(&output) {
        Ok(_) => Ok(output),
        // The error's own text may contain part of a value; its position does not.
        Err(error) => {
            let message = format!(
                "jsonBody is not valid JSON at line {}, column {}",
                error.line(),
                error.column()
            );
            Err(PlaceholderError::new(message))
        }
    }
}

fn follow(context: JsonContext, next: char) -> JsonContext {
    match (context, next) {
        (JsonContext::Inside, '"') => JsonContext::Outside,
        (JsonContext::Inside, '\\') => JsonContext::Escape(0),
        (JsonContext::Escape(0), 'u') => JsonContext::Escape(4),
        (JsonContext::Outside, '"') | (JsonContext::Escape(0 | 1), _) => JsonContext::Inside,
        (JsonContext::Escape(left), _) => JsonContext::Escape(left - 1),
        (other, _) => other,
    }
}

/// Returns whether a text is a JSON number, true, false or null, without surrounding text.
fn is_plain(value: &str) -> bool {
    let tight = !value.contains(|next: char| next.is_ascii_whitespace());
    let scalar = |parsed: Value| matches!(parsed, Value::Number(_) | Value::Bool(_) | Value::Null);
    tight && plain_json::from_str(value).is_ok_and(scalar)
}
