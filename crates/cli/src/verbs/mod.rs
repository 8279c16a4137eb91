pub mod cc;
pub mod collect;
