//! Makes a failing history small: cuts what follows the difference, then leaves out runs of steps,
//! shorter and shorter ones, while it still fails in a like way.

use crate::run::Difference;
use crate::step::Step;

/// Steps that are applied at most, all tries together: a few seconds of an engine. Counted in steps, not in tries: a long history whose every try takes half a
/// second is to be shown soon, too.
const STEPS_MAX: usize = 60_000;

/// A shorter history that still fails, with its difference. `fails` applies a history and gives the
/// difference, if there is one.
///
/// A failure that does not come again when the same history is applied (which should not exist:
/// everything is deterministic) leaves the history as it is.
pub fn shrink(
    mut history: Vec<Step>,
    mut difference: Difference,
    fails: &dyn Fn(&[Step]) -> Option<Difference>,
) -> (Vec<Step>, Difference) {
    let mut steps = 0;
    let mut run = (history.len() / 2).max(1);
    while steps < STEPS_MAX {
        let mut start = 0;
        let mut shorter = false;
        while start < history.len() && steps < STEPS_MAX {
            let end = (start + run).min(history.len());
            let candidate = [&history[..start], &history[end..]].concat();
            steps += candidate.len();
            match fails(&candidate) {
                Some(new) => {
                    history = candidate;
                    history.truncate(new.index + 1);
                    difference = new;
                    shorter = true;
                }
                None => start = end,
            }
        }
        if run == 1 && !shorter {
            break;
        }
        run = (run / 2).max(1);
    }
    (history, difference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Answer;

    #[test]
    fn only_the_steps_that_matter_stay() {
        let history: Vec<Step> = (0..200).map(|units| Step::Background { units }).collect();
        let fails = |history: &[Step]| {
            let has = |units| history.contains(&Step::Background { units });
            let index = history
                .iter()
                .position(|step| *step == Step::Background { units: 150 })?;
            let (expected, found) = (Answer::Done, Answer::Skipped);
            (has(17) && has(90)).then_some(Difference {
                index,
                expected,
                found,
            })
        };
        let first = fails(&history).unwrap();
        let (small, difference) = shrink(history, first, &fails);
        let units = |units| Step::Background { units };
        assert_eq!(small, [units(17), units(90), units(150)]);
        assert_eq!(difference.index, 2);
    }
}
