//! Completions of Evictions (`lifecycle.k8s.io`): once the pod is gone, or if it needs no hook, and only after a direct
//! read has confirmed that.

use std::time::Duration;

use gamedeployment_core::pod::Pod;
use gamedeployment_driver::request::RequestError;
use gamedeployment_driver::watch_event::{Event, WatchEvent, Workload};
use shared_api::names::pod as names;

use crate::eviction_kit::*;
use crate::kit::*;
use crate::server::Server;

#[test]
fn a_pod_that_others_delete_completes_its_eviction_at_once_after_a_read() {
    for shows_reports in [false, true] {
        let (mut server, pod) = evicted();
        server.evictions.shows_reports = shows_reports;
        play(&mut server, 10, 15);
        server.reads.clear();
        delete(&mut server, &pod, 15);
        play(&mut server, 15, 700);
        assert_eq!(server.reads.first(), Some(&15));
        let [heartbeat, completion] = &server.evictions.received[..] else {
            panic!("{:#?}", server.evictions.received)
        };
        assert_eq!(heartbeat.second, 12);
        assert_completion(completion, DELETED, 15, 3);
        assert_eq!(completion.until, None);
    }
}

#[test]
fn a_pod_that_the_operator_deletes_completes_its_eviction() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    let skip = |pod: &mut Pod| {
        let skipped = (names::SKIP_HOOK.to_owned(), pod.uid.clone());
        pod.annotations.extend([skipped]);
    };
    server.change_pod(&pod, skip).unwrap();
    show_pod(&mut server, &pod, 50);
    play(&mut server, 50, 700);
    assert_eq!(server.deleted, [pod]);
    assert_eq!(server.pods.len(), 1, "it is replaced");
    let [_, completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, DELETED, 50, 3);
    assert!(requests_in_status(&server).is_empty());
}

#[test]
fn a_pod_that_was_gone_before_its_eviction_was_shown_completes_it() {
    let mut server = responding(1);
    let pod = pods(&server).remove(0);
    let eviction = eviction_of(&server.pods[&pod], 10);
    delete(&mut server, &pod, 10);
    play(&mut server, 10, 20);
    store(&mut server, EVICTION, eviction, 20);
    play(&mut server, 20, 700);
    let [completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, DELETED, 20, 3);
}

#[test]
fn another_pod_with_the_name_completes_the_eviction() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    server
        .change_pod(&pod, |pod| pod.uid = "another".to_owned())
        .unwrap();
    show_pod(&mut server, &pod, 50);
    play(&mut server, 50, 700);
    let [_, completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, DELETED, 50, 20);
}

/// The watch may show a deletion that has not happened: etcd was restored from a backup.
#[test]
fn a_pod_that_a_read_still_finds_does_not_complete_its_eviction() {
    let (mut server, pod) = with_a_hidden_pod();
    show_pod(&mut server, &pod.name, 9);
    store(&mut server, EVICTION, eviction_of(&pod, 10), 10);
    play(&mut server, 10, 50);
    server.reads.clear();
    let gone = Event::Delete(key(&pod.name), pod.uid.clone());
    server.watch(WatchEvent::Pod(gone), 50);
    play(&mut server, 50, 110);
    assert!(!server.reads.is_empty());
    assert_not_completed(&server);
    show_pod(&mut server, &pod.name, 110);
    play(&mut server, 110, 200);
    assert_not_completed(&server);
    delete(&mut server, &pod.name, 200);
    play(&mut server, 200, 700);
    let completions = server.evictions.completions();
    assert_eq!(completions.len(), 1, "{completions:#?}");
    assert_completion(completions[0], DELETED, 200, 3);
}

#[test]
fn a_read_that_fails_is_repeated_before_the_completion() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    server.reads.clear();
    server.shows_pods = false;
    delete(&mut server, &pod, 50);
    play(&mut server, 50, 60);
    assert_eq!(server.reads[..3], [50, 51, 53]);
    assert_not_completed(&server);
    server.shows_pods = true;
    play(&mut server, 60, 700);
    let [_, completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, DELETED, 60, 30);
}

#[test]
fn a_completion_that_fails_is_repeated() {
    let (mut server, pod) = evicted();
    play(&mut server, 10, 50);
    server.evictions.error = Some(RequestError::Unknown("no answer".to_owned()));
    delete(&mut server, &pod, 50);
    play(&mut server, 50, 80);
    server.evictions.error = None;
    play(&mut server, 80, 700);
    let completions = server.evictions.completions();
    let seconds: Vec<u64> = completions.iter().map(|sent| sent.second).collect();
    assert_eq!(seconds, [50, 51, 53, 57, 65, 81]);
    for completion in completions {
        assert_completion(completion, DELETED, completion.second, 0);
    }
}

