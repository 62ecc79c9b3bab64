use proptest::prelude::*;

use super::*;

const FRESH_FOR: Duration = Duration::from_secs(10);

/// Look at a time, with the sockets of the game server.
fn mark(millis: u64, inodes: &[u64]) -> Mark {
    Mark {
        at: Moment::at(millis),
        game: GameSockets::Watched(inodes.iter().copied().collect()),
    }
}

fn board() -> Board {
    Board::new(FRESH_FOR)
}

/// Board with a report of 0 that was sent after 1 s by the game with socket 1.
fn empty_server() -> Board {
    let mut board = board();
    let outcome = board.report(Ok(0), Some(&mark(1_000, &[1])), &mark(1_250, &[1]));
    assert_eq!(outcome, Outcome::Counted);
    board
}

fn reason(board: &Board, now: &Mark) -> &'static str {
    board.known(now).map_or_else(|unknown| unknown.reason(), |_| "")
}

#[test]
fn nothing_is_known_at_the_start() {
    assert_eq!(reason(&board(), &mark(0, &[1])), "NoReport");
    assert_eq!(reason(&board(), &mark(0, &[])), "GameGone");
}

#[test]
fn a_report_counts_up_to_its_age() {
    let board = empty_server();
    let known = board.known(&mark(11_000, &[1])).unwrap();
    assert_eq!((known.players, known.age), (0, FRESH_FOR));
    assert_eq!(reason(&board, &mark(11_001, &[1])), "Stale");
}

#[test]
fn a_report_without_an_earlier_look_may_be_of_any_age() {
    let mut board = empty_server();
    let outcome = board.report(Ok(0), None, &mark(1_250, &[1]));
    assert_eq!(outcome, Outcome::NotCounted);
    assert_eq!(reason(&board, &mark(1_250, &[1])), "NoReport");
}

/// The process was stopped: the report waited in the socket for an unknown time.
#[test]
fn a_report_after_a_gap_is_as_old_as_the_gap() {
    let mut board = empty_server();
    let outcome = board.report(Ok(0), Some(&mark(2_000, &[1])), &mark(3_600_000, &[1]));
    assert_eq!(outcome, Outcome::NotCounted);
    assert_eq!(reason(&board, &mark(3_600_000, &[1])), "Stale");
}

#[test]
fn every_unreadable_report_voids_the_last_one() {
    let mut board = empty_server();
    let (before, now) = (mark(1_250, &[1]), mark(1_500, &[1]));
    let outcome = board.report(Err(Unreadable::Empty), Some(&before), &now);
    assert_eq!(outcome, Outcome::Unreadable);
    assert_eq!(reason(&board, &now), "Unreadable");
    assert_eq!(board.report(Ok(0), Some(&before), &now), Outcome::Counted);
    assert_eq!(reason(&board, &now), "");
}

#[test]
fn a_restart_voids_at_once_and_for_good() {
    for other in [&[][..], &[2], &[1, 2], &[2, 3]] {
        let mut board = empty_server();
        let expected = if other.is_empty() {
            "GameGone"
        } else {
            "GameRestarted"
        };
        assert_eq!(reason(&board, &mark(1_300, other)), expected);
        board.look(&mark(1_500, other));
        // Inodes can repeat in the end; a report that was void once stays void.
        assert_eq!(reason(&board, &mark(1_750, &[1])), "GameRestarted");
    }
}

/// The report may be the last one of the server that has ended since.
#[test]
fn a_report_between_two_servers_does_not_count() {
    for (before, now) in [(&[1][..], &[2][..]), (&[], &[2]), (&[1], &[]), (&[], &[])] {
        let mut board = empty_server();
        let (before, now) = (mark(1_250, before), mark(1_500, now));
        assert_eq!(board.report(Ok(0), Some(&before), &now), Outcome::NotCounted);
        assert!(board.known(&now).is_err());
    }
}

#[test]
fn without_a_port_only_age_matters() {
    let unwatched = |millis| Mark {
        at: Moment::at(millis),
        game: GameSockets::Unwatched,
    };
    let mut board = board();
    assert_eq!(
        board.report(Ok(3), Some(&unwatched(0)), &unwatched(250)),
        Outcome::Counted
    );
    assert_eq!(board.known(&unwatched(10_000)).unwrap().players, 3);
    assert_eq!(reason(&board, &unwatched(10_001)), "Stale");
}

