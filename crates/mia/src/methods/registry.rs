//! The table of all methods: one line each.
//!
//! A method that is not in the table does not exist, and a line for a type that is no [`MethodDefinition`] does not
//! compile. All that depends on the method goes through the two enums that the table makes, or through [`Definition`].

use super::auxiliary_pass::AuxiliaryPass;
use super::definition::{MethodDefinition, MethodDescription, PdrPolicy};
use super::fault::Faults;
use super::formula::{FormulaInput, Outcome, ScoreError};
use super::parameter::{Parameter, Place};
use super::tuned_score::TunedBase;
use serde::Serialize;
use strum::{Display, EnumString, VariantArray};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Properties of a method that do not depend on its parameters.
pub struct Definition {
    /// Description in the catalogue.
    pub description: MethodDescription,
    /// The parameters that it takes beside those that all methods take.
    pub parameters: &'static [&'static Parameter],
    /// Policy on weights.
    pub pdr: PdrPolicy,
    /// Reads the parameters out of a request.
    pub read: fn(&Place, &mut Faults) -> Option<BaseMethod>,
    /// The parameters as answers repeat them, for the OpenAPI document. Adds the schemas that they refer to.
    pub schema: fn(&mut Vec<(String, RefOr<Schema>)>) -> RefOr<Schema>,
}

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
            /// Returns the properties of the method that do not depend on its parameters.
            pub fn definition(self) -> Definition {
                match self {
                    $(MethodName::$Method => Definition {
                        description: super::$module::$Method::DESCRIPTION,
                        parameters: super::$module::$Method::PARAMETERS,
                        pdr: super::$module::$Method::PDR,
                        read: |place, faults| super::$module::$Method::read(place, faults).map(BaseMethod::$Method),
                        schema: |schemas| {
                            super::$module::$Method::schemas(schemas);
                            super::$module::$Method::schema()
                        },
                    },)*
                }
            }
        }

        impl BaseMethod {
            pub fn name(&self) -> MethodName {
                match self {
                    $(BaseMethod::$Method(_) => MethodName::$Method,)*
                }
            }

            /// The parameters as labels write them: name and value, in order.
            pub fn label_parts(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(BaseMethod::$Method(method) => method.label_parts(),)*
                }
            }

            /// The forward passes that the method needs beside the one over the text itself, each with the field of the
            /// request that asks for it.
            pub fn passes(&self) -> Vec<(&'static str, AuxiliaryPass)> {
                match self {
                    $(BaseMethod::$Method(method) => method.passes(),)*
                }
            }

            /// The id of the token counts that the formula reads.
            pub fn token_counts(&self) -> Option<&str> {
                match self {
                    $(BaseMethod::$Method(method) => method.token_counts(),)*
                }
            }

            /// Notes that a reader of the scores must know.
            pub fn note(&self) -> Option<&'static str> {
                match self {
                    $(BaseMethod::$Method(method) => method.note(),)*
                }
            }

            /// The formula.
            ///
            /// # Errors
            /// Where the text has no score.
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
    fsd::Fsd,
}

impl From<TunedBase> for BaseMethod {
    fn from(base: TunedBase) -> BaseMethod {
        match base {
            TunedBase::Loss(method) => method.into(),
            TunedBase::MinK(method) => method.into(),
            TunedBase::MinKPlusPlus(method) => method.into(),
        }
    }
}
