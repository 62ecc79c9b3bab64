//! Pseudo-terminal that runs a program.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use operator_tests::{Fleet, SOON};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use test_kit::eventually;

use crate::plugin::PROGRAM;
use crate::screen::{Line, Width, screen};

/// Runs the plugin in a fleet's namespace, on a terminal of 40 lines and 100 columns.
pub(crate) fn terminal(fleet: &Fleet<'_>, words: &[&str]) -> Terminal {
    terminal_of(fleet, words, 40, 100)
}

/// Runs the plugin on a terminal of another size.
pub(crate) fn terminal_of(fleet: &Fleet<'_>, words: &[&str], lines: u16, columns: u16) -> Terminal {
    let words = [words, &["-n", &fleet.namespace]].concat();
    terminal_with(fleet.control_plane.kubeconfig_path(), &words, lines, columns)
}

/// Runs the plugin with a kubeconfig.
pub(crate) fn terminal_with(kubeconfig: &Path, words: &[&str], lines: u16, columns: u16) -> Terminal {
    let mut command = Command::new(PROGRAM);
    command
        .args(words)
        .env("KUBECONFIG", kubeconfig)
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR");
    Terminal::start(command, lines, columns)
}

/// Waits until the screen satisfies the predicate.
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

/// Terminal that runs a program.
pub(crate) struct Terminal {
    master: Arc<OwnedFd>,
    child: Child,
    /// Complete output so far.
    written: Arc<Mutex<Written>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

struct Written {
    bytes: Vec<u8>,
    widths: Vec<Width>,
    /// Time and total length of each write.
    lengths: Vec<(Instant, usize)>,
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
        // The command also holds ends of the terminal; while they are open, reading never ends.
        drop(command);
        drop(slave);
        let written = Arc::new(Mutex::new(Written {
            bytes: Vec::new(),
            widths: vec![Width {
                from: 0,
                columns: columns.into(),
            }],
            lengths: Vec::new(),
        }));
        let (into, from) = (written.clone(), master.try_clone().unwrap());
        let reader = std::thread::spawn(move || {
            let mut from = File::from(from);
            let mut buffer = [0; 4096];
            // Reading fails once the program has ended.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut into = into.lock().unwrap();
                into.bytes.extend(&buffer[..count]);
                let length = into.bytes.len();
                into.lengths.push((Instant::now(), length));
            }
        });
        Self {
            master,
            child,
            written,
            reader: Some(reader),
        }
    }

    /// Resizes the terminal.
    pub(crate) fn resize(&self, lines: u16, columns: u16) {
        tcsetwinsize(&self.master, winsize(lines, columns)).unwrap();
        let mut written = self.written.lock().unwrap();
        let from = written.bytes.len();
        written.widths.push(Width {
            from,
            columns: columns.into(),
        });
    }

    /// Returns the complete output so far.
    pub(crate) fn transcript(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap().bytes).into_owned()
    }

    /// Returns the current lines of the screen.
    pub(crate) fn shows(&self) -> Vec<String> {
        let widths = self.written.lock().unwrap().widths.clone();
        let lines = screen(&self.transcript(), &widths);
        lines.iter().map(Line::text).collect()
    }

    /// Returns the lines of the screen that the plugin drew last, before it restored the terminal.
    pub(crate) fn last_screen(&self) -> Vec<String> {
        let transcript = self.transcript();
        let (drawn, _) = transcript.split_once("\x1b[?7h").unwrap();
        let widths = self.written.lock().unwrap().widths.clone();
        screen(drawn, &widths).iter().map(Line::text).collect()
    }

    /// Returns the screen after each write.
    pub(crate) fn recording(&self) -> Vec<(Instant, Vec<Line>)> {
        let written = self.written.lock().unwrap();
        let until = |length: usize| String::from_utf8_lossy(&written.bytes[..length]).into_owned();
        let shown = written
            .lengths
            .iter()
            .map(|(moment, length)| (*moment, screen(&until(*length), &written.widths)));
        shown.collect()
    }

    pub(crate) fn types(&self, line: &str) {
        let typed = format!("{line}\n");
        assert_eq!(rustix::io::write(&self.master, typed.as_bytes()), Ok(typed.len()));
    }

    /// Presses Ctrl-C and waits for the program to end.
    pub(crate) fn interrupt(&mut self) -> i32 {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.ended()
    }

    /// Waits for the program to end.
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
