//! Errors on the command line and in files, and help. No requests are sent, and the exit code is 64.

use std::process::{Command, Stdio};

use crate::{Manifest, Said, example, hook, hook_with_input, template};

fn refused(words: &[&str]) -> String {
    let Said { code, out, err } = hook(words);
    assert_eq!((code, out.as_str()), (64, ""), "{words:?}: {err}");
    err
}

#[test]
fn mistakes_on_the_command_line_name_the_flag() {
    let file = example("02");
    assert!(refused(&["run"]).contains("--filename <FILE>"));
    assert!(
        refused(&["run", "-f", &file, "--arg", "PodIP"])
            .contains("'PodIP' for '--arg <NAME=VALUE>': must have the form NAME=VALUE")
    );
    let file = example("01");
    let words = ["run", "-f", &file, "--arg", "PodIP=p", "--secret"];
    let said = refused(&[&words[..], &["token=hush-hush-hush"]].concat());
    assert!(
        said.contains("\"token\" must have the form NAME/KEY=VALUE"),
        "{said}"
    );
    assert!(!said.contains("hush"), "{said}");
    assert!(!refused(&[&words[..], &["hush-hush-hush"]].concat()).contains("hush"));
    let file = example("02");
    let said = refused(&["run", "-f", &file]);
    assert!(
        said.ends_with("test, test-fail; choose one with --name\n"),
        "{said}"
    );
    let said = refused(&["run", "-f", &file, "--name", "tset"]);
    assert_eq!(
        said,
        "error: no hook named \"tset\"; available: test, test-fail\n"
    );
    let words = [
        "evaluate", "-f", &file, "--name", "test", "--arg", "PodIP=p", "--result", "1", "--metric", "wbetest",
    ];
    assert_eq!(
        refused(&words),
        "error: test has no metric \"wbetest\"; available: webtest\n"
    );
}

#[test]
fn an_argument_that_is_missing_is_named_with_its_place() {
    let manifest = Manifest::new(&std::fs::read_to_string(example("04")).unwrap());
    let words = ["--arg", "PodIP=p", "--arg", "PodNamespace=n"];
    let said = refused(&[&["run", "-f", manifest.path()], &words[..]].concat());
    assert_eq!(
        manifest.anonymous(&said),
        "error: FILE:11:7: args[1]: argument \"PodName\" was not supplied; set its value (pass --arg PodName=VALUE)\n\
         \x20      FILE:13:7: args[3]: argument \"service-name\" was not supplied; set its value (pass --arg \
         service-name=VALUE)\n"
    );
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_the_place() {
    assert!(
        refused(&["run", "-f", "no-such-file.yaml"]).starts_with("error: failed to read no-such-file.yaml: ")
    );
    let nothing = "error: no HookTemplate or HookRun in FILE; ";
    for (text, message) in [
        ("a: [1\nb: 2\n", "error: FILE:2:2: "),
        ("a: 1\nb: 2\na: 3\n", "error: FILE:3:1: duplicate mapping key: a"),
        ("apiVersion: v1\nkind: Pod\n", nothing),
        ("", nothing),
    ] {
        let manifest = Manifest::new(text);
        // Files with nothing to check are not an error.
        let count = if message == nothing { 1 } else { 2 };
        for command in &["run", "lint"][..count] {
            let said = manifest.anonymous(&refused(&[command, "-f", manifest.path()]));
            assert!(said.starts_with(message), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn a_hook_that_cannot_be_measured_is_refused_with_every_problem() {
    let manifest = Manifest::template("interval: 5\nsuccessCondition: reslt > 1", "url: players");
    let said = refused(&["run", "-f", manifest.path()]);
    assert!(manifest.anonymous(&said).starts_with("error: FILE:"), "{said}");
    let manifest = Manifest::template("interval: 5 s\nsuccessCondition: reslt > 1", "url: players");
    let said = manifest.anonymous(&refused(&["run", "-f", manifest.path()]));
    let places: Vec<&str> = said
        .lines()
        .map(|line| line.trim_start_matches(['e', 'r', 'o', ':', ' ']))
        .collect();
    let wanted = [
        "FILE:8:17: metrics[0].interval: ",
        "FILE:9:25: metrics[0].successCondition: unknown name `reslt`",
        "FILE:12:16: metrics[0].provider.web.url: \"players\" is not an absolute URL",
    ];
    assert_eq!(places.len(), wanted.len());
    for (place, wanted) in places.into_iter().zip(wanted) {
        assert!(place.starts_with(wanted), "{said}");
    }
}

#[test]
fn a_manifest_may_come_from_standard_input() {
    let text = template("successCondition: result == 0", "url: http://game/players");
    let mut echo = Command::new("printf")
        .arg("%s")
        .arg(&text)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = hook_with_input(&["lint", "-f", "-"], echo.stdout.take().unwrap().into());
    assert!(echo.wait().unwrap().success());
    assert_eq!((said.code, said.out.as_str()), (0, "-:1:1: HookTemplate t: ok\n"));
}

#[test]
fn help_fits_a_terminal_and_says_the_exit_codes() {
    for command in ["run", "lint", "evaluate"] {
        let said = hook(&[command, "--help"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
        assert!(said.out.contains("Exit code: 0 "), "{said:?}");
        assert!(!said.out.contains('`') || command == "run", "{said:?}");
        for line in said.out.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    assert_eq!(hook(&[]).code, 64);
}

#[test]
fn a_completion_script_is_one_that_bash_can_read() {
    let program = env!("CARGO_BIN_EXE_kubectl-game");
    for shell in ["bash", "zsh", "fish"] {
        let output = Command::new(program)
            .args(["completion", shell])
            .output()
            .unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && script.contains("hook") && script.contains("kubectl-game"),
            "{script}"
        );
    }
    let script = Command::new(program)
        .args(["completion", "bash"])
        .output()
        .unwrap()
        .stdout;
    let read = Command::new("bash")
        .args(["-n", "-c", &String::from_utf8(script).unwrap()])
        .status()
        .unwrap();
    assert!(read.success());
}
