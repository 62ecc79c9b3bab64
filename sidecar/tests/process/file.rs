//! Everything that can become of the file between two looks.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::thread::{sleep, spawn};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, Mode, mkfifoat};

use crate::wait::{at_once, eventually};
use crate::world::{Answer, Source, World};

/// Age of the answer, in seconds.
#[track_caller]
fn age(world: &World) -> f64 {
    match world.ask() {
        Answer::Known { age, .. } => age,
        Answer::Unknown(reason) => panic!("{reason}"),
    }
}

/// Removes whatever is at the path.
fn remove(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        fs::remove_dir(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

/// Name of a change, and the change.
type Change<'a> = (&'a str, &'a (dyn Fn(&Path) + Sync));

#[test]
fn every_change_of_the_file_is_a_new_report() {
    let set = |path: &Path, time: SystemTime| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    };
    let hour = Duration::from_hours(1);
    let changes: [Change; 7] = [
        ("the same bytes again", &|path| fs::write(path, "3").unwrap()),
        ("in the future", &|path| set(path, SystemTime::now() + hour)),
        ("in the past", &|path| set(path, SystemTime::now() - hour)),
        ("at the epoch", &|path| set(path, SystemTime::UNIX_EPOCH)),
        ("before the epoch", &|path| {
            set(path, SystemTime::UNIX_EPOCH - hour);
        }),
        ("now", &|path| set(path, SystemTime::now())),
        ("another length", &|path| fs::write(path, "3\n").unwrap()),
    ];
    at_once(changes, |(name, change)| {
        let mut world = World::start(Source::File);
        world.know(3);
        eventually(|| if age(&world) > 0.8 { Ok(()) } else { Err("young") });
        change(&world.file());
        world.record(Some(3));
        let age = age(&world);
        assert!(age < 0.8, "{name}: {age}");
    });
}

#[test]
fn other_bytes_with_the_old_time_and_length_are_a_new_report() {
    let mut world = World::start(Source::File);
    world.know(3);
    let file = File::options().write(true).open(world.file()).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    for number in [0, 5] {
        (&file).write_all(number.to_string().as_bytes()).unwrap();
        file.set_modified(modified).unwrap();
        std::io::Seek::rewind(&mut (&file)).unwrap();
        world.record(Some(number));
        assert_eq!(world.ask().number(), Some(number));
    }
    assert_eq!(
        file.metadata().unwrap().ino(),
        fs::metadata(world.file()).unwrap().ino()
    );
}

#[test]
fn reading_the_file_is_no_report() {
    let mut world = World::start(Source::File);
    world.know(3);
    eventually(|| {
        fs::read(world.file()).unwrap();
        if age(&world) > 1.5 { Ok(()) } else { Err("young") }
    });
    // Neither are changes beside it.
    fs::write(world.file().with_extension("new"), "0").unwrap();
    assert!(age(&world) > 1.5);
}

#[test]
fn a_file_that_is_none_voids_and_a_good_one_counts_again() {
    let missing = |path: &Path| remove(path);
    let truncated = |path: &Path| drop(File::create(path).unwrap());
    let directory = |path: &Path| {
        remove(path);
        fs::create_dir(path).unwrap();
    };
    let fifo = |path: &Path| {
        remove(path);
        mkfifoat(CWD, path, Mode::from_raw_mode(0o666)).unwrap();
    };
    let link = |target: &'static str| {
        move |path: &Path| {
            remove(path);
            symlink(target, path).unwrap();
        }
    };
    let (zero, null, dangling, itself, text) = (
        link("/dev/zero"),
        link("/dev/null"),
        link("/nowhere/at/all"),
        link("players"),
        link("/proc/self/status"),
    );
    let large = |path: &Path| fs::write(path, "0".to_owned() + &" ".repeat(10 << 20)).unwrap();
    let endless = |path: &Path| {
        fs::write(path, "0").unwrap();
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_len(1 << 40)
            .unwrap();
    };
    let socket = |path: &Path| {
        remove(path);
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    };
    let changes: [Change; 12] = [
        ("missing", &missing),
        ("truncated", &truncated),
        ("a directory", &directory),
        ("a FIFO", &fifo),
        ("endless zeros", &zero),
        ("a device without bytes", &null),
        ("a dangling link", &dangling),
        ("a link to itself", &itself),
        ("another text", &text),
        ("10 MiB", &large),
        ("1 TiB of zeros", &endless),
        ("a socket", &socket),
    ];
    let mut world = World::start(Source::File);
    for (name, change) in changes {
        world.know(0);
        change(&world.file());
        world.record(None);
        for _ in 0..3 {
            assert_eq!(world.ask().reason(), "Unreadable", "{name}");
        }
        if fs::metadata(world.file()).is_ok_and(|metadata| metadata.is_dir()) {
            remove(&world.file());
        }
        // Where something hid the file, the first state that can be read may be old.
        world.know(7);
    }
    let resident = world.sidecar.resident_kib();
    assert!(resident < 24 * 1024, "{resident} KiB");
}

