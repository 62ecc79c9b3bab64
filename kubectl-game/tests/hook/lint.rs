//! `kubectl game hook lint`: reports all problems with their positions.

use crate::{Manifest, examples, hook, template};

#[test]
fn every_problem_of_a_broken_file_is_reported_in_the_order_of_its_lines() {
    let manifest = Manifest::new(include_str!("broken.yaml"));
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    let golden = include_str!("broken.txt");
    let text = manifest.anonymous(&said.out);
    assert!(text == golden, "--- expected\n{golden}\n--- said\n{text}");
}

#[test]
fn every_example_is_clean() {
    let files = examples();
    assert!(files.len() >= 11, "{files:?}");
    for file in files {
        let said = hook(&["lint", "-f", &file]);
        let is_expected = said.err.is_empty() || said.err.starts_with("not checked: 1 ");
        assert!(said.code == 0 && is_expected, "{said:?}");
        // Examples of HookActions have workloads without hooks.
        let is_clean = |line: &str| {
            line.ends_with(": ok") || said.out.contains(": HookAction ") && line.contains("no PreDelete hook")
        };
        assert!(said.out.lines().all(is_clean), "{said:?}");
    }
}

#[test]
fn other_objects_are_ignored_and_a_workload_is_read_as_by_its_operator() {
    let manifest = Manifest::new(
        "apiVersion: v1\nkind: Service\nspec: {portz: 1}\n---\napiVersion: tkex.tencent.com/v1alpha1\n\
         kind: GameDeployment\nmetadata: {name: g}\nspec:\n  elsewhere: old\n  selector: {}\n  template: {}\n  \
         updateStrategy:\n    type: InPlaceUpdate\n",
    );
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(
        manifest.anonymous(&said.out),
        "FILE:9:14: GameDeployment g: spec.elsewhere: unknown field: the API server would drop it\n\
         FILE:10:13: GameDeployment g: spec.selector: must not be empty, because an empty selector matches all pods in \
         the namespace\n\
         FILE:11:13: GameDeployment g: spec.template.spec.containers: must list at least one container\n\
         FILE:13:11: GameDeployment g: spec.updateStrategy.type: must be one of \"RollingUpdate\", \"InplaceUpdate\", \
         \"HotPatchUpdate\", \"OnDelete\", \"Recreate\", not \"InPlaceUpdate\"; did you mean InplaceUpdate?\n\
         FILE:9:3: GameDeployment g: warning: spec: no PreDelete hook: pods are deleted without running a hook, and \
         their players are disconnected; set preDeleteUpdateStrategy.hook\n"
    );
    assert_eq!(said.err, "not checked: 1 Service\n");
}

#[test]
fn what_the_api_server_refuses_is_refused() {
    let manifest = Manifest::new(
        "apiVersion: tkex.tencent.com/v1\nkind: GameDeployment\nmetadata: {name: Arena_1, namespace: A, labels: {build: feature/new}}\n\
         spec:\n  replicas: \"3\"\n  selector: {}\n  template: {}\n---\n\
         apiVersion: tkex.tencent.com/v1alpha1\nkind: HookTemplte\nmetadata: {name: t}\n---\n\
         kind: HookRun\nspec:\n  metrics:\n  - provider: {web: []}\n    interval: 5 s\n",
    );
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 1, "{said:?}");
    let text = manifest.anonymous(&said.out);
    let golden = "\
        FILE:1:13: GameDeployment Arena_1: apiVersion: must be tkex.tencent.com/v1alpha1, not \"tkex.tencent.com/v1\"\n\
        FILE:3:18: GameDeployment Arena_1: metadata.name: \"Arena_1\" is invalid: must be at most 253 characters long, contain only lowercase letters, digits, '-' and '.', and have a letter or digit at both ends and next to each '.'\n\
        FILE:3:38: GameDeployment Arena_1: metadata.namespace: \"A\" is invalid: must be at most 63 characters long, contain only lowercase letters, digits and '-', and start and end with a letter or digit\n\
        FILE:3:57: GameDeployment Arena_1: metadata.labels.build: \"feature/new\" is not a valid label value: must be at most 63 characters long, contain only letters, digits, '-', '_' and '.', and start and end with a letter or digit\n\
        FILE:5:13: GameDeployment Arena_1: spec.replicas: must be an integer, not \"3\"; remove the quotes\n\
        FILE:6:13: GameDeployment Arena_1: spec.selector: must not be empty, because an empty selector matches all pods in the namespace\n\
        FILE:7:13: GameDeployment Arena_1: spec.template.spec.containers: must list at least one container\n\
        FILE:10:7: HookTemplte t: kind: unknown kind \"HookTemplte\"; did you mean HookTemplate?\n\
        FILE:13:1: HookRun without a name: apiVersion: is required; write tkex.tencent.com/v1alpha1\n\
        FILE:13:1: HookRun without a name: metadata.name: is required\n\
        FILE:16:5: HookRun without a name: spec.metrics[0]: field name is required\n\
        FILE:16:21: HookRun without a name: spec.metrics[0].provider.web: must be an object, not []; indent its fields below it\n\
        FILE:17:15: HookRun without a name: spec.metrics[0].interval: duration \"5 s\" has an unknown unit; use ns, us, ms, s, m or h, without spaces\n";
    assert!(text == golden, "--- expected\n{golden}\n--- said\n{text}");
}

