//! Makes a failing sequence short: steps go, then words, as long as it still fails.

/// How many trials a shrinking may take.
const TRIALS: usize = 3000;

/// The shortest sequence found for which `fails` still says yes. It must for `steps`. `words_of`: the words of a step, of which
/// all but the first may go.
pub fn shrink<S: Clone>(
    steps: &[S],
    words_of: impl Fn(&mut S) -> Option<&mut Vec<Vec<u8>>>,
    mut fails: impl FnMut(&[S]) -> bool,
) -> Vec<S> {
    let mut best = steps.to_vec();
    let mut trials = TRIALS;
    let mut test = |candidate: &[S]| {
        trials = trials.saturating_sub(1);
        trials > 0 && fails(candidate)
    };
    let mut chunk = best.len().div_ceil(2).max(1);
    loop {
        let mut shorter = false;
        // From the end: what stands late depends on what stands early.
        let mut end = best.len();
        while end > 0 {
            let start = end.saturating_sub(chunk);
            let mut candidate = best.clone();
            candidate.drain(start..end);
            if test(&candidate) {
                best = candidate;
                shorter = true;
            }
            end = start;
        }
        if chunk == 1 && !shorter {
            break;
        }
        chunk = if shorter { chunk.min(best.len().max(1)) } else { chunk.div_ceil(2) };
    }
    for step in 0..best.len() {
        let mut at = 1;
        loop {
            let mut candidate = best.clone();
            match words_of(&mut candidate[step]) {
                Some(words) if at < words.len() => words.remove(at),
                _ => break,
            };
            if test(&candidate) {
                best = candidate;
            } else {
                at += 1;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Step;

    #[test]
    fn what_does_not_matter_goes() {
        let pass = |ms| Step::Pass { ms, tick: true };
        let steps: Vec<Step> = (0..100).map(pass).collect();
        let fails = |steps: &[Step]| steps.contains(&pass(17)) && steps.contains(&pass(80));
        assert_eq!(shrink(&steps, Step::words_mut, fails), [pass(17), pass(80)]);
        let words = ["XADD", "a", "b", "c"].map(|word| word.as_bytes().to_vec()).to_vec();
        let short = shrink(
            &[Step::Command { client: 0, words }],
            Step::words_mut,
            |steps| matches!(steps, [Step::Command { words, .. }] if words.contains(&b"c".to_vec())),
        );
        assert_eq!(short[0].to_string(), "c0> XADD c");
    }
}
