//! The samples of a column sorted by score, which every replicate is evaluated on.

/// One sample of a column: its index and, in the two lowest bits, two flags.
#[derive(Clone, Copy)]
struct RankedSample(u32);

impl RankedSample {
    const MEMBER: u32 = 1;
    const LAST_OF_TIE: u32 = 2;

    fn index(self) -> usize {
        (self.0 >> 2) as usize
    }

    fn is_last_of_tie(self) -> bool {
        self.0 & Self::LAST_OF_TIE != 0
    }

    /// Splits `count` into (members, non-members). Branch-free, since labels would be mispredicted half of the time.
    fn by_class(self, count: u32) -> (u64, u64) {
        let members = count & (self.0 & Self::MEMBER).wrapping_neg();
        (members.into(), (count - members).into())
    }
}

/// The samples of a column, sorted once, from the highest score to the lowest.
pub(super) struct Ranked(Vec<RankedSample>);

impl Ranked {
    /// Ranks the samples at `indices`, each less than 2^30, that have a score.
    pub fn new(labels: &[bool], scores: &[Option<f64>], indices: &[u32]) -> Self {
        let score = |&index: &u32| Some((scores[index as usize]?, index));
        let mut descending: Vec<(f64, u32)> = indices.iter().filter_map(score).collect();
        descending.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let ties = descending.chunk_by(|a, b| a.0 == b.0);
        let mut steps = Vec::with_capacity(descending.len());
        for tie in ties {
            steps.extend(tie.iter().map(|&(_, index)| RankedSample(index << 2 | u32::from(labels[index as usize]))));
            if let Some(last) = steps.last_mut() {
                last.0 |= RankedSample::LAST_OF_TIE;
            }
        }
        Self(steps)
    }

    /// Evaluates the resample in which the sample at `index` occurs `counts[index]` times.
    ///
    /// Returns twice the number of pairs of a member and a non-member that the member wins, where a tie counts one
    /// half: an integer, so that nothing is rounded. For each of `budgets`, in ascending order, `reached` is set to the
    /// largest number of members recognised with at most that many false positives.
    pub fn evaluate(&self, counts: &[u32], budgets: &[u64], reached: &mut [u64]) -> u64 {
        let (mut members_above, mut non_members_above, mut twice_won) = (0, 0, 0);
        let (mut tied_members, mut tied_non_members) = (0, 0);
        let mut open = budgets.iter().zip(reached).peekable();
        for &step in &self.0 {
            let (members, non_members) = step.by_class(counts[step.index()]);
            tied_members += members;
            tied_non_members += non_members;
            if step.is_last_of_tie() {
                twice_won += tied_non_members * (2 * members_above + tied_members);
                non_members_above += tied_non_members;
                // The threshold above this tie was the last one within the budget.
                while let Some((_, reached)) = open.next_if(|(budget, _)| non_members_above > **budget) {
                    *reached = members_above;
                }
                members_above += tied_members;
                (tied_members, tied_non_members) = (0, 0);
            }
        }
        open.for_each(|(_, reached)| *reached = members_above);
        twice_won
    }
}
