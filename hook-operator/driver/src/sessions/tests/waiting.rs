//! Tests: runs wait for memory, and get it.

use super::*;

/// Sessions, and what the shell does for them.
struct World {
    sessions: Sessions,
    open: BTreeMap<String, (NamespacedName, SessionId)>,
    reads: BTreeMap<String, (NamespacedName, SessionId)>,
    waits: Vec<WaitingRun>,
}

impl World {
    fn new() -> Self {
        Self {
            sessions: Sessions::new(LIMITS),
            open: BTreeMap::new(),
            reads: BTreeMap::new(),
            waits: Vec::new(),
        }
    }

    /// Remembers the changes and returns them in short form.
    fn follow(&mut self, changes: Vec<Change>) -> Vec<String> {
        check(&self.sessions);
        let words = changes.into_iter().map(|change| match change {
            Change::Open(key, id, _) => {
                let word = format!("open {}", key.1);
                self.open.insert(key.1.clone(), (key, id));
                word
            }
            Change::Update(key, _) => format!("tell {}", key.1),
            Change::Close(key) => format!("close {}", key.1),
            Change::Wait(key, run) => {
                self.waits.push(run);
                format!("wait {}", key.1)
            }
            Change::Read(key, id) => {
                let word = format!("read {}", key.1);
                self.reads.insert(key.1.clone(), (key, id));
                word
            }
        });
        words.collect()
    }

    fn observe(&mut self, event: Event) -> Vec<String> {
        let changes = self.sessions.observe(event);
        self.follow(changes)
    }

    fn apply(&mut self, run: &HookRun) -> Vec<String> {
        self.observe(Event::Apply(Arc::new(run.clone())))
    }

    /// Lets a run arrive in the namespace `games`.
    fn arrive(&mut self, name: &str, bytes: usize) -> Vec<String> {
        self.apply(&sized("games", name, 1, bytes))
    }

    /// Ends the open session of a run.
    fn end(&mut self, name: &str) -> Vec<String> {
        let (key, id) = self.open.remove(name).unwrap();
        let changes = self.sessions.ended(key, id, End::Gone);
        self.follow(changes)
    }

    /// Answers the last read of a run.
    fn answer(&mut self, name: &str, run: ReadRun) -> Vec<String> {
        let (key, id) = self.reads[name].clone();
        self.observe(Event::Read(key, id, run))
    }

    /// Answers the last read of a run of the namespace `games` with what is stored.
    fn show(&mut self, name: &str, bytes: usize) -> Vec<String> {
        self.answer(name, found(sized("games", name, 2, bytes)))
    }
}

fn found(run: HookRun) -> ReadRun {
    ReadRun::Found(Arc::new(run))
}

fn delete(name: &str) -> Event {
    Event::Delete(("games".to_owned(), name.to_owned()))
}

fn terminated(mut run: HookRun) -> HookRun {
    let bytes = bytes_of(&run.spec);
    run.spec.terminate = Some(true);
    fill(&mut run, bytes);
    run
}

fn with_status(mut run: HookRun, status: serde_json::Value) -> HookRun {
    run.status = serde_json::from_value(status).unwrap();
    run
}

fn deleting(mut run: HookRun) -> HookRun {
    let at = json!("1970-01-01T00:00:02Z");
    run.metadata.deletion_timestamp = Some(serde_json::from_value(at).unwrap());
    run
}

#[test]
fn a_run_without_room_waits_and_those_of_others_do_not() {
    let mut world = World::new();
    assert_eq!(world.arrive("a", 2500), ["open a"]);
    assert_eq!(world.arrive("b", 2500), ["wait b"]);
    assert_eq!(world.apply(&sized("others", "c", 1, 2500)), ["open c"]);
    assert_eq!(world.sessions.waiting(), 1);
    let [wait] = world.waits.as_slice() else {
        panic!("{:?}", world.waits)
    };
    assert_eq!(
        (wait.uid.as_deref(), wait.resource_version.as_deref(), wait.phase),
        (Some("b"), Some("1"), Phase::Unset)
    );
    assert!(
        wait.why
            .to_string()
            .contains("in namespace games use 2500 of 4000 bytes"),
        "{}",
        wait.why
    );
    assert_eq!(world.end("a"), ["read b"]);
    assert_eq!(world.show("b", 2500), ["open b"]);
    assert_eq!(world.sessions.waiting(), 0);
}

#[test]
fn the_runs_of_a_namespace_get_room_in_the_order_of_their_arrival() {
    let mut world = World::new();
    world.arrive("a", 2500);
    assert_eq!(world.arrive("large", 3000), ["wait large"]);
    assert_eq!(
        world.arrive("small", 1000),
        ["wait small"],
        "it passes the large one"
    );
    assert_eq!(world.arrive("last", 500), ["wait last"]);
    // It has changed, and keeps its place.
    assert_eq!(world.apply(&sized("games", "small", 2, 900)), ["wait small"]);
    assert_eq!(world.end("a"), ["read large", "read small"]);
    assert_eq!(world.show("small", 900), ["open small"]);
    assert_eq!(world.show("large", 3000), ["open large"]);
    assert_eq!(world.end("large"), ["read last"]);
}

