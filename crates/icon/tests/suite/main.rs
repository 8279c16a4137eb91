//! Tests against Debian's Icon.

mod damaged;
mod grammar;
mod library;
mod linked;
mod oracle;
