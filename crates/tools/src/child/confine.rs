//! Which files and networks a program can reach. The kernel enforces it (Landlock); where it cannot, that is reported.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The usual directories of programs and libraries; missing ones are skipped.
const SYSTEM: &[&str] = &["/usr", "/bin", "/lib", "/lib64", "/etc", "/proc/self"];

/// Devices that hold no data.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// What a program can reach beside itself, the system's programs and harmless devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPermissions {
    pub read: Vec<PathBuf>,
    /// Readable too.
    pub write: Vec<PathBuf>,
    /// TCP; the kernel cannot restrict UDP yet.
    pub network: bool,
}

/// What the sandbox of this system can restrict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxSupport {
    FilesAndNetwork,
    /// The kernel is too old to restrict the network.
    Files,
    None {
        because: String,
    },
}

impl fmt::Display for SandboxSupport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxSupport::FilesAndNetwork => f.write_str("files, TCP"),
            SandboxSupport::Files => f.write_str("files; not the network, because the kernel is older than 6.7"),
            SandboxSupport::None { because } => write!(f, "none, because {because}"),
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
    };

    /// The newest rules we ask for; older kernels enforce those they know.
    const NEWEST: ABI = ABI::V6;

    pub fn sandbox() -> SandboxSupport {
        let files = hard().handle_access(AccessFs::from_all(ABI::V1)).and_then(Ruleset::create);
        if let Err(error) = files {
            return SandboxSupport::None { because: format!("the kernel offers no Landlock ({error})") };
        }
        let network = hard().handle_access(AccessNet::from_all(ABI::V4)).and_then(Ruleset::create);
        if network.is_ok() { SandboxSupport::FilesAndNetwork } else { SandboxSupport::Files }
    }

    fn hard() -> Ruleset {
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
    }

    pub fn confine(reach: &SandboxPermissions, program: &Path) -> io::Result<()> {
        let mut ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
            .map_err(io::Error::other)?;
        if !reach.network {
            ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(io::Error::other)?;
        }
        let mut created = ruleset.create().map_err(io::Error::other)?;
        for path in SYSTEM.iter().chain(DEVICES).map(Path::new).filter(|path| path.exists()) {
            created = allow(created, path, AccessFs::from_read(NEWEST))?;
        }
        created = allow(created, Path::new("/dev/null"), AccessFs::from_all(NEWEST))?;
        created = allow(created, program, AccessFs::from_read(NEWEST))?;
        for path in &reach.read {
            created = allow(created, path, AccessFs::from_read(NEWEST))?;
        }
        for path in &reach.write {
            created = allow(created, path, AccessFs::from_all(NEWEST))?;
        }
        let status = created.restrict_self().map_err(io::Error::other)?;
        match status.ruleset {
            RulesetStatus::NotEnforced => Err(io::Error::other("the kernel does not enforce the sandbox")),
            RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        }
    }

    fn allow(created: RulesetCreated, path: &Path, access: BitFlags<AccessFs>) -> io::Result<RulesetCreated> {
        let named = |error: &dyn fmt::Display| io::Error::other(format!("{}: {error}", path.display()));
        let is_folder = path.metadata().map_err(|error| named(&error))?.is_dir();
        let access = if is_folder { access } else { access & AccessFs::from_file(NEWEST) };
        let handle = PathFd::new(path).map_err(|error| named(&error))?;
        created.add_rule(PathBeneath::new(handle, access)).map_err(|error| named(&error))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;

    pub fn sandbox() -> SandboxSupport {
        SandboxSupport::None { because: "only Linux has Landlock".to_owned() }
    }

    pub fn confine(_: &SandboxPermissions, _: &Path) -> io::Result<()> {
        Err(io::Error::other("only Linux has Landlock"))
    }
}

/// Detects what this system supports; changes nothing.
pub fn sandbox() -> SandboxSupport {
    system::sandbox()
}

/// Confines this process permanently, and everything it starts from now on.
pub(super) fn confine(reach: &SandboxPermissions, program: &Path) -> io::Result<()> {
    system::confine(reach, program)
}