#[test]
fn a_pod_that_is_deleted_during_a_report_that_fails_completes_its_eviction() {
    let (mut server, pod) = evicted();
    server.evictions.is_silent = true;
    play(&mut server, 10, 15);
    delete(&mut server, &pod, 15);
    play(&mut server, 15, 18);
    server.evictions.is_silent = false;
    let unknown = RequestError::Unknown("no answer".to_owned());
    respond(&mut server, &Err(unknown), 18);
    play(&mut server, 18, 700);
    let [_, completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, DELETED, 18, 3);
}

#[test]
fn heartbeats_continue_while_the_reads_before_a_completion_fail() {
    for is_gone in [true, false] {
        let policy = if is_gone { "Ask" } else { "Unguarded" };
        let (mut server, pod) = evict(workload(1, policy));
        server.shows_pods = false;
        server.hides_workload = true;
        if is_gone {
            delete(&mut server, &pod, 11);
        }
        play(&mut server, 11, 1500);
        assert_not_completed(&server);
        for received in &server.evictions.received {
            assert_heartbeat(received, &received.report.message);
        }
        let mut seconds = server.evictions.seconds(EVICTION);
        seconds.push(1500);
        // Five minutes, and the longest pause between two reads.
        let is_in_time = |pair: &[u64]| pair[1] - pair[0] <= 300 + 120;
        assert!(seconds.windows(2).all(is_in_time), "{seconds:?}");
        server.shows_pods = true;
        server.hides_workload = false;
        play(&mut server, 1500, 2200);
        let completions = server.evictions.completions();
        assert_eq!(completions.len(), 1, "{completions:#?}");
        assert_completion(completions[0], if is_gone { DELETED } else { NO_HOOK }, 1500, 120);
    }
}

#[test]
fn requests_about_a_pod_that_is_gone_are_repeated_with_pauses_while_all_of_them_fail() {
    let (mut server, pod) = evicted();
    server.shows_pods = false;
    server.evictions.error = Some(RequestError::Refused("evictions is forbidden (403)".to_owned()));
    delete(&mut server, &pod, 11);
    play(&mut server, 11, 600);
    let count = server.reads.len() + server.evictions.received.len();
    assert!(count < 60, "{count} requests in ten minutes");
    server.shows_pods = true;
    server.evictions.error = None;
    play(&mut server, 600, 800);
    assert_eq!(server.evictions.completions().len(), 1);
}

#[test]
fn a_workload_that_requires_no_hook_leaves_its_pods_to_the_next_responder() {
    for has_hook in [true, false] {
        let mut server = workload(1, if has_hook { "Unguarded" } else { "Ask" });
        if !has_hook {
            server.fleet.spec.pre_delete_update_strategy = None;
        }
        let (mut server, _) = evict(server);
        play(&mut server, 10, 700);
        let [completion] = &server.evictions.received[..] else {
            panic!("{:#?}", server.evictions.received)
        };
        assert_completion(completion, NO_HOOK, 10, 3);
        assert!(server.workload_reads > 0);
        assert!(server.deleted.is_empty() && requests_in_status(&server).is_empty());
    }
}

#[test]
fn a_completion_without_a_hook_is_sent_within_five_seconds_of_the_read() {
    let (mut server, _) = evict(workload(1, "Unguarded"));
    server.held = Some(Vec::new());
    play(&mut server, 10, 15);
    server.answer_held(15);
    assert_eq!(server.workload_reads, 1);
    play(&mut server, 15, 700);
    let [completion] = &server.evictions.received[..] else {
        panic!("{:#?}", server.evictions.received)
    };
    assert_completion(completion, NO_HOOK, 15, 0);
    assert_eq!(completion.until, Some(Duration::from_secs(12 + 5)));
}

