use proptest::prelude::*;

use super::*;

#[test]
fn a_partition_keeps_back_all_pods_only_where_it_says_so() {
    let table = [
        (Amount::Count(0), 5, 0),
        (Amount::Count(4), 5, 4),
        (Amount::Count(5), 5, 5),
        (Amount::Count(6), 5, 5),
        (Amount::Count(usize::MAX), 5, 5),
        (Amount::Percent(0), 5, 0),
        (Amount::Percent(1), 5, 1),
        (Amount::Percent(50), 5, 3),
        (Amount::Percent(99), 5, 4),
        (Amount::Percent(99), 1, 1),
        (Amount::Percent(99), 0, 0),
        (Amount::Percent(100), 5, 5),
        (Amount::Percent(u32::MAX), 5, 5),
    ];
    for (amount, whole, kept) in table {
        assert_eq!(amount.partition(whole), kept, "{amount:?} of {whole}");
    }
}

fn any_amount() -> impl Strategy<Value = IntOrString> {
    let number = prop_oneof![any::<i32>(), -3..300_i32];
    prop_oneof![
        number.clone().prop_map(IntOrString::Int),
        number
            .clone()
            .prop_map(|number| IntOrString::String(number.to_string())),
        number.prop_map(|number| IntOrString::String(format!("{number}%"))),
        any::<u64>().prop_map(|number| IntOrString::String(format!("{number}%"))),
        "[ +0-9.%-]{0,6}".prop_map(IntOrString::String),
    ]
}

proptest! {
    #![proptest_config(crate::samples::config())]

    #[test]
    fn amounts_are_read_or_refused_and_their_arithmetic_keeps_its_bounds(
        written in any_amount(),
        whole in prop_oneof![0..300_usize, any::<usize>()],
        more in 0..3_usize,
    ) {
        let amount = match Amount::read(&written) {
            Ok(amount) => amount,
            Err((shown, remedy)) => {
                let same = match &written {
                    IntOrString::Int(number) => *number < 0 && shown == number.to_string(),
                    IntOrString::String(text) => shown == *text,
                };
                prop_assert!(same && !remedy.is_empty());
                return Ok(());
            }
        };
        if let IntOrString::Int(number) = written {
            prop_assert_eq!(amount, Amount::Count(usize::try_from(number).unwrap()));
        }
        let (up, down, kept) = (amount.up(whole), amount.down(whole), amount.partition(whole));
        prop_assert!(down <= up && up - down <= 1, "rounding moves it by less than a pod");
        prop_assert!(kept <= up && kept <= whole);
        prop_assert_eq!(amount.is_zero(), amount.up(1) == 0);
        if let Amount::Percent(percent) = amount {
            prop_assert!((up == 0) == (whole == 0 || percent == 0), "a part of something is something");
            prop_assert!(percent >= 100 || up <= whole && (kept < whole || whole <= 1));
            prop_assert!(whole != 1 || kept == up.min(1), "99% of one pod keep that pod");
            prop_assert!(percent < 100 || down >= whole && kept == whole);
            // A higher percentage or more pods never yield a smaller number.
            let greater = Amount::Percent(percent.saturating_add(u32::try_from(more).unwrap()));
            prop_assert!(greater.up(whole) >= up && greater.down(whole) >= down && greater.partition(whole) >= kept);
        }
        let larger = whole.saturating_add(more);
        prop_assert!(amount.up(larger) >= up && amount.down(larger) >= down && amount.partition(larger) >= kept);
    }
}
