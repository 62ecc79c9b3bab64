#![expect(clippy::disallowed_methods, reason = "a test measures its time")]

use std::time::{Duration, Instant};

use super::*;

#[test]
fn equal_patterns_cost_once() {
    let mut allowance = Allowance::default();
    allowance.take("^idle$").unwrap();
    let once = allowance.bytes();
    assert!(once > 0);
    for _ in 0..1000 {
        allowance.take("^idle$").unwrap();
    }
    assert_eq!(allowance.bytes(), once);
}

#[test]
fn a_spec_may_have_so_many_patterns_and_no_more() {
    let mut allowance = Allowance::default();
    for number in 0..MAX_PATTERNS {
        allowance.take(&format!("^server-{number}$")).unwrap();
    }
    let fault = allowance.take("^one more$").unwrap_err();
    assert_eq!(
        fault.message,
        "the regular expression \"^one more$\" exceeds the limit of 64 different regular expressions in a spec; \
         combine some of them with |"
    );
    allowance.take("^server-1$").unwrap();
}

#[test]
fn large_patterns_use_up_the_bytes_and_bad_ones_the_count() {
    let mut allowance = Allowance::default();
    let refused = (0..MAX_PATTERNS).find_map(|number| allowance.take(&format!("^\\p{{L}}+{number}$")).err());
    let message = refused.unwrap().message;
    assert!(message.contains("the limit of 512 KiB"), "{message}");
    assert!(allowance.bytes() <= MAX_BYTES);

    let mut allowance = Allowance::default();
    for number in 0..MAX_PATTERNS {
        assert!(allowance.take(&format!("({number}")).is_err());
    }
    let message = allowance.take("^good$").unwrap_err().message;
    assert!(message.contains("the limit of 64"), "{message}");
}

/// Each of these took between 20 ms and 1.3 s to compile before it was rejected or kept.
#[test]
fn what_takes_long_to_compile_is_refused_before_it_is_compiled() {
    let hostile = [
        format!("(?i){}", r"\pL|".repeat(250)),
        format!("(?i)[{}]", r"\pL".repeat(300)),
        format!("(?i){}", r"[\x{0}-\x{10ffff}]|".repeat(50)),
        r"a(?i:[\x{80}-\x{10ffff}][\x{81}-\x{10ffff}])".to_owned(),
    ];
    let begun = Instant::now();
    for pattern in hostile {
        let message = Allowance::default().take(&pattern).unwrap_err().message;
        assert!(message.contains("too large"), "{message}");
        assert!(message.len() < 400, "{message}");
    }
    assert!(
        begun.elapsed() < Duration::from_millis(20),
        "{:?}",
        begun.elapsed()
    );
}
