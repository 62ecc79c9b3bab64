//! Names of revisions: `<gd>-<hash>`.

use crate::template::Template;
use crate::workload::MAX_LABEL_LEN;

/// Returns the name of a template's revision: `<gd>-<hash>`, where the hash depends only on the template's
/// canonical form.
///
/// `collision_count` yields other names for a template whose name is taken; 0 has no effect. A name has at
/// most 63 bytes, because pods carry it in a label. If the GameDeployment's name is too long for that, it is
/// shortened and its own hash added, as in `<head>-<hash of the name>-<hash>`: two long names with the same
/// beginning do not share a revision.
pub fn name_of(game_deployment: &str, template: &Template, collision_count: i32) -> String {
    let mut meaning = template.canonical_text().to_owned();
    if collision_count != 0 {
        meaning.push_str(&collision_count.to_string());
    }
    let hash = hash(&meaning);
    let whole = format!("{game_deployment}-{hash}");
    if whole.len() <= MAX_LABEL_LEN {
        return whole;
    }
    let tail = format!("-{}-{hash}", self::hash(game_deployment));
    let head = head(game_deployment, MAX_LABEL_LEN.saturating_sub(tail.len()));
    format!("{head}{tail}")
}

/// Truncates to at most this many bytes and removes trailing characters that must not precede a dash.
fn head(name: &str, bytes: usize) -> &str {
    let end = (0..=bytes).rev().find(|end| name.is_char_boundary(*end));
    let head = end.and_then(|end| name.get(..end)).unwrap_or_default();
    head.trim_end_matches(['-', '.'])
}

/// Hashes the text with 32-bit FNV-1a and encodes the decimal number with [`safe_encode`].
fn hash(text: &str) -> String {
    let hash = text.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    safe_encode(&hash.to_string())
}

/// Letters and digits without vowels and what looks like them, so that no word arises by chance.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Encodes like `SafeEncodeString` of Kubernetes.
fn safe_encode(text: &str) -> String {
    text.bytes()
        .filter_map(|byte| ALPHABET.get(usize::from(byte) % ALPHABET.len()))
        .map(|letter| char::from(*letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn template(image: &str) -> Template {
        Template::read(&json!({"spec": {"containers": [{"name": "game", "image": image}]}}))
    }

    #[test]
    fn a_hash_is_written_as_kubernetes_writes_it() {
        assert_eq!(hash(""), "65bb57b6b5", "2166136261, the hash of nothing");
        assert_eq!(safe_encode("0123456789"), "456789bcdf");
        // FNV-1a of "a" is 0xe40c292c.
        assert_eq!(hash("a"), safe_encode(&0xe40c_292c_u32.to_string()));
    }

    #[test]
    fn a_name_depends_on_the_meaning_and_the_collision_count() {
        let plain = name_of("game", &template("game:v1"), 0);
        // Stored revisions have these names.
        assert_eq!(plain, "game-78756f549");
        assert_eq!(name_of("game", &template("game:v1"), 1), "game-57cdf96d44");
        let same = Template::read(&json!({
            "metadata": {"creationTimestamp": null},
            "spec": {"containers": [{"image": "game:v1", "resources": {}, "name": "game"}], "restartPolicy": "Always"},
        }));
        assert_eq!(plain, name_of("game", &same, 0));
        assert_ne!(plain, name_of("game", &template("game:v2"), 0));
        let names: BTreeSet<_> = (0..50).map(|count| name_of("game", &same, count)).collect();
        assert_eq!(names.len(), 50);
    }

    #[test]
    fn long_names_fit_a_label_and_stay_apart() {
        let template = template("game:v1");
        let hash = hash(template.canonical_text());
        let fits = "a".repeat(63 - 1 - hash.len());
        assert_eq!(name_of(&fits, &template, 0), format!("{fits}-{hash}"));
        let mut names = BTreeSet::new();
        for name in [
            format!("{fits}b"),
            format!("{fits}c"),
            format!("{fits}.b"),
            format!("{}{}", "a".repeat(35), "-.".repeat(60)),
            "a".repeat(253),
            "é".repeat(100),
            "-".repeat(100),
        ] {
            let whole = name_of(&name, &template, 0);
            assert!(whole.len() <= 63 && whole.ends_with(&hash), "{whole}");
            assert!(!whole.contains(".-") && !whole.contains("--"), "{whole}");
            assert!(names.insert(whole));
        }
    }
}
