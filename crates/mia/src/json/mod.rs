//! How JSON values are read where serde's derived code accepts more than the documentation says.

mod capped_list;
mod list;
mod name;
mod object;

pub use capped_list::CappedList;
pub use list::{BoundedList, List, ListSeed, TooMany, at_most, counted};
pub use name::by_name;
pub use object::{Object, object_or_null};
