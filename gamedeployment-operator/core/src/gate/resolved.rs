//! Check that the hooks of a spec can run for any pod. Problems are reported before a pod waits for a hook.

use std::collections::BTreeSet;

use shared_api::HookTemplateSpec;
use shared_api::game_deployment::HookStep;
use shared_api::limits::json_bytes;
use shared_api::metric::Argument;
use shared_api::names::argument;
use shared_api::reason::WorkloadReason;
use shared_api::spelling::misspelt_pod_argument;

use super::HookBlocker;
use super::chosen_object::{check_kind, check_pod, needs_pod};
use crate::cluster::{Cluster, FoundTemplate};
use crate::hook_kind::HookKind;
use crate::plural::form;
use crate::unusable_template::{MAX_ARGUMENT_BYTES, UnusableTemplate};
use crate::user_text::bounded;
use crate::workload::{Carrier, Workload};

/// Field of a hook that sets its arguments.
pub(super) const HOOK_ARGS: &str = "hook.args";

/// Field of a notice that sets its arguments.
pub(super) const NOTICE_ARGS: &str = "notice.args";

/// A hook or a notice that cannot run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unresolved {
    /// Path of the field that names it, such as `spec.preDeleteUpdateStrategy.hook`.
    pub path: String,
    /// Name of its template.
    pub template: String,
    /// Cause and remedy.
    pub blocker: HookBlocker,
    /// Existing template whose name is similar to that of the missing one.
    pub similar_template: Option<String>,
}

/// Returns the hooks of a spec that cannot run, including the notice; `None` if no hook is configured.
pub fn unresolved(workload: &Workload, cluster: &dyn Cluster) -> Option<Vec<Unresolved>> {
    let mut any = false;
    let mut unresolved = Vec::new();
    for (path, step, subject) in hooks(workload) {
        any = true;
        let template = cluster.template(&step.template_name);
        if let Some(blocker) = check(step, template, cluster, subject) {
            let found = Unresolved {
                path,
                template: step.template_name.clone(),
                blocker,
                similar_template: similar(template),
            };
            unresolved.push(found);
        }
    }
    any.then_some(unresolved)
}

/// Returns all hooks of a workload that use a template, and its notice, with their paths in the object.
fn hooks(workload: &Workload) -> impl Iterator<Item = (String, &HookStep, Subject)> {
    let containers = workload.template.containers().len();
    let of_pods = HookKind::ALL.into_iter().filter_map(move |kind| {
        let step = workload.hook(kind).step.as_ref()?;
        let subject = Subject::Pod { containers };
        Some((format!("spec.{}.hook", kind.field()), step, subject))
    });
    let notice = workload.notice.iter().map(move |step| {
        let path = format!("spec.{}.notice", HookKind::PreDelete.field());
        (path, step, Subject::Notice { containers })
    });
    let of_steps = workload.steps.iter().enumerate().filter_map(|(index, step)| {
        let path = format!("spec.updateStrategy.canary.steps[{index}].hook");
        Some((path, step.hook.as_ref()?, Subject::CanaryStep))
    });
    let of_rollouts = workload
        .lifecycle_hooks
        .iter()
        .enumerate()
        .filter_map(|(index, hook)| {
            let Carrier::Template(step) = &hook.carrier else {
                return None;
            };
            let path = format!("spec.lifecycleHooks[{index}].hook");
            Some((path, step, Subject::Rollout))
        });
    of_pods.chain(notice).chain(of_steps).chain(of_rollouts)
}

/// Returns the name that a missing template's name resembles.
fn similar(template: FoundTemplate<'_>) -> Option<String> {
    match template {
        FoundTemplate::Misspelt(near) => Some(near.to_owned()),
        FoundTemplate::Found(_) | FoundTemplate::Missing | FoundTemplate::Unusable(_) => None,
    }
}

/// Subject of a hook's run, which decides the arguments that the operator adds.
#[derive(Debug, Clone, Copy)]
enum Subject {
    /// A pod with this number of containers.
    Pod { containers: usize },
    /// Notice to a pod with this number of containers.
    Notice { containers: usize },
    /// A step of a canary rollout.
    CanaryStep,
    /// A rollout.
    Rollout,
}