#[test]
fn the_room_of_a_read_is_that_of_no_other_run() {
    let mut world = World::new();
    world.arrive("a", 2500);
    world.arrive("b", 2500);
    assert_eq!(world.end("a"), ["read b"]);
    assert_eq!(world.arrive("c", 2500), ["wait c"]);
    assert_eq!(world.show("b", 2500), ["open b"]);
    assert!(world.show("b", 2500).is_empty(), "the answer comes twice");
    assert_eq!(world.end("b"), ["read c"]);
}

#[test]
fn a_run_that_has_grown_meanwhile_waits_on_in_the_first_place() {
    let mut world = World::new();
    world.arrive("a", 1500);
    world.arrive("a2", 1500);
    world.arrive("b", 1500);
    world.arrive("c", 500);
    assert_eq!(world.end("a2"), ["read b", "read c"]);
    assert_eq!(world.show("b", 3000), ["wait b"]);
    assert_eq!(
        world.arrive("d", 500),
        ["wait d"],
        "it passes the one that has grown"
    );
    assert_eq!(world.show("c", 500), ["open c"]);
    assert_eq!(world.end("a"), ["read b", "read d"]);
    // One that has shrunk leaves room for others.
    world.arrive("e", 2000);
    assert_eq!(world.show("b", 1000), ["open b", "read e"]);
}

#[test]
fn a_read_that_comes_late_changes_nothing() {
    let mut world = World::new();
    world.arrive("a", 2500);
    world.arrive("b", 2500);
    world.end("a");
    // The watch shows the run before the read does.
    assert_eq!(world.apply(&sized("games", "b", 3, 2400)), ["close b", "open b"]);
    for run in [
        found(sized("games", "b", 2, 2500)),
        ReadRun::Gone,
        ReadRun::Unreadable,
    ] {
        assert!(world.answer("b", run).is_empty());
    }
    assert_eq!(
        world.apply(&sized("games", "b", 4, 2400)),
        ["tell b"],
        "it is still open"
    );
    // Deleted during the read, and created again.
    world.arrive("c", 2500);
    world.end("b");
    assert_eq!(world.observe(delete("c")), ["close c"]);
    world.arrive("d", 2500);
    assert_eq!(world.apply(&sized("games", "c", 9, 2500)), ["wait c"]);
    assert!(world.answer("c", ReadRun::Gone).is_empty());
    assert_eq!(world.sessions.waiting(), 1);
    assert_eq!(world.end("d"), ["read c"]);
}

#[test]
fn a_run_that_is_gone_gives_its_room_to_the_next() {
    let other = || {
        let mut run = sized("games", "b", 5, 2500);
        run.metadata.uid = Some("other".to_owned());
        run
    };
    let over = || with_status(sized("games", "b", 5, 2500), json!({ "phase": "Failed" }));
    let leaves = || deleting(sized("games", "b", 5, 2500));
    for (run, returns) in [
        (ReadRun::Gone, false),
        (found(other()), false),
        (found(over()), false),
        (found(leaves()), false),
        (ReadRun::Unreadable, true),
    ] {
        let said = format!("{run:?}");
        let mut world = World::new();
        world.arrive("a", 2500);
        world.arrive("b", 2500);
        world.arrive("c", 2500);
        world.end("a");
        assert_eq!(world.answer("b", run), ["read c"], "{said}");
        // The watch shows an older state.
        let old = world.apply(&sized("games", "b", 2, 1000));
        let expected = if returns { vec!["open b"] } else { vec![] };
        assert_eq!(old, expected, "{said}");
        world.observe(delete("b"));
        assert_eq!(world.apply(&other()), ["wait b"], "{said}");
    }
}

#[test]
fn after_a_restart_the_list_opens_as_many_as_there_is_room_for() {
    let mut world = World::new();
    let list = |world: &mut World| {
        let mut words = world.observe(Event::Init);
        for name in ["a", "b", "c", "d", "e"] {
            let run = Arc::new(sized("games", name, 1, 1500));
            words.extend(world.observe(Event::InitApply(run)));
        }
        words.extend(world.observe(Event::InitApply(Arc::new(sized("others", "f", 1, 1500)))));
        words.extend(world.observe(Event::InitDone));
        words
    };
    assert_eq!(
        list(&mut world),
        ["open a", "open b", "wait c", "wait d", "wait e", "open f"]
    );
    assert_eq!(world.end("a"), ["read c"]);
    // The list comes again, without the others.
    world.observe(Event::Init);
    world.observe(Event::InitApply(Arc::new(sized("games", "d", 2, 1500))));
    let words = world.observe(Event::InitDone);
    assert_eq!(words, ["close b", "close c", "close e", "close f", "read d"]);
}