#[test]
fn all_reasons_are_listed() {
    let all = [
        Unknown::NoReport,
        Unknown::Stale {
            age: FRESH_FOR,
            fresh_for: FRESH_FOR,
        },
        Unknown::GameGone,
        Unknown::GameRestarted,
        Unknown::Unreadable(Unreadable::Empty),
    ];
    assert_eq!(all.map(|unknown| unknown.reason()), REASONS);
}

/// Event in the life of a pod.
#[derive(Debug, Clone)]
enum Event {
    /// The game server sends a report; `None` is unreadable.
    Send(Option<u32>),
    /// The game server ends.
    End,
    /// Another game server starts.
    Start,
    /// Time passes, while the sidecar looks regularly or is stopped.
    Pass { millis: u64, stopped: bool },
    /// A hook asks.
    Ask,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => prop::option::weighted(0.9, 0u32..3).prop_map(Event::Send),
        1 => Just(Event::End),
        2 => Just(Event::Start),
        3 => (0u64..1_000, any::<bool>()).prop_map(|(millis, stopped)| Event::Pass { millis, stopped }),
        1 => (0u64..30_000, any::<bool>()).prop_map(|(millis, stopped)| Event::Pass { millis, stopped }),
        4 => Just(Event::Ask),
    ]
}

/// Report that was sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: u64,
    by: u64,
    report: Option<u32>,
}

/// World in which reports wait in a socket until the sidecar looks.
struct World {
    now: u64,
    /// Socket of the game server that runs, if any.
    game: Option<u64>,
    games: u64,
    waiting: Vec<Sent>,
    /// Last report ever sent.
    last: Option<Sent>,
    board: Board,
    looked: Option<Mark>,
}

impl World {
    fn look(&mut self) -> Mark {
        let now = mark(self.now, self.game.as_slice());
        self.board.look(&now);
        for sent in self.waiting.drain(..) {
            let report = sent.report.ok_or(Unreadable::Empty);
            self.board.report(report, self.looked.as_ref(), &now);
        }
        self.looked = Some(now.clone());
        now
    }

    fn play(&mut self, event: &Event) {
        match event {
            Event::Send(report) => {
                let Some(by) = self.game else { return };
                let (at, report) = (self.now, *report);
                let sent = Sent { at, by, report };
                self.waiting.push(sent);
                self.last = Some(sent);
            }
            Event::End => self.game = None,
            Event::Start => {
                self.games += 1;
                self.game = Some(self.games);
            }
            Event::Pass { millis, stopped } => {
                let end = self.now + millis;
                while !stopped && self.now + 250 < end {
                    self.now += 250;
                    self.look();
                }
                self.now = end;
            }
            Event::Ask => {
                let now = self.look();
                if let Ok(known) = self.board.known(&now) {
                    let sent = self.last.unwrap();
                    assert_eq!(Some(known.players), sent.report, "not the last report");
                    assert_eq!(Some(sent.by), self.game, "not from the game server that runs");
                    let age = Duration::from_millis(self.now - sent.at);
                    assert!(age <= known.age && known.age <= FRESH_FOR, "{age:?} {known:?}");
                }
            }
        }
    }
}

proptest! {
    /// Judges each answer by what was sent in fact.
    #[test]
    fn every_number_was_reported_lately_by_the_server_that_runs(events in prop::collection::vec(event(), 1..80)) {
        let mut world = World {
            now: 0, game: None, games: 0, waiting: Vec::new(), last: None, board: board(), looked: None,
        };
        for event in &events {
            world.play(event);
        }
    }

    /// Checks that caution does not become silence.
    #[test]
    fn a_server_that_reports_regularly_is_known(pause in 100u64..9_000, players in 0u32..3) {
        let mut world = World {
            now: 0, game: Some(1), games: 1, waiting: Vec::new(), last: None, board: board(), looked: None,
        };
        world.play(&Event::Pass { millis: 600, stopped: false });
        for _ in 0..20 {
            world.play(&Event::Send(Some(players)));
            world.play(&Event::Pass { millis: pause, stopped: false });
            let now = world.look();
            prop_assert_eq!(world.board.known(&now).map(|known| known.players), Ok(players));
        }
    }
}