#[test]
fn a_fifo_with_a_writer_neither_counts_nor_hangs() {
    let mut world = World::start(Source::File);
    world.know(3);
    remove(&world.file());
    mkfifoat(CWD, world.file(), Mode::from_raw_mode(0o666)).unwrap();
    // Opened for both, so that it blocks nobody.
    let mut fifo = File::options().read(true).write(true).open(world.file()).unwrap();
    fifo.write_all(b"0").unwrap();
    world.record(None);
    assert_eq!(world.ask().reason(), "Unreadable");
    world.stays_unknown();
    drop(fifo);
    assert_eq!(world.ask().reason(), "Unreadable");
    world.know(1);
}

#[test]
fn a_file_without_permission_is_unreadable() {
    if rustix::process::geteuid().is_root() {
        // Permissions do not stop root.
        return;
    }
    let mut world = World::start(Source::File);
    world.know(0);
    fs::set_permissions(world.file(), Permissions::from_mode(0o000)).unwrap();
    world.record(None);
    assert_eq!(world.ask().reason(), "Unreadable");
    world.know(1);
}

#[test]
fn a_directory_that_goes_takes_the_file_with_it() {
    let mut world = World::start(Source::File);
    world.know(0);
    let directory = world.file().parent().unwrap().to_owned();
    let away = directory.with_extension("away");
    fs::rename(&directory, &away).unwrap();
    world.record(None);
    assert_eq!(world.ask().reason(), "Unreadable");
    fs::rename(&away, &directory).unwrap();
    world.know(2);
}

#[test]
fn a_torn_write_is_no_number_until_it_is_whole() {
    let mut world = World::start(Source::File);
    world.know(3);
    for _ in 0..20 {
        let mut file = File::create(world.file()).unwrap();
        world.record(None);
        assert_eq!(world.ask().reason(), "Unreadable");
        file.write_all(b"{\"players\":").unwrap();
        assert_eq!(world.ask().reason(), "Unreadable");
        file.write_all(b"5}").unwrap();
        world.record(Some(5));
        assert_eq!(world.ask().number(), Some(5));
    }
}

#[test]
fn replacing_the_file_all_the_time_never_shows_anything_else() {
    let mut world = World::start(Source::File);
    world.know(11);
    let path = world.file();
    let writer = spawn(move || {
        let other = path.with_extension("other");
        for round in 0..5_000 {
            let text = if round % 2 == 0 { "11" } else { r#"{"players":11}"# };
            fs::write(&other, text).unwrap();
            fs::rename(&other, &path).unwrap();
        }
    });
    while !writer.is_finished() {
        assert_eq!(Answer::of(&world.sidecar.get("/players")).number(), Some(11));
        sleep(Duration::from_millis(1));
    }
    writer.join().unwrap();
    world.know(2);
}

#[test]
fn the_file_from_before_the_start_is_no_report() {
    let mut world = World::start(Source::File);
    world.know(0);
    for _ in 0..3 {
        world.restart_sidecar();
        assert_eq!(world.ask().reason(), "NoReport");
        world.stays_unknown();
    }
    // The same bytes, written again.
    world.know(0);
}

#[test]
fn the_file_of_the_game_server_before_is_no_report() {
    let mut world = World::start(Source::File);
    world.know(0);
    for _ in 0..3 {
        world.kill_game();
        // While nobody holds the port, and after.
        world.stays_unknown();
        world.start_game();
        world.stays_unknown();
    }
    world.know(0);
}
