//! The lists of a test of kind `dataset`, cut into passages.

use super::texts::{NamedTestText, TestText};
use crate::datasets::Sample;
use crate::samples::{CutSampleError, cut_sample};
use documents::Cut;

/// The passages of a list of texts, and of each the index of its text.
pub struct CutList {
    pub passages: Vec<TestText>,
    pub origins: Vec<usize>,
}

/// Cuts the texts of a list: each passage is a text of the document that its text names, else of the text's id, else of its place in
/// the list. `budget` is the number of bytes that passages may still take. The errors have the index of the text.
pub fn cut_list(texts: &[TestText], cut: Cut, budget: &mut usize) -> Result<CutList, Vec<(usize, CutSampleError)>> {
    let (mut list, mut faults) = (CutList { passages: Vec::new(), origins: Vec::new() }, Vec::new());
    for (index, text) in texts.iter().enumerate() {
        let sample = match text {
            TestText::Text(text) => Sample { text: text.clone(), ..Sample::default() },
            TestText::Named(NamedTestText { id, text, document }) => {
                Sample { id: id.clone(), text: text.clone(), document: document.clone(), ..Sample::default() }
            }
        };
        match cut_sample(&sample, index.to_string(), cut, budget) {
            Ok(passages) => {
                list.origins.resize(list.origins.len() + passages.len(), index);
                let passage = |Sample { id, text, document, .. }| TestText::Named(NamedTestText { id, text, document });
                list.passages.extend(passages.into_iter().map(passage));
            }
            // The others would fail as well.
            Err(CutSampleError::TooLarge) => return Err(vec![(index, CutSampleError::TooLarge)]),
            Err(fault) => faults.push((index, fault)),
        }
    }
    if faults.is_empty() { Ok(list) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::SampleId;
    use documents::CutAt;

    const CUT: Cut = Cut { words: 3, overlap: 0, at: CutAt::Sentence };

    #[test]
    fn passages_are_texts_of_a_document() {
        let name = |name: &str| Some(SampleId::Text(name.to_owned()));
        let named = |id, document| {
            TestText::Named(NamedTestText { id, text: "One two three. Four five.".to_owned(), document })
        };
        let texts = [TestText::Text("Six seven.".to_owned()), named(name("a"), None), named(name("b"), name("c"))];
        let list = cut_list(&texts, CUT, &mut 10_000).unwrap();
        assert_eq!(list.origins, [0, 1, 1, 2, 2]);
        let documents = list.passages.iter().map(|passage| match passage {
            TestText::Named(NamedTestText { document: Some(document), .. }) => document.to_string(),
            _ => panic!("a passage without a document"),
        });
        assert_eq!(documents.collect::<Vec<_>>(), ["0", "a", "a", "c", "c"]);
    }

    #[test]
    fn faults_name_their_text() {
        let texts = ["One two.", "- 1 -", "Three.", " "].map(|text| TestText::Text(text.to_owned()));
        let faults = cut_list(&texts, CUT, &mut 10_000).err().unwrap();
        assert_eq!(faults, [(1, CutSampleError::NothingLeft), (3, CutSampleError::NothingLeft)]);
        assert_eq!(cut_list(&texts, CUT, &mut 5).err().unwrap(), [(0, CutSampleError::TooLarge)]);
    }
}
