//! Objects that `lint` does not check, with a remedy for those of related tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared_api::names::GROUP;

use crate::manifest::Document;

/// Kind of the objects that are not checked.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    group: String,
    kind: String,
}

/// Number of the objects that are not checked, by kind.
#[derive(Debug, Default)]
pub(super) struct NotChecked(BTreeMap<Kind, usize>);

impl NotChecked {
    pub(super) fn add(&mut self, document: &Document) {
        let kind = Kind {
            group: document.group().to_owned(),
            kind: document.kind().to_owned(),
        };
        *self.0.entry(kind).or_default() += 1;
    }

    /// Returns whether an object has a kind that hookgate would replace, or one of its group that it does not manage.
    pub(super) fn is_suspicious(&self) -> bool {
        self.0.keys().any(|of| remedy(of).is_some())
    }

    /// Returns a line that counts the objects, and one for each kind with a remedy.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let name = |of: &Kind| {
            if of.kind.is_empty() {
                "(no kind)".to_owned()
            } else {
                of.kind.clone()
            }
        };
        let counts = self.0.iter().map(|(of, count)| format!("{count} {}", name(of)));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let remedies = self
            .0
            .keys()
            .filter_map(|of| Some(format!("{}: {}", name(of), remedy(of)?)));
        std::iter::once(format!("not checked: {counts}"))
            .chain(remedies)
            .collect()
    }

    /// Returns the counts for machines.
    pub(super) fn json(&self) -> Value {
        let count = |(Kind { group, kind }, count): (&Kind, &usize)| json!({ "group": group, "kind": kind, "count": count });
        self.0.iter().map(count).collect()
    }
}

/// Returns the remedy for a kind of hookgate's API group, or of a related tool, that `lint` does not check.
fn remedy(Kind { group, kind }: &Kind) -> Option<&'static str> {
    match (group.as_str(), kind.as_str()) {
        ("argoproj.io", "AnalysisTemplate" | "ClusterAnalysisTemplate") => Some(
            "belongs to Argo Rollouts; rewrite it as a HookTemplate, whose metrics have nearly the same fields",
        ),
        ("argoproj.io", "AnalysisRun") => Some("belongs to Argo Rollouts; rewrite it as a HookRun"),
        ("argoproj.io", "Rollout") => Some("belongs to Argo Rollouts; rewrite it as a GameDeployment"),
        ("apps.kruise.io", "CloneSet") => Some("belongs to OpenKruise; rewrite it as a GameDeployment"),
        ("argoproj.io", "Experiment") => Some("belongs to Argo Rollouts; hookgate has no equivalent"),
        (GROUP, "") => Some("set kind; the API group belongs to hookgate"),
        (GROUP, _) => Some("hookgate does not manage this kind; keep the operator that does"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_counted_and_those_of_relatives_have_a_remedy() {
        let mut not_checked = NotChecked::default();
        assert_eq!(not_checked.lines(), [""; 0]);
        for (group, kind, is_suspicious) in [
            ("", "Service", false),
            ("", "Service", false),
            ("argoproj.io", "Application", false),
            ("", "", false),
            (GROUP, "", true),
            ("argoproj.io", "AnalysisTemplate", true),
            (GROUP, "GameStatefulSet", true),
        ] {
            let alone = Kind {
                group: group.to_owned(),
                kind: kind.to_owned(),
            };
            assert_eq!(
                NotChecked([(alone, 1)].into()).is_suspicious(),
                is_suspicious,
                "{kind}"
            );
            let kind = Kind {
                group: group.to_owned(),
                kind: kind.to_owned(),
            };
            *not_checked.0.entry(kind).or_default() += 1;
        }
        assert_eq!(
            not_checked.lines(),
            [
                "not checked: 1 (no kind), 2 Service, 1 AnalysisTemplate, 1 Application, 1 (no kind), \
                 1 GameStatefulSet",
                "AnalysisTemplate: belongs to Argo Rollouts; rewrite it as a HookTemplate, whose metrics have nearly the same fields",
                "(no kind): set kind; the API group belongs to hookgate",
                "GameStatefulSet: hookgate does not manage this kind; keep the operator that does",
            ]
        );
        assert_eq!(not_checked.json()[1]["count"], 2);
    }
}
