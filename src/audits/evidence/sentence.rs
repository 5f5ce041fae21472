//! A verdict in a sentence that can be read aloud.

use super::basis::{Estimate, FEWEST_CLUSTERS, VerdictBasis, VerdictReason};

/// The assumption of every comparison with a control.
const PROVIDED: &str =
    "provided that what the control was trained on resembles what the model was trained on but for these texts";

/// What the verdict is, and why.
pub fn sentence(basis: &VerdictBasis, reason: VerdictReason) -> String {
    let primary = basis.primary;
    let auroc = basis.auroc.map_or_else(|| "no AUROC".to_owned(), |auroc| format!("AUROC {}", interval(auroc)));
    let difference = basis.control.map_or_else(String::new, |control| {
        let interval = control.interval.map(|[low, high]| format!(", 95 % interval {low:.3} to {high:.3}"));
        let above = match control.auroc {
            Some(_) => format!("that of the control `{}`", control.model),
            None => format!("one half, with `{}` as the control inside", control.model),
        };
        format!("{:.3} above {above}{}", control.difference, interval.unwrap_or_default())
    });
    let [members, non_members] = basis.clusters;
    match reason {
        VerdictReason::AboveControl => format!(
            "Evidence: `{primary}` tells the members from the non-members ({auroc}, {difference}), which the texts alone do \
             not explain, {PROVIDED}."
        ),
        VerdictReason::NotAboveControl => format!(
            "No evidence: `{primary}` ({auroc}) does not tell the members from the non-members better than the control, which \
             has not seen them ({difference})."
        ),
        VerdictReason::PlaceboFailed => format!(
            "Inconclusive: `{primary}` also tells groups of non-members apart by more than the control does, so its difference \
             between the classes ({auroc}, {difference}) may come from the texts."
        ),
        VerdictReason::AboveChance => format!(
            "Evidence: `{primary}` tells the members from the non-members ({auroc}), and their words do not, so that nothing \
             seen in the texts explains it."
        ),
        VerdictReason::NotAboveChance => {
            format!("No evidence: `{primary}` does not tell the members from the non-members ({auroc}).")
        }
        VerdictReason::AboveWords => format!(
            "Evidence: the words of the texts tell the members from the non-members to some degree, and `{primary}` does so \
             better ({auroc})."
        ),
        VerdictReason::NotAboveWords => format!(
            "Inconclusive: the words of the texts alone tell the members from the non-members, and `{primary}` ({auroc}) not \
             better; a control model would tell what the training adds."
        ),
        VerdictReason::TotalShift => format!(
            "Inconclusive: members and non-members are other kinds of texts, which their words alone tell apart nearly without \
             error, so that nothing follows from `{primary}` ({auroc}); a control model would tell what the training adds."
        ),
        VerdictReason::NoPower => format!(
            "Inconclusive: there are {members} distinct members and {non_members} distinct non-members with a score of \
             `{primary}`, and a verdict takes {FEWEST_CLUSTERS} of each."
        ),
        VerdictReason::NotScored
        | VerdictReason::Listed
        | VerdictReason::DatasetTest
        | VerdictReason::NothingListed
        | VerdictReason::OtherTexts => format!("Inconclusive: `{primary}` has no scores that can be compared."),
        VerdictReason::WordsUnknown => format!(
            "Inconclusive: whether the words of the texts tell the classes apart is not known, so that nothing follows from \
             `{primary}` ({auroc})."
        ),
    }
}

fn interval(Estimate { value, interval: [low, high] }: Estimate) -> String {
    format!("{value:.3}, 95 % interval {low:.3} to {high:.3}")
}