impl Subject {
    /// Returns the field that sets the arguments.
    fn args(self) -> &'static str {
        match self {
            Self::Pod { .. } | Self::CanaryStep | Self::Rollout => HOOK_ARGS,
            Self::Notice { .. } => NOTICE_ARGS,
        }
    }
}

fn check(
    step: &HookStep,
    template: FoundTemplate<'_>,
    cluster: &dyn Cluster,
    subject: Subject,
) -> Option<HookBlocker> {
    let template = match find(step, subject.args(), template) {
        Ok(template) => template,
        Err(blocker) => return Some(blocker),
    };
    let problem = invalid_template(step, cluster);
    let problem = problem.or_else(|| match subject {
        Subject::Pod { .. } | Subject::Notice { .. } => None,
        Subject::CanaryStep | Subject::Rollout => check_pod(step, template).err(),
    });
    problem.or_else(|| open_arguments(step, template, subject))
}

/// Returns a blocker if hook-operator reports that the template of a hook is invalid.
pub(super) fn invalid_template(step: &HookStep, cluster: &dyn Cluster) -> Option<HookBlocker> {
    let name = &step.template_name;
    let why = cluster.template_problem(name)?;
    Some(HookBlocker::new(
        WorkloadReason::HookTemplateInvalid,
        format!("HookTemplate {name} is invalid: {why}"),
    ))
}

/// Returns the template of a hook. `args`: the field that sets its arguments.
pub(super) fn find<'a>(
    step: &HookStep,
    args: &'static str,
    template: FoundTemplate<'a>,
) -> Result<&'a HookTemplateSpec, HookBlocker> {
    let name = &step.template_name;
    let (reason, message) = match template {
        FoundTemplate::Found(template) => {
            check_kind(step, args, template)?;
            check_arguments(step, args)?;
            return Ok(template);
        }
        FoundTemplate::Missing => (
            WorkloadReason::HookTemplateMissing,
            format!("HookTemplate {name} does not exist; create it"),
        ),
        FoundTemplate::Misspelt(near) => (
            WorkloadReason::HookTemplateMissing,
            format!("HookTemplate {name} does not exist; did you mean {near}?"),
        ),
        FoundTemplate::Unusable(UnusableTemplate::Unreadable(why)) => (
            WorkloadReason::HookTemplateMissing,
            format!("HookTemplate {name} cannot be parsed: {why}"),
        ),
        FoundTemplate::Unusable(UnusableTemplate::TooLarge(too_large)) => (
            WorkloadReason::HookTemplateInvalid,
            format!("HookTemplate {name} {too_large}"),
        ),
    };
    Err(HookBlocker::new(reason, message))
}

/// Fails if the arguments that a hook sets are too large: they have the same costs as those of its template.
fn check_arguments(step: &HookStep, args: &'static str) -> Result<(), HookBlocker> {
    let bytes = step.args.as_ref().map_or(0, json_bytes);
    if bytes <= MAX_ARGUMENT_BYTES {
        return Ok(());
    }
    Err(HookBlocker::new(
        WorkloadReason::HookArgumentsUnresolved,
        format!(
            "{args} for HookTemplate {} are {bytes} bytes in total; the limit is {MAX_ARGUMENT_BYTES}",
            step.template_name
        ),
    ))
}

/// Returns a blocker if arguments get a value from neither the template nor the workload, nor from the operator.
fn open_arguments(step: &HookStep, template: &HookTemplateSpec, subject: Subject) -> Option<HookBlocker> {
    let own = |name: &str| {
        let mut own = step.args.iter().flatten();
        own.any(|own| own.name == name && own.value.is_some())
    };
    let is_open = |argument: &&Argument| {
        argument.value.is_none() && argument.value_from.is_none() && !own(&argument.name)
    };
    let is_added = |name: &str| match subject {
        Subject::Pod { containers } | Subject::Notice { containers } => is_added(name, containers),
        Subject::CanaryStep => false,
        Subject::Rollout => argument::OF_ROLLOUTS.contains(&name),
    };
    let mut open: Vec<&str> = template
        .args
        .iter()
        .flatten()
        .filter(is_open)
        .map(|argument| argument.name.as_str())
        .filter(|name| !is_added(name))
        .collect();
    let mut declared = template.args.iter().flatten();
    let is_undeclared = declared.all(|argument| argument.name != argument::POD_NAME);
    if is_undeclared && needs_pod(template) && !is_added(argument::POD_NAME) {
        open.push(argument::POD_NAME);
    }
    (!open.is_empty()).then(|| without_values(subject.args(), &step.template_name, &open))
}

