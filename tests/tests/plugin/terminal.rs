//! A pseudo-terminal with a program on it, and the little of a terminal that is needed to read what it shows.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use operator_tests::{Fleet, SOON};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use test_kit::eventually;

use crate::plugin::PROGRAM;

/// The plugin in a fleet's namespace, on a terminal of 40 lines and 100 columns.
pub(crate) fn terminal(fleet: &Fleet<'_>, words: &[&str]) -> Terminal {
    let mut command = Command::new(PROGRAM);
    command
        .args(words)
        .args(["-n", &fleet.namespace])
        .env("KUBECONFIG", fleet.control_plane.kubeconfig_path())
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    Terminal::start(command, 40, 100)
}

/// Waits until a terminal shows what is wanted.
pub(crate) async fn until(terminal: &Terminal, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    eventually(SOON, || async {
        let lines = terminal.shows();
        let shown = lines.join("\n");
        if wanted(&shown) {
            Ok(lines)
        } else {
            Err(format!("{shown}\n{:?}", terminal.transcript()))
        }
    })
    .await
}

/// A terminal with a program on it.
pub(crate) struct Terminal {
    master: Arc<OwnedFd>,
    child: Child,
    /// Everything that was written to it.
    written: Arc<Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Terminal {
    /// Starts a program on a terminal of this size.
    fn start(mut command: Command, lines: u16, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let master = Arc::new(master);
        let size = winsize(lines, columns);
        tcsetwinsize(&master, size).unwrap();
        let child = command
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .unwrap();
        // The command holds ends of the terminal, too: with them open its end would never be read.
        drop(command);
        drop(slave);
        let written = Arc::new(Mutex::new(Vec::new()));
        let (into, from) = (written.clone(), master.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut from = File::from(from);
            let mut buffer = [0; 4096];
            // When the program has ended, reading fails.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                into.lock().unwrap().extend(&buffer[..count]);
            }
        });
        Self {
            master,
            child,
            written,
            reader: Some(reader),
        }
    }

    /// Gives it another size.
    pub(crate) fn resize(&self, lines: u16, columns: u16) {
        tcsetwinsize(&self.master, winsize(lines, columns)).unwrap();
    }

    /// Everything that was written so far.
    pub(crate) fn transcript(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// The lines that it shows now.
    pub(crate) fn shows(&self) -> Vec<String> {
        shown(&self.transcript())
    }

    /// Types a line.
    pub(crate) fn types(&self, line: &str) {
        let typed = format!("{line}\n");
        assert_eq!(rustix::io::write(&self.master, typed.as_bytes()), Ok(typed.len()));
    }

    /// Presses Ctrl-C, and waits for the program's end.
    pub(crate) fn interrupt(&mut self) -> i32 {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.ended()
    }

    /// Waits for the program's end.
    pub(crate) fn ended(&mut self) -> i32 {
        let code = self.child.wait().unwrap().code().unwrap();
        self.reader.take().unwrap().join().unwrap();
        code
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn winsize(lines: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: lines,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// What stands on the screen after all of this was written. Of what a terminal obeys, only what the plugin uses is known:
/// anything else fails the test.
fn shown(text: &str) -> Vec<String> {
    let mut lines: Vec<Vec<char>> = vec![Vec::new()];
    let (mut line, mut column) = (0, 0);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => {
                assert_eq!(letters.next(), Some('['), "{text:?}");
                let mut sequence = String::new();
                let last = loop {
                    match letters.next() {
                        Some(last @ ('A'..='Z' | 'a'..='z')) => break last,
                        Some(other) => sequence.push(other),
                        // The rest has not been read yet.
                        None => return text_of(&lines),
                    }
                };
                match (sequence.as_str(), last) {
                    ("?1049", 'h') | ("2", 'J') => lines = vec![Vec::new()],
                    ("?1049", 'l') => {
                        lines = vec![Vec::new()];
                        (line, column) = (0, 0);
                    }
                    (_, 'm') | ("?25" | "?7", 'l' | 'h') => {}
                    (place, 'H') => {
                        let (row, _) = place.split_once(';').unwrap();
                        (line, column) = (row.parse::<usize>().unwrap() - 1, 0);
                    }
                    ("", 'K') => lines.get_mut(line).map_or((), |line| line.truncate(column)),
                    other => panic!("{other:?}"),
                }
            }
            '\n' => line += 1,
            '\r' => column = 0,
            letter => {
                lines.resize(lines.len().max(line + 1), Vec::new());
                let line = &mut lines[line];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
    }
    text_of(&lines)
}

fn text_of(lines: &[Vec<char>]) -> Vec<String> {
    lines
        .iter()
        .map(|line| line.iter().collect::<String>().trim_end().to_owned())
        .collect()
}
