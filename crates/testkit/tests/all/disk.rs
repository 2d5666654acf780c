//! The store on a failing disk, and in dying processes.

mod faults;
mod kills;
mod power;
mod surfaces;
mod trouble;
mod vfs;
