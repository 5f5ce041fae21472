//! How values that clients write are read where serde's derived code would take more than the document says, and how values
//! are written that other programs might take for more than they are.

mod capped_list;
mod compact_json;
mod list;
mod name;
mod object;
mod quoted;
mod shaped;
mod spreadsheet;

pub use capped_list::CappedList;
pub use compact_json::CompactObject;
pub use list::{BoundedList, List, ListSeed, TooMany, at_most, counted};
pub use name::by_name;
pub use object::{Object, object_or_null};
pub use quoted::quoted;
pub use shaped::{ShapeFault, Shaped, in_words, pointer, without_place};
pub use spreadsheet::inert;