#[test]
fn a_completion_without_a_hook_that_lapses_is_confirmed_again() {
    let (mut server, _) = evict(workload(1, "Unguarded"));
    server.evictions.error = Some(RequestError::Lapsed);
    play(&mut server, 10, 13);
    server.evictions.error = None;
    play(&mut server, 13, 700);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 13]);
    let completions = server.evictions.completions();
    let until: Vec<_> = completions.iter().map(|sent| sent.until).collect();
    let wanted = [12 + 5, 13 + 5].map(Duration::from_secs);
    assert_eq!(until, wanted.map(Some));
    assert_eq!(server.workload_reads, 2);
    assert_eq!(server.evictions.outcomes, ["lapsed", "done"]);
    assert!(server.evictions.events.is_empty());
}

/// Sets the policy `Ask`. Returns the workload for the watch.
fn guard(server: &mut Server) -> Workload {
    let guarded = workload(1, "Ask").fleet;
    server.fleet.spec = guarded.spec;
    server.fleet.metadata.finalizers = guarded.metadata.finalizers;
    server.fleet.metadata.generation = Some(2);
    server.workload()
}

#[test]
fn no_completion_is_sent_if_the_watch_shows_during_the_read_that_the_workload_guards_its_pods() {
    let (mut server, pod) = evict(workload(1, "Unguarded"));
    server.held = Some(Vec::new());
    play(&mut server, 10, 13);
    server.read_instead = Some(server.fleet.clone());
    let guarded = guard(&mut server);
    let event = Event::Apply(key("fleet"), guarded);
    server.watch(WatchEvent::Workload(event), 13);
    play(&mut server, 13, 14);
    server.answer_held(14);
    assert_eq!(server.workload_reads, 1);
    server.read_instead = None;
    play(&mut server, 14, 400);
    assert_not_completed(&server);
    assert_heartbeat(server.evictions.received.last().unwrap(), &reason(&server));
    assert!(is_selected(&server, &pod) && server.deleted.is_empty());
}

#[test]
fn another_workload_of_the_same_name_permits_no_completion() {
    let (mut server, _) = evict(workload(1, "Unguarded"));
    let mut another = server.fleet.clone();
    another.metadata.uid = Some("another".to_owned());
    server.read_instead = Some(another);
    play(&mut server, 10, 100);
    assert!(server.workload_reads > 0);
    assert!(!server.evictions.received.is_empty());
    for received in &server.evictions.received {
        assert_heartbeat(received, REQUESTED);
    }
    server.read_instead = None;
    play(&mut server, 100, 700);
    let completions = server.evictions.completions();
    assert_eq!(completions.len(), 1, "{completions:#?}");
    assert_completion(completions[0], NO_HOOK, 100, 20);
}

#[test]
fn an_eviction_stays_active_while_its_workload_cannot_be_read() {
    let (mut server, _) = evict(workload(1, "Unguarded"));
    server.hides_workload = true;
    play(&mut server, 10, 60);
    assert_not_completed(&server);
    server.hides_workload = false;
    play(&mut server, 60, 700);
    let completions = server.evictions.completions();
    assert_eq!(completions.len(), 1, "{completions:#?}");
    assert_completion(completions[0], NO_HOOK, 60, 120);
}

/// Such a spec may lack its hook by mistake.
#[test]
fn an_eviction_stays_active_while_the_spec_of_its_workload_is_invalid() {
    let (mut server, _) = evict(workload(1, "Unguarded"));
    set_replicas(&mut server, -1, 11);
    play(&mut server, 11, 400);
    assert_not_completed(&server);
    assert_eq!(server.evictions.seconds(EVICTION), [12, 312]);
    set_replicas(&mut server, 1, 400);
    play(&mut server, 400, 700);
    let completions = server.evictions.completions();
    assert_eq!(completions.len(), 1, "{completions:#?}");
    assert_completion(completions[0], NO_HOOK, 400, 20);
}

/// The watch may be minutes late.
#[test]
fn an_eviction_stays_active_if_a_read_shows_that_the_workload_guards_its_pods() {
    let (mut server, pod) = evict(workload(1, "Unguarded"));
    let guarded = guard(&mut server);
    play(&mut server, 10, 400);
    assert!(server.workload_reads > 0);
    assert_not_completed(&server);
    let received = &server.evictions.received;
    assert!(!received.is_empty(), "it waits for the watch");
    for received in received {
        assert_heartbeat(received, REQUESTED);
    }
    server.watch(WatchEvent::Workload(Event::Apply(key("fleet"), guarded)), 400);
    play(&mut server, 400, 800);
    assert_not_completed(&server);
    assert_heartbeat(server.evictions.received.last().unwrap(), &reason(&server));
    assert!(is_selected(&server, &pod) && server.deleted.is_empty());
}
