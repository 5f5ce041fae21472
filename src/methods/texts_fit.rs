//! What methods ask of the texts that they are to score.

use super::base::Base;
use super::fault::Fault;
use super::labelled::LabelledMethod;
use super::parameters::MOST_NEIGHBORS;
use std::collections::HashMap;

/// One text and the neighbours that come with it, if any do.
pub type TextAndNeighbors<'a> = (&'a str, Option<&'a [String]>);

/// What is wrong with texts for these methods: neighbours that are missing or none, and texts that are put before others
/// and are themselves to be scored. `at` points at the list of texts, and `methods_at` at that of the methods.
pub fn faults_of_texts<'a>(
    texts: impl Iterator<Item = TextAndNeighbors<'a>>,
    at: &str,
    methods: &[LabelledMethod],
    methods_at: &str,
) -> Vec<Fault> {
    let needed = methods.iter().any(|m| matches!(m.method.base, Base::Neighbor { generator: None }));
    let before = methods.iter().any(|method| !method.texts_before().is_empty());
    let (mut faults, mut places) = (Vec::new(), HashMap::new());
    for (index, (text, neighbors)) in texts.enumerate() {
        if before {
            places.entry(text).or_insert(index);
        }
        let detail = match neighbors {
            Some([]) => "the list of neighbours is empty".to_owned(),
            Some(many) if many.len() > MOST_NEIGHBORS => {
                format!("there are {} neighbours; a text takes at most {MOST_NEIGHBORS}", many.len())
            }
            None if needed => {
                "the method `neighbor` has no generator, and the text comes without neighbours".to_owned()
            }
            _ => continue,
        };
        faults.push(Fault::new(format!("{at}/{index}/neighbors"), detail));
    }
    // A sweep has the same texts in each of its methods.
    let swept = methods.chunk_by(|a, b| a.place == b.place);
    for method in swept.filter_map(<[LabelledMethod]>::first) {
        for (field, texts) in method.texts_before() {
            for (index, text) in texts.as_slice().iter().enumerate() {
                let Some(place) = places.get(text.as_str()) else { continue };
                let pointer = format!("{methods_at}/{}/{field}/{index}", method.place);
                let detail =
                    format!("the text is also scored, as {at}/{place}, and what is put before it would hold it");
                faults.push(Fault::new(pointer, detail));
            }
        }
    }
    faults
}
