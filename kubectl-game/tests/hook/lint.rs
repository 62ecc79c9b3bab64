//! `kubectl game hook lint`: everything that is wrong, with its place.

use crate::{Manifest, examples, hook};

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
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        assert!(said.out.lines().all(|line| line.ends_with(": ok")), "{said:?}");
    }
}

#[test]
fn other_objects_are_passed_over_and_a_workload_is_read_as_by_its_operator() {
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
         FILE:10:13: GameDeployment g: spec.selector: it selects every pod; name at least one label\n\
         FILE:11:13: GameDeployment g: spec.template.spec.containers: a pod needs at least one container\n\
         FILE:13:11: GameDeployment g: spec.updateStrategy.type: \"InPlaceUpdate\" is not one of \"RollingUpdate\", \
         \"InplaceUpdate\", \"HotPatchUpdate\", \"OnDelete\"\n"
    );
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

/// In the operator's words, and no mistake: the exit code is 0.
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
        "FILE:8:14: HookTemplate t: warning: spec.metrics[0].comment: unknown field, without effect\n",
        "HookTemplate t: warning: spec.metrics[0]: no condition: any 2xx answer is a success\n",
        "FILE:7:15: HookTemplate t: warning: spec.metrics[0].interval: without count and without a success limit",
        "HookTemplate t: ok\n",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
