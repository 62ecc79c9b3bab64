//! Cost of one hostile spec, measured from outside: this process does nothing else, and the kernel counts its
//! memory.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end so")]
#![expect(
    clippy::disallowed_methods,
    reason = "a test measures its time and its memory"
)]

use std::time::{Duration, Instant};

use hook_core::resolve::{check_template, resolve_run};
use serde_json::{Value, json};

/// Builds a condition with sixteen different patterns, each as memory-hungry as possible.
fn condition(number: usize, pattern: &str) -> String {
    let patterns = (0..16).map(|at| format!(r#"result matches "{pattern}{number}x{at}""#));
    patterns.collect::<Vec<_>>().join(" || ")
}

fn spec(metrics: usize, pattern: &str) -> Value {
    let metrics = (0..metrics).map(|number| {
        json!({
            "name": format!("m{number}"),
            "successCondition": condition(2 * number, pattern),
            "failureCondition": condition(2 * number + 1, pattern),
            "provider": { "web": { "url": "http://game:9091" } },
        })
    });
    json!({ "metrics": metrics.collect::<Vec<_>>() })
}

/// Returns the peak memory of this process, in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_spec_of_hostile_patterns_is_refused_soon_and_with_little_memory() {
    // Regular expression engines are not optimised in a development build.
    let limit = Duration::from_millis(if cfg!(debug_assertions) { 3000 } else { 250 });
    for pattern in [
        r"(?i)(\\pL|\\pN|\\pP|\\pS|\\pZ)+",
        r"\\pL+",
        r"(?i)[\\x{80}-\\x{10ffff}]",
        "(?:ab?){300}",
    ] {
        let spec = spec(100, pattern);
        let run = serde_json::from_value(spec.clone()).unwrap();
        let template = serde_json::from_value(spec).unwrap();
        let (before, begun) = (peak(), Instant::now());
        let problems = resolve_run(&run).unwrap_err().to_string();
        let took = begun.elapsed();
        let again = check_template(&template).to_string();
        let grown = peak() - before;
        assert!(took < limit, "{pattern}: {took:?}");
        assert!(grown < 32 * 1024, "{pattern}: {grown} KiB");
        assert!(
            problems.contains("metrics[99].failureCondition: the regular expression"),
            "{problems}"
        );
        assert!(again.contains("metrics[99].successCondition"), "{again}");
    }
}

#[test]
fn the_same_patterns_again_and_again_are_valid() {
    let metrics = (0..100).map(|number| {
        json!({
            "name": format!("m{number}"),
            "successCondition": condition(1, "^idle"),
            "provider": { "web": { "url": "http://game:9091" } },
        })
    });
    let run = json!({ "metrics": metrics.collect::<Vec<_>>() });
    assert!(resolve_run(&serde_json::from_value(run).unwrap()).is_ok());
}