#[test]
fn a_run_that_says_so_is_not_told_again() {
    let mut world = World::new();
    world.arrive("a", 2500);
    let waits = |phase: &str, reason: &str| json!({ "phase": phase, "reason": reason });
    let run = |version| sized("games", "b", version, 2500);
    assert!(
        world
            .apply(&with_status(run(1), waits("Pending", "NoRoomForSpec")))
            .is_empty()
    );
    assert_eq!(
        world.apply(&with_status(run(2), waits("Running", "Measuring"))),
        ["wait b"]
    );
    assert_eq!(world.waits.last().map(|wait| wait.phase), Some(Phase::Running));
    assert!(
        world
            .apply(&with_status(run(3), waits("Running", "NoRoomForSpec")))
            .is_empty()
    );
    assert_eq!(world.sessions.waiting(), 1);
}

#[test]
fn hostile_namespaces_leave_each_other_its_reserve() {
    let mut world = World::new();
    for namespace in ["h1", "h2", "h3"] {
        assert_eq!(world.apply(&sized(namespace, namespace, 1, 4000)).len(), 1);
    }
    assert_eq!(
        world.apply(&sized("h1", "more", 1, 500)),
        ["wait more"],
        "its share is used up"
    );
    assert_eq!(world.arrive("a", 1500), ["open a"]);
    assert_eq!(world.arrive("b", 500), ["open b"]);
    assert_eq!(world.arrive("c", 1000), ["wait c"]);
    let why = world.waits.last().unwrap().why.to_string();
    assert!(why.contains("all namespaces use 14000 of 12000 bytes"), "{why}");
    assert_eq!(
        world.apply(&sized("rare", "d", 1, 3900)),
        ["open d"],
        "it holds nothing"
    );
    // Changes of open runs need no more room than they have.
    assert_eq!(world.apply(&sized("h2", "h2", 2, 4000)), ["tell h2"]);
    assert_eq!(world.apply(&sized("rare", "d", 2, 2500)), ["tell d"]);
    assert!(world.end("d").is_empty());
    assert_eq!(world.end("h2"), ["read c"]);
    assert_eq!(world.end("h1"), ["read more"]);
}

#[test]
fn room_that_all_wait_for_goes_to_the_oldest() {
    let mut world = World::new();
    for namespace in ["h1", "h2", "h3"] {
        world.apply(&sized(namespace, namespace, 1, 4000));
    }
    for namespace in ["a", "b"] {
        world.apply(&sized(namespace, &format!("{namespace}0"), 1, 2000));
    }
    for (namespace, name) in [("b", "b1"), ("a", "a1"), ("b", "b2")] {
        let waits = format!("wait {name}");
        assert_eq!(world.apply(&sized(namespace, name, 1, 500)), [waits]);
    }
    assert!(world.end("h1").is_empty(), "16000 bytes were taken");
    assert_eq!(world.end("h2"), ["read b1", "read a1", "read b2"]);
}

#[test]
fn an_edit_takes_what_it_adds() {
    let mut world = World::new();
    world.arrive("a", 1500);
    world.arrive("b", 1500);
    assert_eq!(world.apply(&sized("games", "a", 2, 2500)), ["tell a"]);
    assert_eq!(world.arrive("c", 1000), ["wait c"]);
    assert_eq!(world.apply(&sized("games", "a", 3, 1600)), ["tell a"]);
    assert_eq!(
        world.apply(&sized("games", "a", 4, 1500)),
        ["tell a", "read c"],
        "what it gives back is the next one's"
    );
    world.show("c", 1000);
    assert_eq!(
        world.apply(&sized("games", "b", 2, 1501)),
        ["close b", "wait b"],
        "there is no room"
    );
    let why = world.waits.last().unwrap().why.to_string();
    assert!(why.contains("use 2500 of 4000 bytes"), "{why}");
    assert_eq!(world.end("c"), ["read b"]);
    // An older state of the watch is none.
    assert_eq!(world.show("b", 1501), ["open b"]);
    assert!(world.apply(&sized("games", "b", 1, 300)).is_empty());
}

#[test]
fn a_run_alone_may_have_any_size() {
    let mut world = World::new();
    assert_eq!(world.arrive("a", 9000), ["open a"]);
    assert_eq!(world.apply(&sized("games", "a", 2, 20_000)), ["tell a"]);
    assert_eq!(world.arrive("b", 300), ["wait b"]);
    assert_eq!(world.apply(&sized("others", "c", 1, 300)), ["open c"]);
    assert_eq!(world.apply(&sized("games", "a", 3, 9000)), ["tell a"]);
    assert_eq!(world.end("a"), ["read b"]);
}

