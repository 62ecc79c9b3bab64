//! Data of a revision: the template, in the form of this operator and the original one.

use serde::Deserialize;
use serde_json::{Value, json};
use shared_api::json_text::JsonText;
use shared_api::limits::MAX_SPEC_BYTES;

use crate::template::Template;

/// Data of a revision with a template.
#[derive(Deserialize)]
struct Data {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    template: JsonText,
}

/// Returns the `data` of a template's revision: a strategic merge patch that replaces a template.
pub fn data_of(template: &Template) -> JsonText {
    let mut raw = template.raw();
    if let Value::Object(fields) = &mut raw {
        fields.insert("$patch".to_owned(), "replace".into());
    }
    JsonText::from(json!({"spec": {"template": raw}}))
}

/// Extracts the template from the `data` of a revision; `None` if there is none, or one that is longer than that of any
/// GameDeployment. Only the template is parsed: the data of a hostile revision may take up a hundred times its bytes.
pub fn template_in(data: &JsonText) -> Option<Template> {
    let Data { spec } = serde_json::from_str(data.as_str()).ok()?;
    let text = spec.template;
    if text.as_str().len() > MAX_SPEC_BYTES {
        return None;
    }
    let mut raw = text.value();
    if let Value::Object(fields) = &mut raw {
        fields.remove("$patch");
    }
    Some(Template::read(&raw))
}