/// Builds the blocker for arguments without a value. Each waiting pod has one, so the list of names is bounded.
/// `args`: the field that sets the arguments.
pub(super) fn without_values(args: &str, template: &str, names: &[&str]) -> HookBlocker {
    let meant: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| misspelt_pod_argument(name))
        .collect();
    let others = names.iter().filter(|name| misspelt_pod_argument(name).is_none());
    let others: Vec<&str> = others.copied().collect();
    let remedy = if meant.is_empty() {
        let them = form(names.len(), "it", "them");
        format!("set {them} in the workload's {args} or in the template")
    } else {
        let others = if others.is_empty() {
            String::new()
        } else {
            let others = bounded(&others.join(", "));
            format!(" Set {others} in the workload's {args} or in the template")
        };
        format!("did you mean {}?{others}", Vec::from_iter(meant).join(", "))
    };
    let wanted = form(names.len(), "a value for argument", "values for arguments");
    let message = format!(
        "HookTemplate {template} needs {wanted} {}; {remedy}",
        bounded(&names.join(", "))
    );
    HookBlocker::new(WorkloadReason::HookArgumentsUnresolved, message)
}

/// Whether every run for a pod has an argument of this name.
fn is_added(name: &str, containers: usize) -> bool {
    let numbered = [argument::POD_CONTAINER, argument::MODIFIED_CONTAINER];
    let is_numbered = |kind: &str| {
        let number = name.strip_prefix(kind).and_then(|rest| rest.strip_prefix('['));
        let number = number.and_then(|rest| rest.strip_suffix(']')?.parse::<usize>().ok());
        number.is_some_and(|number| number < containers)
    };
    argument::OF_PODS.contains(&name) || numbered.into_iter().any(is_numbered)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::Node;
    use crate::pod::Pod;
    use crate::samples::workload;
    use crate::unusable_template::{MAX_TEMPLATE_BYTES, TooLarge};

    /// A cluster with one template `ask`.
    struct One(HookTemplateSpec, Option<&'static str>);

    impl Cluster for One {
        fn template(&self, name: &str) -> FoundTemplate<'_> {
            match name {
                "ask" => FoundTemplate::Found(&self.0),
                "aks" => FoundTemplate::Misspelt("ask"),
                _ => FoundTemplate::Missing,
            }
        }

        fn template_problem(&self, _: &str) -> Option<&str> {
            self.1
        }

        fn node(&self, _: &str) -> Node {
            Node::Ready
        }

        fn node_cost(&self, _: &str) -> Option<f64> {
            None
        }

        fn is_new_question(&self, _: &Pod) -> bool {
            true
        }

        fn has_run(&self, _: &str, _: &str) -> bool {
            false
        }
    }

    fn found(hook: Value, args: Value, problem: Option<&'static str>) -> Option<Vec<String>> {
        let is_misspelt = hook["templateName"] == "aks";
        let template = serde_json::from_value(json!({"metrics": [], "args": args})).unwrap();
        let workload = workload(&[("/spec/preDeleteUpdateStrategy", json!({"hook": hook}))]);
        let unresolved = unresolved(&workload, &One(template, problem))?;
        let words = unresolved.into_iter().map(|found| {
            let Unresolved {
                path,
                template,
                blocker,
                similar_template,
            } = found;
            assert_eq!(path, "spec.preDeleteUpdateStrategy.hook");
            assert_eq!(json!(template), hook["templateName"]);
            assert_eq!(similar_template.as_deref(), is_misspelt.then_some("ask"));
            format!("{}: {}", blocker.reason, blocker.message)
        });
        Some(words.collect())
    }

    #[test]
    fn a_misspelt_argument_of_pods_is_not_to_be_set_by_hand() {
        let message = |names: &[&str]| without_values(HOOK_ARGS, "t", names).message;
        let (one, two) = (
            "HookTemplate t needs a value for argument",
            "HookTemplate t needs values for arguments",
        );
        let place = "in the workload's hook.args or in the template";
        assert_eq!(message(&["PodIp"]), format!("{one} PodIp; did you mean PodIP?"));
        assert_eq!(
            message(&["PodIp", "room"]),
            format!("{two} PodIp, room; did you mean PodIP? Set room {place}")
        );
        assert_eq!(message(&["room"]), format!("{one} room; set it {place}"));
        assert_eq!(
            message(&["map", "room"]),
            format!("{two} map, room; set them {place}")
        );
    }

    #[test]
    fn hooks_of_rollouts_get_arguments_that_other_hooks_lack() {
        let args = json!([{"name": "RolloutFrom"}, {"name": "RolloutTo"}, {"name": "RolloutType"}, {"name": "PodIP"}]);
        let template: HookTemplateSpec =
            serde_json::from_value(json!({"metrics": [], "args": args})).unwrap();
        let hook = json!({"templateName": "ask"});
        let workload = workload(&[
            ("/spec/preDeleteUpdateStrategy", json!({"hook": hook})),
            (
                "/spec/updateStrategy",
                json!({"canary": {"steps": [{"hook": hook}]}}),
            ),
            (
                "/spec/lifecycleHooks",
                json!([{"name": "a", "trigger": {"type": "Pre"}, "hook": hook}]),
            ),
        ]);
        let found = unresolved(&workload, &One(template, None)).unwrap();
        let open = found.iter().map(|found| {
            let (wanted, _) = found.blocker.message.split_once(';').unwrap();
            let (_, names) = wanted.split_once(" for argument").unwrap();
            format!("{} {}", found.path, names.trim_start_matches('s').trim())
        });
        assert_eq!(
            open.collect::<Vec<_>>(),
            [
                "spec.preDeleteUpdateStrategy.hook RolloutFrom, RolloutTo, RolloutType",
                "spec.updateStrategy.canary.steps[0].hook RolloutFrom, RolloutTo, RolloutType, PodIP",
                "spec.lifecycleHooks[0].hook PodIP",
            ]
        );
    }

    #[test]
    fn a_hook_that_cannot_be_asked_is_told_while_nothing_waits() {
        let ask = json!({"templateName": "ask"});
        assert_eq!(
            unresolved(&workload(&[]), &One(HookTemplateSpec::default(), None)),
            None
        );
        assert_eq!(found(ask.clone(), json!([]), None).unwrap(), [""; 0]);
        let said = |hook, args, problem| found(hook, args, problem).unwrap().join("\n");
        assert_eq!(
            said(json!({"templateName": "aks"}), json!([]), None),
            "HookTemplateMissing: HookTemplate aks does not exist; did you mean ask?"
        );
        assert_eq!(
            said(json!({"templateName": "other"}), json!([]), None),
            "HookTemplateMissing: HookTemplate other does not exist; create it"
        );
        assert_eq!(
            said(ask.clone(), json!([]), Some("metrics[0].interval: no")),
            "HookTemplateInvalid: HookTemplate ask is invalid: metrics[0].interval: no"
        );
        let args = json!([
            {"name": "PodIP"}, {"name": "PodContainer[0]"}, {"name": "PodContainer[1]"}, {"name": "PodContainer[a]"},
            {"name": "room"}, {"name": "set", "value": "1"}, {"name": "own"}
        ]);
        let hook = json!({"templateName": "ask", "args": [{"name": "own", "value": "x"}]});
        assert!(said(hook, args, None).contains(
            "HookArgumentsUnresolved: HookTemplate ask needs values for arguments PodContainer[1], PodContainer[a], \
             room; set them"
        ));
    }

    #[test]
    fn a_notice_that_cannot_run_is_reported_while_nothing_waits() {
        let said = |notice: Value, args: Value, problem| {
            let template = serde_json::from_value(json!({"metrics": [], "args": args})).unwrap();
            let strategy = json!({"hook": {"templateName": "ask"}, "notice": notice});
            let workload = workload(&[("/spec/preDeleteUpdateStrategy", strategy)]);
            let found = unresolved(&workload, &One(template, problem)).unwrap();
            let of_notice = found.iter().find(|found| found.path.ends_with(".notice"));
            of_notice.map(|found| format!("{}: {}", found.path, found.blocker.message))
        };
        let path = "spec.preDeleteUpdateStrategy.notice";
        let ask = || json!({"templateName": "ask"});
        let added = json!([{"name": "PodIP"}, {"name": "PodContainer[0]"}]);
        assert_eq!(said(ask(), added, None), None);
        let table = [
            (
                said(json!({"templateName": "aks"}), json!([]), None),
                "HookTemplate aks does not exist; did you mean ask?",
            ),
            (
                said(ask(), json!([]), Some("no")),
                "HookTemplate ask is invalid: no",
            ),
            (
                said(ask(), json!([{"name": "room"}]), None),
                "HookTemplate ask needs a value for argument room; set it in the workload's notice.args or in the \
                 template",
            ),
        ];
        for (found, wanted) in table {
            assert_eq!(found, Some(format!("{path}: {wanted}")));
        }
    }

    #[test]
    fn a_template_that_no_hook_can_use_is_named_with_the_remedy() {
        let step = serde_json::from_value(json!({"templateName": "ask"})).unwrap();
        let said = |why: UnusableTemplate| {
            let blocker = find(&step, HOOK_ARGS, FoundTemplate::Unusable(&why)).unwrap_err();
            format!("{}: {}", blocker.reason, blocker.message)
        };
        let table = [
            (
                UnusableTemplate::Unreadable("spec: no".to_owned()),
                "HookTemplateMissing: HookTemplate ask cannot be parsed: spec: no",
            ),
            (
                TooLarge::Spec(1_300_000).into(),
                "HookTemplateInvalid: HookTemplate ask is too large for a GameDeployment hook: its spec is 1300000 \
                 bytes; the limit is 131072",
            ),
            (
                TooLarge::Arguments(20_000).into(),
                "HookTemplateInvalid: HookTemplate ask is too large for a GameDeployment hook: its args are 20000 \
                 bytes in total; the limit is 16384",
            ),
            (
                TooLarge::Namespace("games".to_owned()).into(),
                "HookTemplateInvalid: HookTemplate ask is not loaded, because the HookTemplates of namespace games \
                 exceed 16777216 bytes in total; delete some of them, then edit this HookTemplate to have it loaded",
            ),
        ];
        for (why, words) in table {
            assert_eq!(said(why), words);
        }
    }

    #[test]
    fn arguments_that_a_workload_sets_have_a_limit_too() {
        let found = |bytes: usize| {
            let args = |value: &str| json!([{"name": "room", "value": value}]);
            let filler = "x".repeat(bytes - args("").to_string().len());
            found(
                json!({"templateName": "ask", "args": args(&filler)}),
                json!([]),
                None,
            )
        };
        assert_eq!(found(MAX_ARGUMENT_BYTES), Some(vec![]));
        for bytes in [MAX_ARGUMENT_BYTES + 1, MAX_TEMPLATE_BYTES] {
            let words = format!(
                "HookArgumentsUnresolved: hook.args for HookTemplate ask are {bytes} bytes in total; the limit is \
                 16384"
            );
            assert_eq!(found(bytes), Some(vec![words]));
        }
    }

    #[test]
    fn the_hook_of_a_canary_step_has_no_pod() {
        let steps = json!({"canary": {"steps": [{"partition": 1}, {"hook": {"templateName": "ask"}}]}});
        let template = json!({"metrics": [], "args": [{"name": "PodIP"}]});
        let around = One(serde_json::from_value(template).unwrap(), None);
        let found = unresolved(&workload(&[("/spec/updateStrategy", steps)]), &around).unwrap();
        assert_eq!(found[0].path, "spec.updateStrategy.canary.steps[1].hook");
        assert_eq!(found[0].blocker.reason, WorkloadReason::HookArgumentsUnresolved);
    }

    /// Admission has checked that the author of the template may read objects of its kind, and not of any other.
    #[test]
    fn a_workload_chooses_an_object_only_where_its_template_leaves_it_open() {
        let said = |args: Value, target: Value, own: Value| {
            let object = json!({"function": "get", "fields": [], "target": target});
            let metrics = json!([{"name": "m", "provider": {"kubernetes": object}}]);
            let template = serde_json::from_value(json!({"metrics": metrics, "args": args})).unwrap();
            let hook = json!({"hook": {"templateName": "ask", "args": own}});
            let workload = workload(&[("/spec/preDeleteUpdateStrategy", hook)]);
            let unresolved = unresolved(&workload, &One(template, None)).unwrap();
            unresolved
                .first()
                .map(|found| found.blocker.message.clone())
                .unwrap_or_default()
        };
        let (none, kind) = (json!([]), json!([{"name": "Kind", "value": "ConfigMap"}]));
        let pod = json!([{"name": "PodName", "value": "other"}]);
        let refused =
            "would select the object that HookTemplate ask accesses, which the template does not allow";
        for (args, target, own, allowed) in [
            (none.clone(), json!(null), kind.clone(), false),
            (none.clone(), json!({"name": "a"}), kind.clone(), false),
            (
                json!([{"name": "Kind", "value": "Pod"}]),
                json!(null),
                kind.clone(),
                false,
            ),
            (json!([{"name": "Kind"}]), json!(null), kind.clone(), true),
            // These runs are refused: target and argument are mutually exclusive.
            (none.clone(), json!({"kind": "Pod"}), kind.clone(), true),
            (
                none.clone(),
                json!(null),
                json!([{"name": "room", "value": "1"}]),
                true,
            ),
            // The run's own pod counts.
            (none.clone(), json!(null), pod, true),
            (none.clone(), json!(null), none, true),
        ] {
            let said = said(args.clone(), target.clone(), own.clone());
            assert_eq!(said.is_empty(), allowed, "{args} {target} {own}: {said}");
            assert!(allowed || said.contains(refused), "{said}");
        }
        let web = json!({"metrics": [{"name": "m", "provider": {"web": {"url": "http://game/{{ args.Kind }}"}}}],
            "args": [{"name": "Kind", "value": "a"}]});
        let hook = json!({"hook": {"templateName": "ask", "args": kind}});
        let around = One(serde_json::from_value(web).unwrap(), None);
        let workload = workload(&[("/spec/preDeleteUpdateStrategy", hook)]);
        assert_eq!(unresolved(&workload, &around), Some(vec![]));
    }

    /// Only runs for pods get the name of a pod.
    #[test]
    fn a_hook_of_a_canary_step_has_no_pod_to_read() {
        let said = |target: Value, args: Value, own: Value| {
            let object = json!({"function": "get", "fields": [], "target": target});
            let metrics = json!([{"name": "m", "provider": {"kubernetes": object}}]);
            let template = serde_json::from_value(json!({"metrics": metrics, "args": args})).unwrap();
            let hook = json!({"templateName": "ask", "args": own});
            let steps = json!({"canary": {"steps": [{"hook": hook}]}});
            let workload = workload(&[("/spec/updateStrategy", steps)]);
            let around = One(template, None);
            let found = unresolved(&workload, &around).unwrap();
            let step = workload.steps[0].hook.as_ref().unwrap();
            let rendered = crate::gate::draft::render(step, around.template("ask"), &[]);
            assert!(
                found.is_empty()
                    || rendered.is_err()
                    || found[0].blocker.message.contains("needs a value for")
            );
            found
                .first()
                .map(|found| found.blocker.message.clone())
                .unwrap_or_default()
        };
        let open = "HookTemplate ask needs a value for argument PodName;";
        let none = || json!([]);
        let pod = || json!([{"name": "PodName", "value": "a"}]);
        let declared = || json!([{"name": "PodName"}]);
        let chosen = "argument PodName would select the object that HookTemplate ask accesses";
        for (target, args, own, wanted) in [
            (json!(null), none(), none(), open),
            (json!(null), declared(), none(), open),
            (json!(null), pod(), none(), ""),
            (json!({"name": "a"}), none(), none(), ""),
            (json!(null), none(), pod(), chosen),
            (json!(null), pod(), pod(), chosen),
            (json!(null), declared(), pod(), ""),
            (json!({"name": "a"}), none(), pod(), ""),
        ] {
            let said = said(target, args.clone(), own.clone());
            assert!(
                said.starts_with(wanted) && said.is_empty() == wanted.is_empty(),
                "{args} {own}: {said}"
            );
        }
    }
}
