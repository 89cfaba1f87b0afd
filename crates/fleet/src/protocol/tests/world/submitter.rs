//! The submission of the run.

use super::super::super::{Submission, SubmitEffect};
use super::{Answer, Label, Late, Part, Steps, Submitter, What, World, text};

impl World {
    pub(super) fn submit(&self, steps: &mut Steps) {
        let Submitter::Works(submission) = self.submitter else {
            if self.rules.repeat && !self.repeated && self.submitter == Submitter::Acknowledged {
                let mut after = self.clone();
                after.repeated = true;
                after.submitter = Submitter::Works(Submission::new());
                steps.push((text("submitter repeats its request"), after));
            }
            return;
        };
        if let Some(mut killed) = self.fault() {
            killed.submitter = Submitter::Gone;
            steps.push((text("submitter is killed"), killed));
        }
        let continues = |mut after: Self, submission: Submission| {
            after.submitter = match submission.next() {
                SubmitEffect::Acknowledged(_) => Submitter::Acknowledged,
                SubmitEffect::Full => {
                    after.refused = true;
                    Submitter::Gone
                }
                _ => Submitter::Works(submission),
            };
            after
        };
        let request = match submission.next() {
            SubmitEffect::Change(change) => Late::Change(change),
            SubmitEffect::Hint => Late::Hint,
            SubmitEffect::Read => {
                for (how, seen, after) in self.reads() {
                    let what = Label(What::Submitter(submission.next()), how);
                    steps.push((what, continues(after, submission.read(seen))));
                }
                return;
            }
            _ => return,
        };
        if self.rules.full
            && submission.next() == SubmitEffect::Hint
            && let Some(mut full) = self.fault()
        {
            let what = Label(What::Submitter(submission.next()), ": full");
            if self.lacks(Part::Withdraw) {
                full.refused = true;
                full.submitter = Submitter::Gone;
                steps.push((what, full));
            } else {
                steps.push((what, continues(full, submission.full())));
            }
        }
        for (how, answer, after) in self.request(request) {
            let is_done = matches!(answer, Answer::Stored(_));
            let what = Label(What::Submitter(submission.next()), how);
            steps.push((what, continues(after, submission.answered(is_done))));
        }
    }
}
