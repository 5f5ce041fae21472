//! The table of all methods: one line each.
//!
//! A method that is not in the table does not exist, and a line for a type that is no [`MethodDefinition`] does not
//! compile. All that depends on the method goes through the two enums that the table makes.

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{Definition, MethodDefinition};
use super::fault::{Fault, Faults};
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::fsd::{TunedBase, TunedScore};
use super::range::Fraction;
use super::scope::Place;
use serde::Serialize;
use strum::{Display, EnumString, VariantArray};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Makes the enums of the methods from the modules and types that define them.
macro_rules! registry {
    ($($module:ident::$Method:ident,)*) => {
        /// The methods by the names that clients use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, EnumString, VariantArray, Serialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum MethodName {
            $(#[doc = concat!("The method of the module `", stringify!($module), "`.")]
            $Method,)*
        }

        /// A method with its parameters, before truncation and weights. Serialises as the parameters.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum BaseMethod {
            $(#[doc = concat!("The method [`MethodName::", stringify!($Method), "`].")]
            $Method(super::$module::$Method),)*
        }

        impl MethodName {
            pub fn definition(self) -> Definition {
                match self {
                    $(MethodName::$Method => super::$module::$Method::DEFINITION,)*
                }
            }

            /// Reads the method's parameters out of a request; `None` where there are faults.
            pub fn read(self, place: &Place, faults: &mut Faults) -> Option<BaseMethod> {
                match self {
                    $(MethodName::$Method => super::$module::$Method::read(place, faults).map(BaseMethod::$Method),)*
                }
            }

            /// The parameters as answers repeat them, for the OpenAPI document. Adds the schemas that it refers to.
            pub fn schema(self, schemas: &mut Vec<(String, RefOr<Schema>)>) -> RefOr<Schema> {
                match self {
                    $(MethodName::$Method => {
                        super::$module::$Method::schemas(schemas);
                        super::$module::$Method::schema()
                    })*
                }
            }
        }

        impl BaseMethod {
            pub fn name(&self) -> MethodName {
                match self {
                    $(BaseMethod::$Method(_) => MethodName::$Method,)*
                }
            }

            /// See [`MethodDefinition::label_parts`], as for the functions below.
            pub fn label_parts(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(BaseMethod::$Method(method) => method.label_parts(),)*
                }
            }

            pub fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
                match self {
                    $(BaseMethod::$Method(method) => method.passes(),)*
                }
            }

            pub fn token_counts(&self) -> Option<&str> {
                match self {
                    $(BaseMethod::$Method(method) => method.token_counts(),)*
                }
            }

            pub fn note(&self) -> Option<&'static str> {
                match self {
                    $(BaseMethod::$Method(method) => method.note(),)*
                }
            }

            pub fn evaluate(&self, input: &FormulaInput) -> Result<Outcome, ScoreError> {
                match self {
                    $(BaseMethod::$Method(method) => method.evaluate(input),)*
                }
            }
        }

        $(impl From<super::$module::$Method> for BaseMethod {
            fn from(method: super::$module::$Method) -> BaseMethod {
                BaseMethod::$Method(method)
            }
        })*
    };
}

registry! {
    loss::Loss,
    reference::Ref,
    zlib::Zlib,
    lowercase::Lowercase,
    neighbor::Neighbor,
    min_k::MinK,
    min_k_plus_plus::MinKPlusPlus,
    max_k::MaxK,
    recall::Recall,
    con_recall::ConRecall,
    gap_k::GapK,
    surp::Surp,
    wbc::Wbc,
    ez::Ez,
    dc_pdd::DcPdd,
    pac::Pac,
    fsd::Fsd,
}

impl MethodName {
    /// The method of a name.
    ///
    /// # Errors
    /// Where there is none, with the name that may be meant.
    pub fn named(name: &str) -> Result<MethodName, Fault> {
        name.parse().map_err(|_| Fault::unknown("method", name, MethodName::VARIANTS, ""))
    }
}

impl From<&TunedScore> for BaseMethod {
    fn from(score: &TunedScore) -> BaseMethod {
        match (score.base, score.k.unwrap_or(Fraction::FIFTH)) {
            (TunedBase::Loss, _) => super::loss::Loss.into(),
            (TunedBase::MinK, k) => super::min_k::MinK { k }.into(),
            (TunedBase::MinKPlusPlus, k) => super::min_k_plus_plus::MinKPlusPlus { k }.into(),
        }
    }
}
