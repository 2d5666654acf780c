//! What answers to questions allow.

use super::JournalMonitor;
use rutter_core::id::StepId;
use rutter_core::journal::event::{Question, QuestionAnswer};

impl JournalMonitor {
    pub(super) fn answered(&mut self, about: &Question, answer: QuestionAnswer, skipped: &[StepId]) {
        match (about, answer) {
            (Question::Failure(step), QuestionAnswer::Replan) => {
                self.replanning = true;
                self.held.insert(step.clone());
            }
            (Question::Failure(step), answer) => {
                self.held.remove(step);
                match answer {
                    QuestionAnswer::Skip | QuestionAnswer::Continue => {
                        self.ended.insert(step.clone());
                        self.ended.extend(skipped.iter().cloned());
                    }
                    QuestionAnswer::Resolve => {
                        self.ended.insert(step.clone());
                        self.completed.insert(step.clone());
                    }
                    QuestionAnswer::Stop | QuestionAnswer::Compensate => self.stopped = true,
                    QuestionAnswer::Retry => {
                        self.retry_items(step);
                        self.retry_failed(step);
                    }
                    QuestionAnswer::Replan => {}
                }
            }
            (Question::Item(part), answer) => {
                let (Some(item), failed) = (part.item, self.failed_items.entry(part.step.clone()).or_default()) else {
                    return;
                };
                failed.remove(&item);
                if answer != QuestionAnswer::Retry
                    && let Some(items) = self.items.get_mut(&part.step)
                {
                    items.remove(&item);
                }
                if answer == QuestionAnswer::Retry {
                    self.items.entry(part.step.clone()).or_default().insert(item);
                    self.held.remove(&part.step);
                    self.ended.remove(&part.step);
                    self.completed.remove(&part.step);
                    self.retry_part(part);
                } else if !self.has_failed(&part.step) {
                    self.held.remove(&part.step);
                    self.complete_if_done(&part.step, None);
                }
            }
            (Question::Compensation(part), QuestionAnswer::Resolve) => self.undone(part),
            (Question::Compensation(part), QuestionAnswer::Skip) => {
                self.to_undo.remove(part);
            }
            (Question::Compensation(_) | Question::SecondEffect(_), _) => {}
            (Question::Limit(_), QuestionAnswer::Continue) => self.over = false,
            (Question::Limit(_), QuestionAnswer::Replan) => self.replanning = true,
            (Question::Limit(_), _) => self.stopped = true,
            (Question::Silence, QuestionAnswer::Continue) => {}
            (Question::Silence, _) => self.stopped = true,
        }
    }
}
