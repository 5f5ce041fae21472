//! The field `cut` of a test: the texts of both lists become passages.

use super::check::RequestFaults;
use super::jobs::request;
use super::problem::{Kind, Problem};
use crate::audits::{TestKind, TestTexts, cut_list};
use crate::samples::CutSampleError;
use documents::Cut;

/// The texts of a test of this kind, cut into passages, and the place in its list of the text that each passage is of. They stay whole
/// where they cannot be cut, with the faults that say why.
pub fn cut_texts(
    given: Option<&TestTexts>,
    has_dataset: bool,
    cut: Cut,
    (kind, seed): (TestKind, u64),
    faults: &mut RequestFaults,
) -> Result<(Option<TestTexts>, Vec<usize>), Problem> {
    let fault = match (given, cut.check()) {
        (_, Err(fault)) => fault.to_string(),
        (_, Ok(())) if kind.units().is_some() => format!(
            "a test of kind `{kind}` compares whole texts with whole texts, and passages have no counterparts; leave out `cut`, or give \
             the passages themselves"
        ),
        (None, Ok(())) if has_dataset => "a dataset is cut when it is uploaded".to_owned(),
        // Their faults are named.
        (None, Ok(())) => return Ok((None, Vec::new())),
        (Some(TestTexts::Dataset { suspects, held_out } | TestTexts::Di { suspects, held_out, .. }), Ok(())) => {
            let (mut budget, mut lists) = (request::MAX_CUT_BYTES, [None, None]);
            for (place, (field, texts)) in [("suspects", suspects), ("held_out", held_out)].into_iter().enumerate() {
                match cut_list(texts, cut, &mut budget) {
                    Ok(list) => lists[place] = Some(list),
                    Err(wrong) => name_uncut(field, wrong, faults)?,
                }
            }
            if let [Some(suspects), Some(held_out)] = lists {
                let origins = [suspects.origins, held_out.origins].concat();
                let (suspects, held_out) = (suspects.passages, held_out.passages);
                return Ok((Some(TestTexts::lists(kind, suspects, held_out, seed)), origins));
            }
            return Ok((given.cloned(), Vec::new()));
        }
        (Some(_), Ok(())) => return Err(Problem::internal("texts of another kind than the test")),
    };
    faults.push("/cut", fault);
    Ok((given.cloned(), Vec::new()))
}

/// Notes why texts of a field cannot be cut.
fn name_uncut(field: &str, wrong: Vec<(usize, CutSampleError)>, faults: &mut RequestFaults) -> Result<(), Problem> {
    for (index, fault) in wrong {
        if fault == CutSampleError::TooLarge {
            return Err(Problem::new(Kind::TooLarge, fault.to_string()));
        }
        faults.push(format!("/{field}/{index}"), fault.to_string());
    }
    Ok(())
}
