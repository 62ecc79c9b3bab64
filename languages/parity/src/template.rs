//! Placeholders against fasttemplate with the original operator's resolver: the same text, or an error.

use placeholder::{Template, check_all_supplied};
use serde_json::Value;

use super::{Judged, difference, text};

pub(crate) fn judge(row: &Value) -> Judged {
    let (Some(template), Some(args)) = (text(row, "template"), row.get("args").and_then(Value::as_array))
    else {
        return Judged::Malformed("no template or no args".to_owned());
    };
    let args: Vec<(&str, Option<&str>)> = args
        .iter()
        .map(|arg| (text(arg, "name").unwrap_or_default(), text(arg, "value")))
        .collect();
    let expected = text(row, "output");
    if expected.is_none() && row.get("error").is_none() {
        return Judged::Malformed("neither output nor error".to_owned());
    }
    let words = |ours: &str| difference(&format!("{template:?}"), expected.unwrap_or("an error"), ours);
    match (expected, render(template, &args)) {
        (None, Err(_)) => Judged::Same,
        (Some(expected), Ok(ours)) if expected == ours => Judged::Same,
        (_, Ok(ours)) => Judged::Unsafe(words(&ours)),
        (Some(_), Err(error)) => Judged::Unexplained(words(&error)),
    }
}

fn render(template: &str, args: &[(&str, Option<&str>)]) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.message)?;
    check_all_supplied(args.iter().copied()).map_err(|error| error.message)?;
    // If an argument is given twice, the last one counts.
    let last = |name: &str| {
        args.iter()
            .rev()
            .find(|(given, _)| *given == name)?
            .1
            .map(str::to_owned)
    };
    template.render(&last).map_err(|error| error.message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn another_text_is_unsafe() {
        let row = |output: &str| json!({"template": "{{args.a}}", "args": [{"name": "a", "value": "1"}], "output": output});
        assert_eq!(judge(&row("1")), Judged::Same);
        assert!(matches!(judge(&row("2")), Judged::Unsafe(_)));
        let error = json!({"template": "{{args.b}}", "args": [], "error": "failed to resolve"});
        assert_eq!(judge(&error), Judged::Same);
    }
}
