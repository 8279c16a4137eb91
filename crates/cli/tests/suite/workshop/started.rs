//! Commands that run while a test goes on.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::{HEADCOUNT, Said, Workshop};

/// A command that has said `started`. Gone when dropped.
pub struct Started {
    pub child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Started {
    pub fn new(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut started = Self { child, stdout };
        assert_eq!(started.line(), "started");
        started
    }

    pub fn counting(shop: &Workshop, words: &[&str]) -> Self {
        let run = ["run", "-q", "--modules", "main"];
        Self::new(shop.command(HEADCOUNT).args(run).args(words))
    }

    /// The next line it writes.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn signal(&self, name: &str) {
        send(name, &self.child.id().to_string());
    }

    /// The process that headcount counts.
    pub fn counted(&self) -> String {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        children.unwrap().trim().to_owned()
    }

    pub fn tell(&mut self, what: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(what.as_bytes()).unwrap();
    }

    /// Waits until everybody who writes to its standard output has gone; then what it said.
    pub fn rest(mut self) -> Said {
        let mut stdout = String::new();
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        let status = self.child.wait().unwrap().code();
        Said {
            stdout,
            stderr,
            status,
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn send(signal: &str, pid: &str) {
    let status = Command::new("kill").args(["-s", signal, pid]).status();
    assert!(status.unwrap().success());
}

/// A process has been killed. It takes a moment to go even when its files are closed.
pub fn must_be_gone(pid: &str) {
    let state = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_gone = |state: String| state.is_empty() || state.contains(") Z ");
    let mut patience = 0..500;
    while !is_gone(state()) {
        assert!(patience.next().is_some(), "{}", state());
        sleep(Duration::from_millis(10));
    }
}
