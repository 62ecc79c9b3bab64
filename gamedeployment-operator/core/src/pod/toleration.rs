//! Tolerations: how long a pod may stay on a node with a taint of the effect `NoExecute`.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as api;

use crate::cluster::{REMOVAL_TAINTS, Taint};

/// Keys of the taints of unhealthy nodes, which API servers let pods tolerate for [`DEFAULT_SECONDS`].
const DEFAULT_KEYS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
/// Key of the taint of cordoned nodes, whose effect is `NoSchedule`.
const CORDON_KEY: &str = "node.kubernetes.io/unschedulable";
/// `tolerationSeconds` of the tolerations that API servers add.
const DEFAULT_SECONDS: i64 = 300;

/// Tolerations of a pod for taints with the effect `NoExecute`; `None`: exactly those that API servers add. Most pods
/// have these, so they take no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tolerations(Option<Box<[Toleration]>>);

/// How long a pod tolerates a taint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tolerance {
    /// Not at all.
    None,
    /// Until this time.
    Until(Timestamp),
    /// For a limited time that is not known: the taint has no time, or the operator of the toleration is not known.
    Unknown,
    /// Without limit.
    Unlimited,
}

/// Toleration for taints with the effect `NoExecute`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Toleration {
    /// Key of the taints; empty for all keys.
    key: Box<str>,
    values: Values,
    /// Seconds for which the pod tolerates the taints; `None` without limit.
    seconds: Option<i64>,
}

/// Values of the taints that a toleration matches.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Values {
    All,
    One(Box<str>),
    /// Those that the toleration selects with an operator that this version does not know.
    Unknown,
}

impl Tolerations {
    /// Tolerations that API servers add to pods without any.
    pub(super) const DEFAULT: Self = Self(None);

    pub(super) fn read(spec: Option<&api::PodSpec>) -> Self {
        let all = spec.and_then(|spec| spec.tolerations.as_ref());
        let read = all.into_iter().flatten().filter_map(Toleration::read);
        let read: Box<[Toleration]> = read.collect();
        let has = |key: &str| read.iter().any(|toleration| toleration.is_default(key));
        if read.len() == DEFAULT_KEYS.len() && DEFAULT_KEYS.into_iter().all(has) {
            Self::DEFAULT
        } else {
            Self(Some(read))
        }
    }

    /// Returns how long a pod tolerates a taint. The first toleration that matches the taint decides, as in the
    /// controllers that delete pods because of taints. A pod that was started after the taint tolerates it from then
    /// on: the scheduler may have placed it there.
    pub fn of(&self, taint: &Taint, started: Option<Timestamp>) -> Tolerance {
        let since = taint
            .added
            .map(|added| started.map_or(added, |started| started.max(added)));
        match &self.0 {
            None if DEFAULT_KEYS.contains(&taint.key.as_str()) => limited(DEFAULT_SECONDS, since),
            None => Tolerance::None,
            Some(listed) => {
                let mut listed = listed.iter();
                let first = listed.find(|toleration| toleration.matches(taint));
                first.map_or(Tolerance::None, |toleration| toleration.tolerance(since))
            }
        }
    }
}

impl Toleration {
    /// Reads a toleration; `None` if it is for taints with another effect.
    fn read(toleration: &api::Toleration) -> Option<Self> {
        fn text(field: Option<&String>) -> &str {
            field.map_or("", String::as_str)
        }
        if !matches!(text(toleration.effect.as_ref()), "" | "NoExecute") {
            return None;
        }
        Some(Self {
            key: text(toleration.key.as_ref()).into(),
            values: match text(toleration.operator.as_ref()) {
                "" | "Equal" => Values::One(text(toleration.value.as_ref()).into()),
                "Exists" => Values::All,
                _ => Values::Unknown,
            },
            seconds: toleration.toleration_seconds,
        })
    }

    fn is_default(&self, key: &str) -> bool {
        *self.key == *key && self.values == Values::All && self.seconds == Some(DEFAULT_SECONDS)
    }

    fn matches(&self, taint: &Taint) -> bool {
        let has_key = self.key.is_empty() || *self.key == *taint.key;
        has_key
            && match &self.values {
                Values::All | Values::Unknown => true,
                Values::One(value) => **value == *taint.value,
            }
    }