const GAME: &str = "apiVersion: tkex.tencent.com/v1alpha1\nkind: HookTemplate\nmetadata:\n  name: fine\nspec:\n  metrics:\n  \
    - name: m\n    successCondition: result == 0\n    provider:\n      web: {url: 'http://game'}\n";

#[test]
fn a_dump_of_a_cluster_is_read_item_by_item() {
    let item = |text: &str, name: &str| {
        let lines: Vec<_> = text.lines().map(|line| format!("  {line}\n")).collect();
        format!("- {}", lines.concat().trim_start()).replace("fine", name)
    };
    let bad = item(GAME, "Bad");
    let text = format!("apiVersion: v1\nkind: List\nitems:\n{}{bad}", item(GAME, "good"));
    let manifest = Manifest::new(&text);
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 1, "{said:?}");
    let out = manifest.anonymous(&said.out);
    assert!(
        out.starts_with("FILE:4:3: HookTemplate good: ok\nFILE:17:11: HookTemplate Bad: metadata.name: "),
        "{out}"
    );
    let json = hook(&["lint", "-o", "json", "-f", manifest.path()]);
    let report: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!((json.code, &report["problems"]), (1, &1.into()), "{report}");
    assert_eq!(report["objects"][0]["problems"], serde_json::json!([]));
    let problem = &report["objects"][1]["problems"][0];
    assert_eq!(
        (&problem["path"], &problem["line"]),
        (&"metadata.name".into(), &17.into()),
        "{report}"
    );
}

#[test]
fn directories_are_read_as_kubectl_reads_them() {
    let directory = tempfile::TempDir::new().unwrap();
    let at = |path: &str| directory.path().join(path);
    let path = directory.path().to_str().unwrap();
    std::fs::create_dir_all(at("one/two")).unwrap();
    let empty = hook(&["lint", "-f", path]);
    assert_eq!(empty.code, 64, "{empty:?}");
    assert!(
        empty.err.contains("no .json, .yaml or .yml files in ") && empty.err.contains("use -R"),
        "{empty:?}"
    );
    std::fs::write(at("b.yml"), GAME).unwrap();
    std::fs::write(at("notes.txt"), "a: [").unwrap();
    std::fs::write(at("one/two/a.json"), "{\"kind\": \"Service\"}").unwrap();
    std::fs::write(at("one/two/c.yaml"), GAME.replace("fine", "Bad")).unwrap();
    std::os::unix::fs::symlink(directory.path(), at("one/again")).unwrap();
    let flat = hook(&["lint", "-f", path]);
    assert_eq!((flat.code, flat.out.lines().count()), (0, 1), "{flat:?}");
    let deep = hook(&["lint", "-R", "-f", path]);
    assert_eq!((deep.code, deep.out.lines().count()), (1, 2), "{deep:?}");
}

#[test]
fn nothing_to_check_is_a_mistake_and_so_is_too_much() {
    let manifest = Manifest::new("apiVersion: v1\nkind: Service\nmetadata: {name: s}\n");
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!((said.code, said.out.as_str()), (64, ""), "{said:?}");
    let note = "not checked: 1 Service\nno GameDeployment, HookTemplate, HookRun, HookAction or ExecutionHook to check \
                in FILE\n";
    assert_eq!(manifest.anonymous(&said.err), note);
    let manifest = Manifest::new(&"# much\n".repeat(3 << 20));
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 64, "{said:?}");
    let complaint = "error: FILE is larger than 16 MiB; split it into several files\n";
    assert_eq!(manifest.anonymous(&said.err), complaint);
    let manifest = Manifest::new(&format!("a: {}1{}", "[".repeat(100), "]".repeat(100)));
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 64, "{said:?}");
    assert!(said.err.contains("nested deeper than 64 levels"), "{said:?}");
}

#[test]
fn a_template_may_leave_arguments_open_and_a_run_may_not() {
    let template = std::fs::read_to_string(crate::example("01")).unwrap();
    let run = template.replace("kind: HookTemplate", "kind: HookRun");
    let said = hook(&["lint", "-f", Manifest::new(&template).path()]);
    assert_eq!(said.code, 0, "{said:?}");
    let said = hook(&["lint", "-f", Manifest::new(&run).path()]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.out
            .contains("spec.args[0]: argument \"PodIP\" was not supplied"),
        "{said:?}"
    );
}

