//! Tests the memory used by rendering a template, as measured by the kernel. The process does nothing else.

#![allow(clippy::unwrap_used, reason = "a test may end so")]
#![expect(clippy::disallowed_methods, reason = "a test measures its memory")]

use placeholder::Template;

/// Returns the peak memory of this process in KiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A template of 12 kB and a value of 1 MiB could make almost 1 GiB.
#[test]
fn a_text_that_would_become_long_is_refused_before_it_is_made() {
    let template = Template::parse(&"{{ args.a }}".repeat(1000)).unwrap();
    let value = "x".repeat(1 << 20);
    let before = peak();
    let error = template.render(&|_| Some(value.clone())).unwrap_err();
    assert!(error.message.contains("longer than 131072 bytes"), "{error}");
    assert!(peak() - before < 32 * 1024, "{} KiB", peak() - before);
}
