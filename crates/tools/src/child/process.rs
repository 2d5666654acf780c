//! The processes of the system, read from `/proc`. Without `/proc` none is known.

use super::MARK;
use rustix::process::{Pid, Signal};
use std::fs;
use std::io;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessStatus {
    pub pid: u32,
    state: char,
    pub group: u32,
    pub session: u32,
    pub threads: u64,
    /// In clock ticks since boot: with the pid it identifies one process among all that ever had the pid.
    pub started: u64,
}

/// Every process there is now.
pub(super) fn all() -> impl Iterator<Item = ProcessStatus> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| ProcessStatus::read(folder.file_name().to_str()?.parse().ok()?).ok())
}

/// The id of this boot; pids are valid only within it.
pub(super) fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

impl ProcessStatus {
    pub fn read(pid: u32) -> io::Result<ProcessStatus> {
        let text = fs::read(format!("/proc/{pid}/stat"))?;
        ProcessStatus::parse(&String::from_utf8_lossy(&text))
            .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not as expected")))
    }

    /// The name in parentheses may contain anything, even spaces and parentheses; the other fields do not.
    fn parse(text: &str) -> Option<ProcessStatus> {
        let (pid, rest) = text.split_once(" (")?;
        let (_, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        Some(ProcessStatus {
            pid: pid.parse().ok()?,
            state: fields.first()?.chars().next()?,
            group: u32::try_from(number(5)?).ok()?,
            session: u32::try_from(number(6)?).ok()?,
            threads: number(20)?,
            started: number(22)?,
        })
    }

    /// Whether it is a zombie: it has ended, but its parent has not waited for it.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether it or an ancestor was started with this mark.
    pub fn has_in_environment(&self, mark: &str) -> bool {
        let wanted = format!("{MARK}={mark}");
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    }

    /// Kills this process and no other, even if its pid was reused meanwhile.
    pub fn kill(&self) {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return };
        #[cfg(target_os = "linux")]
        if let Ok(handle) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
            && ProcessStatus::read(self.pid).is_ok_and(|process| process.started == self.started)
        {
            let _ = rustix::process::pidfd_send_signal(handle, Signal::KILL);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_numbers() {
        let text = "42 (a) R 1 (b) S 1 40 39 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 12345 1 2";
        let process = ProcessStatus::parse(text).unwrap();
        assert_eq!((process.pid, process.state, process.group, process.session), (42, 'S', 40, 39));
        assert_eq!((process.threads, process.started), (3, 12345));
        assert_eq!(ProcessStatus::parse("42 (a"), None);
    }

    #[test]
    fn we_are_among_all_processes() {
        let own = ProcessStatus::read(std::process::id()).unwrap();
        assert!(all().any(|process| process.pid == own.pid && process.started == own.started));
    }
}