/// Warnings use the operator's words, and the exit code is 0.
#[test]
fn what_is_legal_and_may_surprise_is_a_warning() {
    let manifest = Manifest::new(
        "apiVersion: tkex.tencent.com/v1alpha1\nkind: HookTemplate\nmetadata: {name: t}\nspec:\n  metrics:\n  \
         - name: m\n    interval: 5s\n    comment: of ours\n    provider:\n      web: {url: http://game/}\n",
    );
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let text = manifest.anonymous(&said.out);
    for words in [
        "FILE:8:14: HookTemplate t: warning: spec.metrics[0].comment: unknown field, which has no effect\n",
        "HookTemplate t: warning: spec.metrics[0]: no condition is set, so any 2xx response is a success\n",
        "FILE:7:15: HookTemplate t: warning: spec.metrics[0].interval: without count or a success limit",
        "HookTemplate t: ok\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn hooks_of_a_workload_are_looked_up_among_the_templates_of_the_same_files() {
    let workload = |name: &str| {
        format!(
            "apiVersion: tkex.tencent.com/v1alpha1
kind: GameDeployment
metadata: {{name: arena}}
spec:
  selector: {{matchLabels: {{app: arena}}}}
  template:
    metadata: {{labels: {{app: arena}}}}
    spec: {{containers: [{{name: game, image: 'game:v1'}}]}}
  preDeleteUpdateStrategy: {{hook: {{templateName: {name}}}}}
"
        )
    };
    let template = "apiVersion: tkex.tencent.com/v1alpha1
kind: HookTemplate
metadata: {name: nobody}
spec:
  args: [{name: PodIP}, {name: room}]
  metrics: [{name: players, provider: {web: {url: 'http://{{ args.PodIP }}/{{ args.room }}'}}}]
";
    let lint_with = |name: &str, template: &str| {
        let file = Manifest::new(&format!("{}---\n{template}", workload(name)));
        let said = hook(&["lint", "-f", file.path()]);
        (said.code, file.anonymous(&said.out))
    };
    let lint = |name: &str| lint_with(name, template);
    let (code, out) = lint("nobody");
    assert_eq!(code, 1, "{out}");
    let words = "spec.preDeleteUpdateStrategy.hook: HookTemplate nobody needs a value for argument room;";
    assert!(out.contains(words), "{out}");
    let (code, out) = lint("nobdy");
    assert_eq!(code, 0, "{out}");
    let words = "warning: spec.preDeleteUpdateStrategy.hook.templateName: HookTemplate nobdy does not exist; did \
                 you mean nobody?";
    assert!(out.contains(words), "{out}");
    let (code, out) = lint("elsewhere");
    assert_eq!((code, out.contains("templateName")), (0, false), "{out}");
    let room = format!("{{name: room, value: '{}'}}", "x".repeat(17_000));
    let (code, out) = lint_with("nobody", &template.replace("{name: room}", &room));
    assert_eq!(code, 1, "{out}");
    let words = "spec.preDeleteUpdateStrategy.hook: HookTemplate nobody is too large for a GameDeployment hook: its \
                 args are 17045 bytes in total; the limit is 16384\n";
    assert!(out.contains(words), "{out}");
}

#[test]
fn actions_and_execution_hooks_are_checked_by_the_operator_with_their_positions() {
    let manifest = Manifest::new(
        "apiVersion: tkex.tencent.com/v1alpha1
kind: HookAction
metadata: {name: freeze, labels: {app: arena}}
action:
  exec: {command: []}
  actionTimeoutSeconds: 5
callTimeoutSeconds: \"3\"
quoteAnswer: true
---
apiVersion: tkex.tencent.com/v1alpha1
kind: ExecutionHook
metadata: {name: freeze-1}
spec:
  actionName: freeze
  parallelism: 0
  podSelection:
    podContainerSelector:
      podSelector: {}
      containerLists: [game]
---
apiVersion: tkex.tencent.com/v1alpha1
kind: ExecutionHook
metadata: {name: freeze-2}
spec:
  podSelection: {}
",
    );
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    let text = manifest.anonymous(&said.out);
    let golden = "\
        FILE:5:19: HookAction freeze: action.exec.command: must be set; list the program and each of its arguments as a separate item\n\
        FILE:6:25: HookAction freeze: action.actionTimeoutSeconds: must be at the top level, next to action\n\
        FILE:7:21: HookAction freeze: callTimeoutSeconds: must be an integer, not \"3\"; remove the quotes\n\
        FILE:8:14: HookAction freeze: quoteAnswer: unknown field: the API server would drop it; did you mean quoteAnswers?\n\
        FILE:15:16: ExecutionHook freeze-1: spec.parallelism: 0 must be greater than or equal to 1\n\
        FILE:18:20: ExecutionHook freeze-1: spec.podSelection.podContainerSelector.podSelector: must not be empty, because an empty selector matches all pods in the namespace; set matchLabels\n\
        FILE:19:23: ExecutionHook freeze-1: spec.podSelection.podContainerSelector.containerLists: unknown field; did you mean containerList?\n\
        FILE:25:3: ExecutionHook freeze-2: spec: field actionName is required\n\
        FILE:25:17: ExecutionHook freeze-2: spec.podSelection: one of podContainerNamesList and podContainerSelector must be set\n";
    assert!(text == golden, "--- expected\n{golden}\n--- said\n{text}");
}

#[test]
fn an_action_that_other_files_may_have_is_missed_only_beside_others() {
    let action = |name: &str, namespace: &str| {
        format!(
            "apiVersion: tkex.tencent.com/v1alpha1
kind: HookAction
metadata: {{name: {name}, namespace: {namespace}}}
action: {{exec: {{command: [sync]}}}}
---
"
        )
    };
    let execution = "apiVersion: tkex.tencent.com/v1alpha1
kind: ExecutionHook
metadata: {name: freeze-1, namespace: games}
spec:
  actionName: freeze
  podSelection:
    podContainerNamesList: [{podName: arena-0}]
    podContainerSelector: {podSelector: {matchLabels: {app: arena}}}
";
    let lint = |actions: &str| {
        let manifest = Manifest::new(&format!("{actions}{execution}"));
        let said = hook(&["lint", "-f", manifest.path()]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        let out = manifest.anonymous(&said.out);
        let unused = "warning: spec.podSelection.podContainerSelector: is ignored, because podContainerNamesList is also \
                      set; remove one of them\n";
        assert!(out.contains(unused), "{out}");
        out.lines()
            .find_map(|line| Some(line.split_once("warning: spec.actionName: ")?.1.to_owned()))
    };
    assert_eq!(lint(""), None, "the action may be in the cluster");
    assert_eq!(lint(&action("thaw", "elsewhere")), None);
    assert_eq!(
        lint(&(action("thaw", "games") + &action("freeze", "games"))),
        None
    );
    let missing = |said: &str| Some(format!("these files do not contain HookAction freeze; {said}"));
    assert_eq!(
        lint(&action("thaw", "games")),
        missing("the ExecutionHook will wait until the HookAction exists")
    );
    assert_eq!(lint(&action("freez", "games")), missing("did you mean freez?"));
}

#[test]
fn a_hostile_manifest_cannot_command_the_terminal() {
    let is_hostile = |c: char| c != '\n' && !redact::is_printable(c);
    let condition = r#"successCondition: "result == \"\\e[31m\\u202e\\x07""#;
    let manifest = Manifest::template(condition, r#"url: "http://\e]0;owned\u202e/""#);
    for format in [&[][..], &["-o", "json"]] {
        let said = hook(&[&["lint", "-f", manifest.path()], format].concat());
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.out.contains("owned") && !said.out.contains(is_hostile),
            "{said:?}"
        );
    }
}

#[test]
fn a_condition_beside_the_metrics_is_a_problem_with_its_place() {
    let manifest = Manifest::new(
        &(template("count: 1", "url: http://game/")
            + "  successCondition: result == 0\n  comment: of ours\n"),
    );
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 1, "{said:?}");
    let out = manifest.anonymous(&said.out);
    for line in [
        "HookTemplate t: spec.successCondition: unknown field; move it to the metric itself",
        "HookTemplate t: warning: spec.comment: unknown field, which has no effect",
    ] {
        assert!(out.contains(line), "{out}");
    }
}

#[test]
fn settings_without_effect_are_warnings_with_their_values() {
    let manifest = Manifest::new(
        "apiVersion: tkex.tencent.com/v1alpha1\nkind: GameDeployment\nmetadata: {name: g}\nspec:\n  \
         selector: {matchLabels: {app: g}}\n  template:\n    metadata: {labels: {app: g}}\n    \
         spec: {containers: [{name: g, image: g}]}\n  disruption:\n    onCordon: Ask\n",
    );
    let said = hook(&["lint", "-f", manifest.path()]);
    assert_eq!(said.code, 0, "{said:?}");
    let text = manifest.anonymous(&said.out);
    let warning = "FILE:10:15: GameDeployment g: warning: spec.disruption.onCordon: \"Ask\" has no effect while \
                   spec.disruption.policy is Unguarded; set the policy to Ask, or remove onCordon\n";
    assert!(text.contains(warning), "{text}");
    let strict = hook(&["lint", "--strict", "-f", manifest.path()]);
    assert_eq!(strict.code, 1, "{strict:?}");
}
