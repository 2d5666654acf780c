//! The server ends in the middle of a sequence, and begins again.

use super::Sequence;
use rutter_testkit::adversary::RuleSet;
use std::thread;
use std::time::Duration;

/// The usual rules are the most frequent ones: little is approved under the others.
const RULES: &[RuleSet] = &[RuleSet::Usual, RuleSet::Usual, RuleSet::Stricter, RuleSet::Looser];
/// A request begins, and the server is killed within this time, in milliseconds.
const REQUEST_MS: u64 = 40;

impl Sequence<'_> {
    /// Ends the server in one of three ways, and starts it again, perhaps with other rules.
    pub(super) fn restart(&mut self) {
        let mut state = self.installation.alone();
        self.find_server(&state);
        let rules = *self.random.pick(RULES);
        let how = self.random.below(3);
        let is_same = how != 2 && state.rules.last() == Some(&rules);
        let asked: Vec<_> = self.executions.iter().map(|started| self.person.open_approvals(&started.id)).collect();
        match how {
            0 => {
                self.lines.push("the server is stopped".to_owned());
                self.tally.count("stops");
                state.fixture.stop();
            }
            1 => {
                self.lines.push("the server is killed".to_owned());
                self.tally.count("kills");
                state.fixture.kill();
            }
            _ => {
                let after = Duration::from_millis(self.random.below(REQUEST_MS));
                self.lines.push(format!("the server is killed in {after:?}"));
                self.tally.count("kills during requests");
                let fixture = &mut state.fixture;
                self.is_killing = true;
                thread::scope(|scope| {
                    scope.spawn(move || {
                        thread::sleep(after);
                        fixture.kill();
                    });
                    self.step();
                });
                self.is_killing = false;
            }
        }
        state.start_again(rules, self.tally);
        self.find_server(&state);
        if !is_same {
            return;
        }
        for (started, asked) in self.executions.iter().zip(asked) {
            let Some(asked) = asked.filter(|asked| !asked.is_empty()) else { continue };
            let now = self.person.open_approvals(&started.id);
            assert_eq!(now, Some(asked), "open approvals of {} after a restart: {:#?}", started.id, self.lines);
            self.tally.count("open approvals that outlived a restart");
        }
    }
}
