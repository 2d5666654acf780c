//! Whatever fails, and whenever: nothing acknowledged is lost, nothing refused is there, and the store goes on.

use rutter_core::time::Timestamp;
use rutter_fault::account::Account;
use rutter_fault::check::check;
use rutter_fault::shapes::Shape;
use rutter_fault::workload::{SHAPES, carry_out};
use rutter_fault::{Disk, VFS};
use rutter_store::{Options, Store};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

#[test]
fn a_healthy_disk_keeps_everything() {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let mut account = Account::default();
    let t = std::time::Instant::now();
    let store = open(directory.path()).unwrap();
    println!("{} operations to open {:?}", disk.operations(), t.elapsed());
    carry_out(&store, "first", Timestamp(1_000), &SHAPES, &mut |note| account.take(note)).unwrap();
    println!("{} operations, {} acknowledged {:?}", disk.operations(), account.acknowledged(), t.elapsed());
    check(&account, &store, directory.path()).unwrap();
    println!("{:?}", t.elapsed());
    drop(store);
    println!("{} operations {:?}", disk.operations(), t.elapsed());
    let store = open(directory.path()).unwrap();
    carry_out(&store, "second", Timestamp(1_000_000), &[Shape::Chain], &mut |note| account.take(note)).unwrap();
    let found = check(&account, &store, directory.path()).unwrap();
    println!("{} operations, {} acknowledged {:?} {found:?}", disk.operations(), account.acknowledged(), t.elapsed());
}

fn open(directory: &Path) -> Result<Store, rutter_core::port::Error> {
    let mut options = Options::new(directory, Arc::new(|| Timestamp(1_000)));
    (options.free_bytes_min, options.reserve_bytes) = (0, 0);
    (options.vfs, options.readers) = (Some(VFS), 1);
    Store::open(options)
}

fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    tempfile::Builder::new().tempdir_in(memory).or_else(|_| tempfile::tempdir()).unwrap()
}
