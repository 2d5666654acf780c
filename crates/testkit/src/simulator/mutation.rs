//! Every deliberate mistake by name: those inside the core, and those of what drives it.

use rutter_core::mutation::{self, Mutation};
use std::cell::Cell;

/// Mistakes of a driver, which the core cannot prevent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverMutation {
    CallBeforeAppend,
    SkipFence,
    AppendTwice,
}

impl DriverMutation {
    const ALL: [DriverMutation; 3] =
        [DriverMutation::CallBeforeAppend, DriverMutation::SkipFence, DriverMutation::AppendTwice];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    Core(Mutation),
    Driver(DriverMutation),
}

thread_local! {
    static ACTIVE: Cell<Option<DriverMutation>> = const { Cell::new(None) };
}

pub fn is_active(mistake: DriverMutation) -> bool {
    ACTIVE.get() == Some(mistake)
}

/// All mistakes, with the names the command line knows them by.
pub fn all() -> Vec<(String, Mistake)> {
    let core = Mutation::ALL.into_iter().map(|mistake| (name(&mistake), Mistake::Core(mistake)));
    let driver = DriverMutation::ALL.into_iter().map(|mistake| (name(&mistake), Mistake::Driver(mistake)));
    core.chain(driver).collect()
}

/// Makes one mistake from now on in this thread, or none.
pub fn activate(mistake: Option<Mistake>) {
    let (core, driver) = match mistake {
        None => (None, None),
        Some(Mistake::Core(mistake)) => (Some(mistake), None),
        Some(Mistake::Driver(mistake)) => (None, Some(mistake)),
    };
    mutation::activate(core);
    ACTIVE.set(driver);
}

/// `RetryOnceAfterCrash` → `retry_once_after_crash`.
fn name(mistake: &impl std::fmt::Debug) -> String {
    let mut name = String::new();
    for letter in format!("{mistake:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}
