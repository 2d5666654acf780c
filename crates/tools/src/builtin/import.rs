//! Imports the log files in which earlier versions stored the data of the built-in tools.
//!
//! A log is renamed once everything in it is in the database, and no tool is called before that. After a crash
//! in between, the import starts again and stores the same notes under the same ids.

use super::OpenError;
use super::memory::MemoryRecord;
use super::notes::NoteStore;
use super::notify::Notification;
use super::timer::{TimerRecord, cancel_answer, reply_id, set_answer, timer_id};
use rutter_core::id::TenantId;
use rutter_core::port::register::{RegisterChange, RegisterKind};
use rutter_core::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

const MEMORIES: &str = "memories.log";
/// The older one first.
const NOTIFICATIONS: [&str; 2] = ["notifications.1.log", "notifications.log"];
const TIMERS: &str = "timers.log";

/// The last one of each id counts.
type NotesById = BTreeMap<(TenantId, RegisterKind, String), Value>;

/// Imports the logs in a folder, if there are any.
pub(super) async fn import(folder: &Path, notes: &NoteStore, now: Timestamp) -> Result<(), OpenError> {
    import_log(&folder.join(MEMORIES), notes, now, memory_notes).await?;
    for name in NOTIFICATIONS {
        import_log(&folder.join(name), notes, now, notification_notes).await?;
    }
    // After the notifications, which show what has fired.
    import_log(&folder.join(TIMERS), notes, now, timer_notes).await
}

async fn import_log<T: DeserializeOwned>(
    path: &Path,
    notes: &NoteStore,
    now: Timestamp,
    notes_of: fn(Vec<T>) -> NotesById,
) -> Result<(), OpenError> {
    if !path.exists() {
        return Ok(());
    }
    let mut by_tenant: BTreeMap<TenantId, Vec<RegisterChange>> = BTreeMap::new();
    for ((tenant, kind, id), value) in notes_of(read_lines(path)?) {
        by_tenant.entry(tenant).or_default().push(RegisterChange::put(kind, &id, value));
    }
    let count: usize = by_tenant.values().map(Vec::len).sum();
    for (tenant, changes) in by_tenant {
        notes.write_many(&tenant, now, changes).await?;
    }
    let imported = path.with_extension("log.imported");
    fs::rename(path, &imported)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
    tracing::info!(notes = count, log = %imported.display(), "a log of the built-in tools was imported");
    Ok(())
}

/// Reads one record per line. A last line without its newline was never acknowledged.
fn read_lines<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let bytes = fs::read(path)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let lines = bytes[..whole].split(|byte| *byte == b'\n').enumerate();
    let read = |(number, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|error| {
            let place = format!("line {} of {}", number + 1, path.display());
            io::Error::new(io::ErrorKind::InvalidData, format!("{place} cannot be read ({error})"))
        })
    };
    lines.filter(|(_, line)| !line.is_empty()).map(read).collect()
}

#[derive(Deserialize)]
struct MemoryLine {
    id: String,
    tenant: TenantId,
    #[serde(flatten)]
    memory: MemoryRecord,
}

fn memory_notes(lines: Vec<MemoryLine>) -> NotesById {
    lines.into_iter().map(|line| ((line.tenant, RegisterKind::Memory, line.id), json!(line.memory))).collect()
}

fn notification_notes(lines: Vec<Notification>) -> NotesById {
    let note = |line: Notification| {
        let value = json!(line);
        ((line.tenant, RegisterKind::Notification, line.id), value)
    };
    lines.into_iter().map(note).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TimerLine {
    Set {
        tenant: TenantId,
        replaced: bool,
        #[serde(flatten)]
        timer: TimerRecord,
    },
    Cancelled {
        tenant: TenantId,
        key: String,
        name: String,
        found: bool,
    },
    Fired {
        tenant: TenantId,
        key: String,
        name: String,
    },
    /// The answer of a call whose timer was gone when the log was compacted.
    Answered {
        tenant: TenantId,
        key: String,
        answer: Value,
    },
}

fn timer_notes(lines: Vec<TimerLine>) -> NotesById {
    let mut timers: BTreeMap<(TenantId, String), TimerRecord> = BTreeMap::new();
    let mut notes = NotesById::new();
    let mut reply = |tenant: &TenantId, key: &str, answer| {
        notes.insert((tenant.clone(), RegisterKind::ToolReply, reply_id(key)), answer);
    };
    for line in lines {
        match line {
            TimerLine::Set { tenant, replaced, timer } => {
                reply(&tenant, &timer.key, set_answer(&timer.name, timer.at, replaced));
                timers.insert((tenant, timer.name.clone()), timer);
            }
            TimerLine::Cancelled { tenant, key, name, found } => {
                reply(&tenant, &key, cancel_answer(&name, found));
                timers.remove(&(tenant, name));
            }
            TimerLine::Fired { tenant, key, name } => {
                let id = (tenant, name);
                if timers.get(&id).is_some_and(|timer| timer.key == key) {
                    timers.remove(&id);
                }
            }
            TimerLine::Answered { tenant, key, answer } => reply(&tenant, &key, answer),
        }
    }
    for ((tenant, name), timer) in timers {
        notes.insert((tenant, RegisterKind::Timer, timer_id(&name)), json!(timer));
    }
    notes
}
