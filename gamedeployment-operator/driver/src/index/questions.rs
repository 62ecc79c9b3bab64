//! Questions that this process noted on pods, and for which it has seen no run.
//!
//! Only memory can tell that a question is new: the run of a question on a pod may have been deleted, and another
//! process may still act on its verdict. So a process that has just begun to lead notes each question again.

use std::collections::{HashMap, HashSet};

use gamedeployment_core::gate::Run;
use gamedeployment_core::pod::Pod;
use shared_api::names::pod::QUESTION;

use super::sweep::Sweep;

/// New questions by UID of the pod.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    new: HashMap<String, String>,
    sweep: Sweep,
}

impl Questions {
    /// Records that a question is about to be noted on a pod. `pods` returns the UIDs of all pods.
    pub(crate) fn note<'p>(&mut self, pod: &str, question: &str, pods: impl FnOnce() -> HashSet<&'p str>) {
        self.new.insert(pod.to_owned(), question.to_owned());
        if self.sweep.is_due(self.new.len()) {
            let pods = pods();
            self.new.retain(|pod, _| pods.contains(pod.as_str()));
            self.sweep.done(self.new.len());
        }
    }

    /// Records a run that exists or has existed: its question is not new any more.
    pub(super) fn asked(&mut self, run: &Run) {
        if let (Some(pod), Some(question)) = (&run.pod_uid, &run.question)
            && self.new.get(pod) == Some(question)
        {
            self.new.remove(pod);
        }
    }

    /// Whether the question on a pod is new.
    pub(super) fn is_new(&self, pod: &Pod) -> bool {
        let noted = self.new.get(&pod.uid);
        noted.is_some_and(|noted| pod.annotation(QUESTION) == Some(noted))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::index::sweep::MIN_SWEEP;

    fn pod(uid: &str, question: &str) -> Pod {
        let object = json!({"metadata": {"uid": uid, "annotations": {(QUESTION): question}}});
        Pod::read(&serde_json::from_value(object).unwrap())
    }

    fn run(pod: &str, question: &str) -> Run {
        let object = json!({
            "metadata": {
                "labels": {"tkex.tencent.com/pod-uid": pod},
                "annotations": {"tkex.tencent.com/question": question},
            },
            "spec": {"metrics": []},
        });
        Run::read(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_question_is_new_until_a_run_asks_it() {
        let mut questions = Questions::default();
        assert!(!questions.is_new(&pod("a", "one")), "another process noted it");
        questions.note("a", "one", HashSet::new);
        assert!(questions.is_new(&pod("a", "one")));
        assert!(
            !questions.is_new(&pod("a", "two")),
            "someone else has noted another one"
        );
        assert!(!questions.is_new(&pod("b", "one")));
        questions.asked(&run("b", "one"));
        questions.asked(&run("a", "before"));
        assert!(questions.is_new(&pod("a", "one")));
        questions.asked(&run("a", "one"));
        assert!(!questions.is_new(&pod("a", "one")));
    }

    #[test]
    fn questions_about_deleted_pods_are_dropped() {
        let mut questions = Questions::default();
        for number in 0..10 * MIN_SWEEP {
            questions.note(&number.to_string(), "one", || HashSet::from(["0"]));
        }
        assert!(questions.is_new(&pod("0", "one")));
        assert!(questions.new.len() <= MIN_SWEEP, "{}", questions.new.len());
    }
}
