use serde_json::json;

use super::*;

#[test]
fn selectors_select_as_the_api_server_does() {
    let rule =
        |operator: &str, values: &[&str]| json!([{"key": "tier", "operator": operator, "values": values}]);
    let table = [
        (rule("In", &["a", "b"]), Some("a"), true),
        (rule("In", &["a", "b"]), Some("c"), false),
        (rule("In", &["a"]), None, false),
        (rule("NotIn", &["a"]), Some("a"), false),
        (rule("NotIn", &["a"]), Some("b"), true),
        (rule("NotIn", &["a"]), None, true),
        (rule("Exists", &[]), Some("x"), true),
        (rule("Exists", &[]), None, false),
        (rule("DoesNotExist", &[]), Some("x"), false),
        (rule("DoesNotExist", &[]), None, true),
    ];
    for (rules, tier, selected) in table {
        let selector = serde_json::from_value(json!({"matchExpressions": rules})).unwrap();
        let mut found = Vec::new();
        let read = Selector::read(&selector, &mut found);
        let labels = tier
            .map(|tier| ("tier".to_owned(), tier.to_owned()))
            .into_iter()
            .collect();
        assert_eq!(read.matches(&labels), selected, "{read} of {tier:?}");
        assert!(found.is_empty());
    }
}
