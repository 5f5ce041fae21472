//! Requirements of methods on the texts that they are to score.

use super::auxiliary_pass::AuxiliaryPass;
use super::fault::Fault;
use super::labelled::LabelledMethod;
use super::neighbor::MAX_NEIGHBORS;
use std::collections::HashMap;

/// One text and the neighbours that come with it, if any do.
pub type TextAndNeighbors<'a> = (&'a str, Option<&'a [String]>);

/// Returns the faults of texts under these methods: neighbours that are missing, too many or an empty list, and texts of a
/// prefix that are themselves to be scored. `place` gives the pointer to a text by its index, from 0; `methods_pointer` points
/// at the list of methods.
pub fn faults_of_texts<'a>(
    texts: impl Iterator<Item = TextAndNeighbors<'a>>,
    place: impl Fn(usize) -> String,
    methods: &[LabelledMethod],
    methods_pointer: &str,
) -> Vec<Fault> {
    let bases = || methods.iter().map(|method| &method.method);
    let needs_neighbors =
        bases().flat_map(|method| method.base.passes()).any(|(_, pass)| pass == AuxiliaryPass::Neighbors(None));
    let has_prefixes = bases().any(|method| !method.prefixes().is_empty());
    let (mut faults, mut scored) = (Vec::new(), HashMap::new());
    for (index, (text, neighbors)) in texts.enumerate() {
        if has_prefixes {
            scored.entry(text).or_insert(index);
        }
        let detail = match neighbors {
            Some([]) => "the list of neighbours is empty".to_owned(),
            Some(many) if many.len() > MAX_NEIGHBORS => {
                format!("there are {} neighbours; a text takes at most {MAX_NEIGHBORS}", many.len())
            }
            None if needs_neighbors => {
                "the method `neighbor` has no generator, and the text comes without neighbours".to_owned()
            }
            Some(_) | None => continue,
        };
        faults.push(Fault::new(format!("{}/neighbors", place(index)), detail));
    }
    // A sweep has the same texts in each of its methods.
    let entry = |method: &LabelledMethod| method.origin.map(|origin| origin.place);
    let swept = methods.chunk_by(|a, b| entry(a) == entry(b));
    for method in swept.filter_map(<[LabelledMethod]>::first) {
        for (field, texts) in method.method.prefixes() {
            for (index, text) in texts.as_slice().iter().enumerate() {
                let Some(first) = scored.get(text.as_str()) else { continue };
                let pointer = format!("{methods_pointer}{}", method.pointer(&format!("{field}/{index}")));
                let detail = format!("the text is also scored, as {}, so the prefix would contain it", place(*first));
                faults.push(Fault::new(pointer, detail));
            }
        }
    }
    faults
}
