//! The trait that defines a method.

use super::access::Access;
use super::auxiliary_pass::AuxiliaryPass;
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameters::{AnyParameter, Reader};

/// A method, before truncation and weights. The implementing type holds the method's parameters; it serialises as the
/// fields that a request gives them in.
pub trait MethodDefinition: Sized {
    /// Description of the method in the catalogue.
    const DESCRIPTION: MethodDescription;

    /// The parameters that it takes beside those that all methods take (`truncate`, `pdr`, `label`).
    const PARAMETERS: &'static [&'static dyn AnyParameter];

    /// Policy on weights.
    const PDR: PdrPolicy;

    /// Reads the parameters out of a request, each with its default where it is not given. All of them are read before
    /// the first `?`, so that no fault hides another.
    fn read(reader: &mut Reader) -> Option<Self>;

    /// The parameters as labels write them: name and value, in order. They must tell any two values of the type apart.
    fn label_parts(&self) -> Vec<(&'static str, String)>;

    /// The forward passes that the method needs beside the one over the text itself, each with the field of the request
    /// that asks for it. A pass that the formula reads and that is not listed here is an internal error.
    fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
        Vec::new()
    }

    /// The id of the token counts that the formula reads. If they are not named here, reading them is an internal error.
    fn token_counts(&self) -> Option<&str> {
        None
    }

    /// Notes that a reader of the scores must know.
    fn note(&self) -> Option<&'static str> {
        None
    }

    /// The formula; higher: more likely a member.
    ///
    /// # Errors
    /// Where the text has no score.
    fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError>;
}

/// The words of a method.
#[derive(Clone, Copy, Debug)]
pub struct MethodDescription {
    /// Quantity that it measures.
    pub summary: &'static str,
    pub formula: &'static str,
    /// Data that the score is computed from.
    pub needs: &'static [Access],
    /// Sequences that run through a model for one text, beside the text itself.
    pub further_passes: &'static str,
    /// Publication.
    pub source: &'static str,
}

/// Policy of a method on weights (PDR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdrPolicy {
    Accepted {
        /// True if the PDR paper evaluates the combination. If not, it is an extension and the answer says so.
        published: bool,
        /// True if the method selects tokens by their values, so that `select` applies.
        selects: bool,
        /// True if the method weights the text itself and no other one made of it, so that weights by the positions of an
        /// audit's texts (`entropy_dataset`) fit.
        text_alone: bool,
    },
    /// It does not, for this reason.
    Refused(&'static str),
}
