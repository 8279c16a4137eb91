//! Show what a program executes, again and again.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use headcount_monitor::live::{Live, NotAnswered};
use headcount_profile::RunSelection;
use headcount_report::rates::{Order, Rates, Reading};
use headcount_report::{self as report, Request, Unit, thousands};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::{FilterArgument, LiveTable, LiveUnit, Watch};
use crate::live_table::{Screen, Wish};
use crate::monitored;
use crate::talk::say;

/// Runs the verb.
pub fn run(args: &Watch) -> Result<ExitCode> {
    let live = Live::find(args.pid)?;
    match args.table.json {
        true => write_lines(&live, &args.table)?,
        false => {
            let watching = Watching {
                pid: args.pid,
                passes_interrupts: false,
            };
            let last = watching.show(live, &args.table, OwnScreen::enter()?)?;
            say_last(args.pid, last.as_ref());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `headcount run --watch`: another headcount runs the program, and we watch it.
pub fn run_watched() -> Result<ExitCode> {
    if io::stdout().is_terminal() || io::stderr().is_terminal() {
        bail!(
            "the program's output would be mixed with the table; send it elsewhere, such as \
             `>log 2>&1`, or use `headcount watch PID` in another terminal"
        );
    }
    let table = LiveTable {
        by: LiveUnit::Function,
        every: Duration::from_secs(1),
        filter: FilterArgument::default(),
        json: false,
        top: 0,
        times: None,
    };
    let terminal = OwnScreen::enter()?;
    let mut child = start_unwatched()?;
    let pid = child.id() as i32;
    if let Some(live) = find_soon(&mut child, pid)? {
        let watching = Watching {
            pid,
            passes_interrupts: true,
        };
        watching.show(live, &table, terminal)?;
    }
    let status = child.wait().context("waiting for the program")?;
    Ok(ExitCode::from(status_of(status)))
}

/// The same command without `--watch`.
fn start_unwatched() -> Result<Child> {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    let is_ours = words.iter().position(|it| it == "--watch");
    words.remove(is_ours.context("--watch must be spelled out")?);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words);
    // The terminal's keys are for the table.
    if io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    command.spawn().context("headcount cannot start itself")
}

/// Who counts in a moment; `None` if it has ended by then.
fn find_soon(child: &mut Child, pid: i32) -> Result<Option<Live>> {
    loop {
        match Live::find(pid) {
            Ok(live) => return Ok(Some(live)),
            Err(NotAnswered::NotCounted(_)) => {}
            Err(error) => return Err(error.into()),
        }
        if child.try_wait()?.is_some() {
            return Ok(None);
        }
        sleep(Duration::from_millis(20));
    }
}

fn status_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let killed = status.signal().map(|it| 128 + it);
    let status = status.code().or(killed).unwrap_or(125);
    u8::try_from(status).unwrap_or(u8::MAX)
}

fn say_last(pid: i32, last: Option<&Reading>) {
    if let Some(last) = last {
        let executed = thousands(last.executed);
        say(format!(
            "process {pid} has ended; when last seen it had executed {executed} instructions"
        ));
    }
}

/// What a program has executed so far; `None` if it has ended.
fn read(live: &Live, by: LiveUnit, filter: &FilterArgument) -> Result<Option<Reading>> {
    let (profile, moment) = match monitored::so_far(live) {
        Ok(so_far) => so_far,
        Err(error) => {
            return match error.downcast_ref::<NotAnswered>() {
                Some(NotAnswered::Ended(_)) => Ok(None),
                _ => Err(error),
            };
        }
    };
    let loaded = super::load_from(&profile, &RunSelection::All)?;
    let by = match by {
        LiveUnit::Function => Unit::Function,
        LiveUnit::Line => Unit::Line,
    };
    let request = Request {
        only: super::only(filter.get(), &[&loaded], true)?,
        transfers: &headcount_x86::transfers,
        ..Request::all(by, &super::decode)
    };
    let report = report::Report::new(&loaded.counted, Vec::new(), Vec::new(), &request)?;
    Ok(Some(Reading::new(&report, moment.at)))
}

/// One JSON object a line, until the program ends.
fn write_lines(live: &Live, table: &LiveTable) -> Result<()> {
    let mut before = None;
    let mut left = table.times.unwrap_or(u64::MAX);
    while left > 0 {
        let begin = Instant::now();
        let Some(now) = read(live, table.by, &table.filter)? else {
            break;
        };
        let mut rates = now.since(before.as_ref());
        rates.sort(Order::Rate);
        let mut stdout = io::stdout().lock();
        stdout.write_all(rates.json(now.at, table.top).as_bytes())?;
        stdout.flush()?;
        before = Some(now);
        left -= 1;
        if left > 0 {
            sleep(table.every.saturating_sub(begin.elapsed()));
        }
    }
    Ok(())
}

/// How soon a key is answered.
const KEYS: Duration = Duration::from_millis(50);

/// Whose table is shown.
struct Watching {
    pid: i32,
    /// Is Ctrl-C for the program?
    passes_interrupts: bool,
}

impl Watching {
    /// Shows the table until the user leaves, or the program ends: then what was seen last.
    fn show(
        &self,
        live: Live,
        table: &LiveTable,
        mut terminal: OwnScreen,
    ) -> Result<Option<Reading>> {
        let is_asked_to_end = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&is_asked_to_end))?;
        }
        let mut screen = Screen::new(format!("process {}", self.pid), table.by);
        let live = Arc::new(live);
        let (ask, answers) = reader(Arc::clone(&live), table.filter.clone());
        let mut before: Option<Reading> = None;
        let mut rates = Rates::default();
        let mut is_reading = false;
        let mut next = Instant::now();
        while !is_asked_to_end.load(Ordering::Acquire) {
            if Instant::now() >= next && live.is_over() {
                return Ok(before);
            }
            if Instant::now() >= next && !is_reading && !screen.is_paused {
                is_reading = ask.send(screen.by).is_ok();
            }
            if let Ok((by, reading)) = answers.try_recv() {
                is_reading = false;
                let Some(now) = reading? else {
                    return Ok(before);
                };
                next = Instant::now() + table.every;
                if by == screen.by {
                    rates = now.since(before.as_ref());
                    before = Some(now);
                }
            }
            terminal.0.draw(|frame| screen.draw(frame, &rates))?;
            match next_wish(&mut screen, KEYS)? {
                Wish::Nothing => {}
                Wish::Reload => {
                    (before, rates) = (None, Rates::default());
                    next = Instant::now();
                }
                Wish::Interrupt if self.passes_interrupts => {
                    headcount_monitor::kill(self.pid, SIGINT);
                }
                Wish::Leave | Wish::Interrupt => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// What was asked for, and what came of it.
type Answered = (LiveUnit, Result<Option<Reading>>);

/// Reads counts when asked to, in a thread of its own: that may take longer than anybody waits for a
/// key, or to leave.
fn reader(live: Arc<Live>, filter: FilterArgument) -> (Sender<LiveUnit>, Receiver<Answered>) {
    let (ask, asked) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    std::thread::spawn(move || {
        for by in asked {
            if answer.send((by, read(&live, by, &filter))).is_err() {
                return;
            }
        }
    });
    (ask, answers)
}

/// Waits for a key.
fn next_wish(screen: &mut Screen, within: Duration) -> Result<Wish> {
    let is_there = match event::poll(within) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => false,
        other => other?,
    };
    if !is_there {
        return Ok(Wish::Nothing);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind == KeyEventKind::Press => screen.pressed(key),
        _ => Wish::Nothing,
    })
}

/// A terminal that looks as it did before when this is dropped.
struct OwnScreen(Terminal<CrosstermBackend<File>>);

impl OwnScreen {
    fn enter() -> Result<Self> {
        let no_terminal = "there is no terminal to show a table on; --json writes lines";
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).open("/dev/tty");
        let mut tty = opened.context(no_terminal)?;
        enable_raw_mode().context(no_terminal)?;
        let entered = execute!(tty, EnterAlternateScreen);
        let terminal = entered.and_then(|()| Terminal::new(CrosstermBackend::new(tty)));
        terminal.map(Self).map_err(|error| {
            let _ = disable_raw_mode();
            error.into()
        })
    }
}

impl Drop for OwnScreen {
    fn drop(&mut self) {
        let _ = execute!(self.0.backend_mut(), LeaveAlternateScreen);
        let _ = self.0.show_cursor();
        let _ = disable_raw_mode();
    }
}
