//! Slips of authors: each message names the field, the value and the remedy.

use tempfile::TempDir;

use crate::{Manifest, Said, hook};

const TEMPLATE: &str = "apiVersion: tkex.tencent.com/v1alpha1
kind: HookTemplate
metadata: {name: players}
spec:
  args: [{name: PodIP}]
  metrics:
  - name: players
    interval: 5s
    count: 1
    successCondition: result == 0
    provider:
      web:
        url: http://{{ args.PodIP }}/players
        jsonPath: '{$.players}'
";

const WORKLOAD: &str = "apiVersion: tkex.tencent.com/v1alpha1
kind: GameDeployment
metadata: {name: arena}
spec:
  replicas: 2
  selector: {matchLabels: {app: arena}}
  preDeleteUpdateStrategy: {hook: {templateName: players}}
  updateStrategy: {type: InplaceUpdate, canary: {steps: [{pause: {duration: 600}}]}}
  template:
    metadata: {labels: {app: arena}}
    spec: {containers: [{name: game, image: 'game:v1'}]}
";

/// Lints a manifest in which one text is replaced.
fn lint(manifest: &str, text: &str, slip: &str, flags: &[&str]) -> Said {
    assert!(manifest.contains(text), "{text}");
    let manifest = Manifest::new(&manifest.replacen(text, slip, 1));
    let mut said = hook(&[&["lint", "-f", manifest.path()], flags].concat());
    said.out = manifest.anonymous(&said.out);
    said.err = manifest.anonymous(&said.err);
    said
}

#[test]
fn a_slip_in_a_template_gets_its_remedy() {
    for (text, slip, remedy) in [
        (
            "count: 1",
            "count: \"three\"",
            "count: must be an integer, not \"three\"",
        ),
        (
            "count: 1",
            "count: \"3\"",
            "count: must be an integer, not \"3\"; remove the quotes",
        ),
        (
            "interval: 5s",
            "interval: 5",
            "interval: must be a duration, not 5; write 5s",
        ),
        (
            "result == 0",
            "result = 0",
            "unexpected `=`; did you mean `==`? (1:8)",
        ),
        (
            "    provider:",
            "    url: http://x\n    provider:",
            "metrics[0].url: unknown field; move it to provider.web",
        ),
        (
            "args: [{name: PodIP}]",
            "args: [{name: PodIp}]",
            "args[0].name: \"PodIp\" is not one of the arguments that the operator sets for each pod; did you mean PodIP?",
        ),
        (
            "{{ args.PodIP",
            "{{ args.PodIp",
            "args.PodIp not supplied; did you mean args.PodIP?",
        ),
        (
            "args: [{name: PodIP}]",
            "args: []",
            "args.PodIP not supplied; declare PodIP under args without a value, and it will be set for each pod",
        ),
        (
            "{{ args.PodIP",
            "{{ args.room",
            "args.room not supplied; declare room under args, with a value unless the workload sets one",
        ),
        (
            "count: 1",
            "consecutiveSuccessLimit: 1",
            "unknown field; did you mean consecutiveSuccessfulLimit?",
        ),
        (
            "jsonPath",
            "insecure: true\n        jsonPath",
            "unknown field; did you mean insecureSkipVerify?",
        ),
        (
            "v1alpha1\nkind: HookTemplate",
            "v1\nkind: HookTemplat",
            "apiVersion: must be tkex.tencent.com/v1alpha1, not \"tkex.tencent.com/v1\"",
        ),
        (
            "v1alpha1\nkind: HookTemplate",
            "v1\nkind: HookTemplat",
            "kind: unknown kind \"HookTemplat\"; did you mean",
        ),
    ] {
        let said = lint(TEMPLATE, text, slip, &[]);
        assert_eq!((said.code, said.err.as_str()), (1, ""), "{slip}: {said:?}");
        assert!(said.out.contains(remedy), "{slip}: {said:?}");
    }
}

#[test]
fn a_slip_in_a_workload_gets_its_remedy() {
    for (text, slip, remedy) in [
        ("InplaceUpdate", "InPlaceUpdate", "did you mean InplaceUpdate?"),
        (
            "duration: 600",
            "duration: 10m",
            "pause.duration: must be a number of seconds, not \"10m\"; write 600",
        ),
        (
            "templateName: players",
            "template: players",
            "hook.template: unknown field: the API server would drop it; did you mean templateName?",
        ),
        (
            "{pause: {duration: 600}}",
            "{setWeight: 20}",
            "steps[0].setWeight: unknown field: the API server would drop it; did you mean partition?",
        ),
        (
            "  updateStrategy: ",
            "  strategy: ",
            "spec.strategy: unknown field: the API server would drop it; did you mean updateStrategy?",
        ),
    ] {
        let said = lint(WORKLOAD, text, slip, &[]);
        assert_eq!((said.code, said.err.as_str()), (1, ""), "{slip}: {said:?}");
        assert!(said.out.contains(remedy), "{slip}: {said:?}");
    }
}

#[test]
fn a_misspelt_argument_of_pods_is_not_to_be_set_by_hand() {
    let both = format!("{WORKLOAD}---\n{}", TEMPLATE.replace("PodIP", "PodIp"));
    let said = lint(&both, "PodIp}]", "PodIp}]", &[]);
    assert_eq!(said.code, 1, "{said:?}");
    let remedy = "HookTemplate players needs a value for argument PodIp; did you mean PodIP?";
    assert!(said.out.contains(remedy), "{said:?}");
    let warning = "warning: spec.args[0].name: \"PodIp\" is not one of the arguments that the operator sets for each pod; did you mean PodIP?";
    assert!(said.out.contains(warning), "{said:?}");
    let run = Manifest::new(TEMPLATE);
    let said = hook(&["run", "-f", run.path(), "--arg", "podip=127.0.0.1"]);
    assert!(
        said.err.contains("(pass --arg PodIP=VALUE; you passed podip)"),
        "{said:?}"
    );
}