#[test]
fn a_waiting_run_that_is_terminated_opens_at_once() {
    let mut world = World::new();
    world.arrive("a", 3000);
    world.arrive("b", 1500);
    world.arrive("c", 1500);
    assert_eq!(
        world.apply(&terminated(sized("games", "c", 2, 1500))),
        ["open c"],
        "it waits"
    );
    // Those that end have the reserve, and wait for each other silently.
    assert!(world.apply(&terminated(sized("games", "d", 1, 600))).is_empty());
    assert!(world.apply(&terminated(sized("games", "e", 1, 400))).is_empty());
    assert_eq!(world.sessions.waiting(), 3);
    assert_eq!(world.end("c"), ["read d", "read e"]);
    let ended = terminated(sized("games", "d", 2, 600));
    assert_eq!(world.answer("d", found(ended)), ["open d"]);
    // An open one ends where it is.
    assert_eq!(world.apply(&terminated(sized("games", "a", 2, 3000))), ["tell a"]);
    assert_eq!(world.end("a"), ["read b"]);
}

#[test]
fn what_ends_is_no_way_around_the_budget() {
    let mut world = World::new();
    world.arrive("a", 3000);
    assert_eq!(world.apply(&terminated(sized("games", "b", 1, 1500))), ["open b"]);
    assert_eq!(
        world.apply(&sized("games", "b", 2, 1500)),
        ["close b", "wait b"],
        "it measures after all"
    );
    let mut kept = with_status(
        sized("games", "a", 2, 3000),
        json!({ "phase": "Failed", "message": "no", "metricResults": [{ "name": "m" }] }),
    );
    kept.spec.ttl_seconds_after_finished = Some(60);
    let changes = world.sessions.observe(Event::Apply(Arc::new(kept.clone())));
    let [Change::Update(_, shown), Change::Read(..)] = changes.as_slice() else {
        panic!("{changes:?}")
    };
    assert!(shown.spec.metrics.is_empty(), "its spec is needed no more");
    assert_eq!(shown.spec.ttl_seconds_after_finished, Some(60));
    assert_eq!(
        (&shown.metadata, &shown.status),
        (&kept.metadata, &kept.status),
        "its session may not have ended yet"
    );
    world.follow(changes);
    // A new session has nothing to do but delete it.
    let mut world = World::new();
    world.arrive("a", 3000);
    kept.metadata.name = Some("c".to_owned());
    let changes = world.sessions.observe(Event::Apply(Arc::new(kept)));
    let [Change::Open(_, _, opened)] = changes.as_slice() else {
        panic!("{changes:?}")
    };
    assert!(opened.spec.metrics.is_empty());
    let status = opened.status.as_ref().unwrap();
    assert_eq!((status.phase, status.metric_results.len()), (Phase::Failed, 0));
    world.follow(changes);
    assert_eq!(world.arrive("d", 1000), ["open d"]);
    // Somebody has taken the verdict back.
    let again = sized("games", "c", 3, 1000);
    let mut again = with_status(again, json!({ "phase": "Running" }));
    again.metadata.uid = Some("a".to_owned());
    assert_eq!(world.apply(&again), ["close c", "wait c"]);
}

#[test]
fn a_waiting_run_that_ends_waits_no_more() {
    let mut world = World::new();
    world.arrive("a", 2500);
    let run = |name: &str| sized("games", name, 1, 2500);
    let over = with_status(run("b"), json!({ "phase": "Failed" }));
    for event in [
        Event::Apply(Arc::new(over)),
        Event::Apply(Arc::new(deleting(run("b")))),
        delete("b"),
        Event::Unreadable(("games".to_owned(), "b".to_owned())),
    ] {
        let said = format!("{event:?}");
        assert_eq!(world.apply(&run("b")), ["wait b"], "{said}");
        assert_eq!(world.observe(event), ["close b"], "{said}");
        assert_eq!(world.sessions.waiting(), 0, "{said}");
    }
    // What waits behind it may fit.
    world.arrive("b", 2500);
    world.arrive("c", 1000);
    assert_eq!(world.observe(delete("b")), ["close b", "read c"]);
}

#[test]
fn a_session_that_is_opened_again_keeps_its_room() {
    let mut world = World::new();
    world.arrive("a", 2500);
    world.arrive("b", 2500);
    let (key, id) = world.open["a"].clone();
    let again = world.sessions.broken(&key, id);
    assert_eq!(world.follow(again.into_iter().collect()), ["open a"]);
    assert!(
        world.sessions.ended(key, id, End::Gone).is_empty(),
        "the old session"
    );
    assert_eq!(world.end("a"), ["read b"]);
}