    /// Returns how long the pod tolerates a taint that matches, from this time on.
    fn tolerance(&self, since: Option<Timestamp>) -> Tolerance {
        match (&self.values, self.seconds) {
            (Values::Unknown, _) => Tolerance::Unknown,
            (Values::All | Values::One(_), None) => Tolerance::Unlimited,
            (Values::All | Values::One(_), Some(seconds)) => limited(seconds, since),
        }
    }
}

/// Returns how long a pod tolerates a taint that it tolerates for this many seconds, from this time on.
fn limited(seconds: i64, since: Option<Timestamp>) -> Tolerance {
    if seconds <= 0 {
        return Tolerance::None;
    }
    let Some(since) = since else {
        return Tolerance::Unknown;
    };
    let end = since.checked_add(SignedDuration::from_secs(seconds));
    // A time beyond all calendars never comes.
    end.map_or(Tolerance::Unlimited, Tolerance::Until)
}

/// Returns whether the scheduler can place pods with these tolerations on a node that is cordoned, or that has one of
/// the [`REMOVAL_TAINTS`].
pub(super) fn may_return(spec: Option<&api::PodSpec>) -> bool {
    let all = spec.and_then(|spec| spec.tolerations.as_ref());
    all.into_iter().flatten().any(|toleration| {
        let effect = toleration.effect.as_deref().unwrap_or_default();
        let key = toleration.key.as_deref().unwrap_or_default();
        let exists = toleration.operator.as_deref() == Some("Exists");
        let has_key = key == CORDON_KEY || REMOVAL_TAINTS.contains(&key) || key.is_empty() && exists;
        has_key && matches!(effect, "" | "NoSchedule")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn tolerations(list: &Value) -> Tolerations {
        let spec = json!({ "containers": [], "tolerations": list });
        Tolerations::read(Some(&serde_json::from_value(spec).unwrap()))
    }

    /// Returns a toleration like those that API servers add, with this number of seconds.
    fn default(key: &str, seconds: i64) -> Value {
        json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds })
    }

    fn added() -> Timestamp {
        Timestamp::from_second(1000).unwrap()
    }

    fn until(second: i64) -> Tolerance {
        Tolerance::Until(Timestamp::from_second(second).unwrap())
    }

    /// Returns how long pods with these tolerations tolerate a taint that was added at second 1000.
    fn of(list: &Value, key: &str, value: &str) -> Tolerance {
        tolerations(list).of(
            &Taint {
                key: key.to_owned(),
                value: value.to_owned(),
                added: Some(added()),
            },
            None,
        )
    }

    #[test]
    fn a_toleration_matches_by_key_value_and_effect() {
        let (no, yes) = (Tolerance::None, Tolerance::Unlimited);
        for (toleration, wanted) in [
            (json!({ "key": "a", "operator": "Exists" }), yes),
            (json!({ "operator": "Exists" }), yes),
            (json!({ "operator": "Exists", "effect": "NoExecute" }), yes),
            (json!({ "operator": "Exists", "effect": "NoSchedule" }), no),
            (json!({ "key": "b", "operator": "Exists" }), no),
            (json!({ "key": "a", "value": "v" }), yes),
            (json!({ "key": "a", "operator": "Equal", "value": "v" }), yes),
            (json!({ "key": "a", "operator": "Equal", "value": "w" }), no),
            (json!({ "key": "a" }), no),
        ] {
            assert_eq!(of(&json!([toleration]), "a", "v"), wanted, "{toleration}");
        }
        assert_eq!(of(&json!([]), "a", "v"), no);
        assert_eq!(of(&json!([{ "key": "a" }]), "a", ""), yes);
    }

    #[test]
    fn the_seconds_of_the_first_match_count() {
        let all = |seconds: Value| json!({ "operator": "Exists", "tolerationSeconds": seconds });
        for (list, wanted) in [
            (json!([all(json!(60))]), until(1060)),
            (json!([all(json!(0))]), Tolerance::None),
            (json!([all(json!(-5))]), Tolerance::None),
            (json!([all(json!(i64::MAX))]), Tolerance::Unlimited),
            (json!([all(json!(60)), all(json!(null))]), until(1060)),
            (json!([all(json!(null)), all(json!(60))]), Tolerance::Unlimited),
            (
                json!([{ "key": "b", "operator": "Exists" }, all(json!(60))]),
                until(1060),
            ),
            (
                json!([{ "key": "a", "operator": "Gt", "value": "7" }]),
                Tolerance::Unknown,
            ),
        ] {
            assert_eq!(of(&list, "a", "v"), wanted, "{list}");
        }
    }

    #[test]
    fn a_limited_toleration_of_a_taint_without_a_time_ends_at_an_unknown_time() {
        let taint = Taint {
            key: "a".to_owned(),
            value: String::new(),
            added: None,
        };
        let of = |seconds: Value| {
            tolerations(&json!([{ "key": "a", "operator": "Exists", "tolerationSeconds": seconds }]))
                .of(&taint, None)
        };
        assert_eq!(of(json!(60)), Tolerance::Unknown);
        assert_eq!(of(json!(0)), Tolerance::None);
        assert_eq!(of(json!(null)), Tolerance::Unlimited);
    }

    #[test]
    fn the_tolerations_that_api_servers_add_take_no_memory() {
        let [not_ready, unreachable] = DEFAULT_KEYS;
        let both = json!([default(not_ready, 300), default(unreachable, 300)]);
        assert_eq!(tolerations(&both), Tolerations::DEFAULT);
        for key in DEFAULT_KEYS {
            assert_eq!(of(&both, key, ""), until(1300));
        }
        assert_eq!(of(&both, "a", ""), Tolerance::None);
        // Tolerations for other effects do not count.
        let beside = json!([
            default(not_ready, 300),
            { "operator": "Exists", "effect": "NoSchedule" },
            default(unreachable, 300)
        ]);
        assert_eq!(tolerations(&beside), Tolerations::DEFAULT);
        for (list, key, wanted) in [
            (json!([default(not_ready, 300)]), unreachable, Tolerance::None),
            (
                json!([default(not_ready, 300), default(not_ready, 300)]),
                unreachable,
                Tolerance::None,
            ),
            (
                json!([default(not_ready, 300), default(unreachable, 30)]),
                unreachable,
                until(1030),
            ),
            (
                json!([default(not_ready, 300), default(unreachable, 300), { "operator": "Exists" }]),
                "a",
                Tolerance::Unlimited,
            ),
        ] {
            assert_eq!(of(&list, key, ""), wanted, "{list} {key}");
        }
    }

    #[test]
    fn a_pod_that_was_started_after_the_taint_tolerates_it_from_then_on() {
        let tolerations = tolerations(&json!([default("maintenance", 60)]));
        let taint = Taint {
            key: "maintenance".to_owned(),
            value: String::new(),
            added: Some(added()),
        };
        let created = |second| Timestamp::from_second(second).ok();
        assert_eq!(tolerations.of(&taint, created(900)), until(1060));
        assert_eq!(tolerations.of(&taint, created(5000)), until(5060));
    }

    #[test]
    fn some_pods_can_be_scheduled_to_nodes_that_are_about_to_be_removed() {
        let cordon = "node.kubernetes.io/unschedulable";
        for (toleration, expected) in [
            (json!({ "operator": "Exists" }), true),
            (json!({ "operator": "Exists", "effect": "NoSchedule" }), true),
            (json!({ "operator": "Exists", "effect": "NoExecute" }), false),
            (json!({ "key": cordon, "operator": "Exists" }), true),
            (json!({ "key": cordon, "effect": "NoSchedule" }), true),
            (
                json!({ "key": "karpenter.sh/disrupted", "operator": "Exists" }),
                true,
            ),
            (
                json!({ "key": cordon, "operator": "Exists", "effect": "NoExecute" }),
                false,
            ),
            (json!({ "key": "other", "operator": "Exists" }), false),
            (json!({ "value": "" }), false),
        ] {
            let spec = json!({ "containers": [], "tolerations": [toleration.clone()] });
            let spec = serde_json::from_value(spec).unwrap();
            assert_eq!(may_return(Some(&spec)), expected, "{toleration}");
        }
        assert!(!may_return(None));
    }
}