/// Without `--strict`, a warning is no problem.
#[test]
fn what_may_never_succeed_is_a_warning() {
    for (text, slip, warning) in [
        (
            "result == 0\n",
            "asInt(result) == 0\n    comment: x\n",
            "comment: unknown field, which has no effect",
        ),
        (
            "{$.players}",
            "{$.rooms[*].players}",
            "always returns a list, and this condition fails on lists",
        ),
        (
            "web:",
            "datadog: {query: x}\n      web:",
            "this provider is not supported",
        ),
    ] {
        let said = lint(TEMPLATE, text, slip, &[]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{slip}: {said:?}");
        assert!(said.out.contains(warning), "{slip}: {said:?}");
        assert_eq!(lint(TEMPLATE, text, slip, &["--strict"]).code, 1, "{slip}");
    }
    let hook_line = "  preDeleteUpdateStrategy: {hook: {templateName: players}}\n";
    let said = lint(WORKLOAD, hook_line, "", &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out
            .contains("warning: spec: no PreDelete hook: pods are deleted without"),
        "{said:?}"
    );
    assert_eq!(lint(WORKLOAD, hook_line, "", &["--strict"]).code, 1);
    assert_eq!(lint(WORKLOAD, hook_line, hook_line, &["--strict"]).code, 0);
}

#[test]
fn differences_from_the_original_operators_are_reported_on_request() {
    let manifest = TEMPLATE
        .replace("result == 0", "result.state != \\\"busy\\\"")
        .replace("        jsonPath: '{$.players}'\n", "");
    let manifest = manifest
        .replace("successCondition: ", "successCondition: \"")
        .replace("busy\\\"", "busy\\\"\"");
    let quiet = lint(&manifest, "count", "count", &[]);
    assert!(!quiet.out.contains("original"), "{quiet:?}");
    let said = lint(&manifest, "count", "count", &["--from-original"]);
    assert_eq!(said.code, 0, "{said:?}");
    for words in [
        "metrics[0].count: a failed measurement ends the run as Failed, whereas the original operators",
        "metrics[0].successCondition: a response in which a key is missing or null is an Error, whereas the original",
    ] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    let zero = lint(
        WORKLOAD,
        "type: InplaceUpdate",
        "type: InplaceUpdate, maxUnavailable: 0, maxSurge: 0",
        &[],
    );
    assert!(zero.code == 1 && zero.out.contains("maxUnavailable"), "{zero:?}");
}

#[test]
fn a_file_that_cannot_be_read_does_not_hide_the_others() {
    let directory = TempDir::new().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("a.yaml", "a: [1\nb: 2\n");
    write("b.yaml", &TEMPLATE.replace("count: 1", "count: x"));
    write(
        "c.yaml",
        &TEMPLATE.replace("name: players}", "name: {{ .Release.Name }}}"),
    );
    write("d.yaml", &TEMPLATE.replace("metadata", "  metadata"));
    write("e.yaml", &TEMPLATE.replace("kind", "\tkind"));
    let path = directory.path().to_str().unwrap();
    let said = hook(&["lint", "-f", path, "no-such-file.yaml"]);
    assert_eq!(said.code, 64, "{said:?}");
    assert!(
        said.out.contains(
            "b.yaml:9:12: HookTemplate players: spec.metrics[0].count: must be an integer, not \"x\""
        ),
        "{said:?}"
    );
    for words in [
        "a.yaml:2:2: ",
        "; this is a Helm template; check the output of helm template instead\n",
        "; check whether the line is indented too far, or whether a value that contains \": \" needs quotes\n",
        "; indent with spaces, not tabs\n",
        "error: failed to read no-such-file.yaml: ",
    ] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let json = hook(&["lint", "-f", path, "-o", "json"]);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let counts = ["objects", "unreadable"].map(|part| report[part].as_array().map(Vec::len));
    assert_eq!((json.code, counts), (64, [Some(1), Some(4)]), "{report}");
}

#[test]
fn objects_of_relatives_are_named_and_fail_a_strict_check() {
    let others = "---\napiVersion: argoproj.io/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: a}\n---\n\
                  apiVersion: tkex.tencent.com/v1alpha1\nkind: GameStatefulSet\nmetadata: {name: a}\n";
    let manifest = format!("{TEMPLATE}{others}");
    let said = lint(&manifest, "count", "count", &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(
        said.err,
        "not checked: 1 AnalysisTemplate, 1 GameStatefulSet\n\
         AnalysisTemplate: belongs to Argo Rollouts; rewrite it as a HookTemplate, whose metrics have nearly the same fields\n\
         GameStatefulSet: hookgate does not manage this kind; keep the operator that does\n"
    );
    assert_eq!(lint(&manifest, "count", "count", &["--strict"]).code, 1);
    let service = format!("{TEMPLATE}---\napiVersion: v1\nkind: Service\nmetadata: {{name: a}}\n");
    let said = lint(&service, "count", "count", &["--strict"]);
    assert_eq!(
        (said.code, said.err.as_str()),
        (0, "not checked: 1 Service\n"),
        "{said:?}"
    );
}
