//! Values in headers. A line break in a value would start another header.

use super::{Part, PlaceholderError};

pub(super) fn render(parts: &[Part<'_>]) -> Result<String, PlaceholderError> {
    let mut output = String::new();
    for part in parts {
        let text = match *part {
            Part::Literal(text) | Part::Argument { value: text, .. } => text,
        };
        if let Some((at, control)) = text.char_indices().find(|(_, next)| next.is_control()) {
            let what = match *part {
                Part::Literal(_) => "the header's text".to_owned(),
                Part::Argument { name, .. } => format!("the value of args.{name}"),
            };
            let place = output.len() + at;
            let code = u32::from(control);
            let message = format!(
                "{what} contains the control character U+{code:04X} at byte {place} of the header; remove the character"
            );
            return Err(PlaceholderError::new(message));
        }
        output.push_str(text);
    }
    Ok(output)
}
