//! Every reason that a status, a condition or an event may carry: one word, in `CamelCase`.

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$item_doc])* $item),+ }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$item),+];

            /// The word that the API shows.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$item => stringify!($item)),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

reasons! {
    /// Why a HookRun has the phase that it has (`status.reason`).
    HookRunReason {
        /// Measurements are being taken.
        Measuring,
        /// Every metric is Successful.
        AllMetricsSuccessful,
        /// More measurements failed than `failureLimit` allows.
        FailureLimitExceeded,
        /// `count` was used up before the success limit was reached.
        SuccessLimitNotReached,
        /// More measurements were inconclusive than `inconclusiveLimit` allows.
        InconclusiveLimitExceeded,
        /// More errors in a row than `consecutiveErrorLimit` allows.
        ErrorLimitExceeded,
        /// The spec cannot be measured; the message names every problem.
        InvalidSpec,
        /// `timeoutSeconds` passed without a verdict.
        TimedOut,
        /// `spec.terminate` was set.
        Terminated,
        /// Of events only: the status cannot be written; the message says why.
        StatusNotRecorded,
    }
}

reasons! {
    /// Reasons of a HookTemplate's `Valid` condition.
    TemplateReason {
        /// Everything in the template compiles.
        SpecValid,
        /// Something does not; the message names every problem.
        SpecInvalid,
    }
}

/// Type of the HookTemplate condition that says whether the template can be measured.
pub const CONDITION_VALID: &str = "Valid";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_word_as_kubernetes_wants_it() {
        for reason in HookRunReason::ALL {
            assert!(
                reason.as_str().chars().all(|c| c.is_ascii_alphanumeric()),
                "{reason}"
            );
        }
        assert_eq!(TemplateReason::SpecInvalid.to_string(), "SpecInvalid");
    }
}
