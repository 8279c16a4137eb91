//! `headcount attach`: counts a program that already runs.
//!
//! Another process does it, so that whoever kills this one does the program no harm.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use headcount_monitor::Ending;

use crate::args::Attach;
use crate::monitored::{self, Following};
use crate::progress::Sign;
use crate::started_with;
use crate::talk::say;

/// Runs the verb.
pub fn run(args: &Attach) -> Result<ExitCode> {
    let keeper = headcount_monitor::leave_to_keeper();
    match keeper.context("cannot start the process that counts")? {
        None => count(args),
        Some(Ending::Exit(status)) => Ok(ExitCode::from(status as u8)),
        Some(Ending::Signal(signal)) => bail!(
            "the process that counted was ended by signal {signal}; process {} may end, too, at \
             code that was changed",
            args.pid
        ),
    }
}

fn count(args: &Attach) -> Result<ExitCode> {
    let folder = monitored::new_folder(&args.counting)?;
    let what = format!("reading the code of process {}", args.pid);
    let sign = match args.counting.quiet {
        true => None,
        false => Sign::on_terminal(&what),
    };
    let sign = RefCell::new(sign);
    let begun = || {
        sign.take();
        if !args.counting.quiet {
            say(format!(
                "counting process {}; Ctrl-C lets go of it",
                args.pid
            ));
            tell_of_children(args);
        }
    };
    let following = Following {
        modules: &|| started_with::running(args.pid),
        children: true,
        wait: true,
        duration: args.duration,
        onlooker: None,
        until: None,
    };
    let counted = monitored::count(&args.counting, &following, &begun, |settings| {
        headcount_monitor::attach(args.pid, args.children, &folder, settings)
    });
    sign.take();
    let outcome = counted.inspect_err(|_| monitored::remove(&folder))?;
    monitored::store(&args.counting, &folder, &outcome)?;
    Ok(ExitCode::SUCCESS)
}

/// The process may leave all work to others.
fn tell_of_children(args: &Attach) {
    const MOST: usize = 8;
    let children = headcount_monitor::descendants(args.pid);
    if args.children || children.is_empty() {
        return;
    }
    let mut named: Vec<String> = children.iter().take(MOST).map(i32::to_string).collect();
    if children.len() > MOST {
        named.push("...".to_owned());
    }
    say(format!(
        "it has children that already run ({}), which are not counted; add --children to count \
         them, too",
        named.join(", ")
    ));
}
