//! What each method, weighting and preset is, in words.

use super::super::decay::Decay;
use super::super::name::MethodName;
use super::super::presets::{LENGTHS, PresetName};
use super::super::weighting::WeightingName;
use super::parameter::{of_weighting, optional};
use super::{Access, Parameter, ParameterType, PresetEntry, WeightingEntry};

const PDR: &str = "PDR, arXiv:2601.06827";

/// The words of a method's entry.
pub struct Described {
    pub summary: &'static str,
    pub formula: &'static str,
    pub needs: Vec<Access>,
    pub further_passes: &'static str,
    pub source: &'static str,
}

pub fn method(name: MethodName) -> Described {
    use Access::{FullLogits, KnownTexts, LogProbabilities, Neighbors, ReferenceModel, Text, TokenCounts};
    let (summary, formula, needs, further_passes, source): (_, _, &[Access], _, _) = match name {
        MethodName::Loss => (
            "Mean log-probability of the text's tokens.",
            "mean_t lp_t",
            &[LogProbabilities],
            "none",
            "Yeom et al. 2018, arXiv:1709.01604",
        ),
        MethodName::Ref => (
            "As loss, less what a reference model gives the same tokens.",
            "mean_t (lp_t - lp_ref_t); with another tokenization mean lp - mean lp_ref, each over its own tokens",
            &[LogProbabilities, ReferenceModel],
            "1, by the reference model",
            "Carlini et al. 2021, arXiv:2012.07805",
        ),
        MethodName::Zlib => (
            "Mean log-probability over the text's own complexity, its bytes when compressed.",
            "mean_t lp_t / bytes(zlib level 6 of the full UTF-8 text)",
            &[LogProbabilities, Text],
            "none",
            "Carlini et al. 2021, arXiv:2012.07805",
        ),
        MethodName::Lowercase => (
            "Mean log-probability of the lower-cased text over that of the text.",
            "mean lp(lower-cased text) / mean lp(text)",
            &[LogProbabilities, Text],
            "1, of the lower-cased text",
            "Carlini et al. 2021, arXiv:2012.07805",
        ),
        MethodName::Neighbor => (
            "Mean log-probability of the text, less that of texts that differ in one word.",
            "mean lp(x) - mean_i mean lp(x_i)",
            &[LogProbabilities, Text, Neighbors],
            "1 for each neighbour, and 1 for each word of the text where a masked model makes them",
            "Mattern et al. 2023, arXiv:2305.18462",
        ),
        MethodName::MinK => (
            "Mean log-probability of the least likely tokens.",
            "mean of the max(1, floor(k n)) lowest lp_t",
            &[LogProbabilities],
            "none",
            "Shi et al. 2024, arXiv:2310.16789",
        ),
        MethodName::MinKPlusPlus => (
            "As min_k, of log-probabilities standardised by the model's distribution at each position.",
            "mean of the max(1, floor(k n)) lowest (lp_t - mu_t) / sigma_t",
            &[LogProbabilities, FullLogits],
            "none",
            "Zhang et al. 2024, arXiv:2404.02936",
        ),
        MethodName::Recall => (
            "How much a prefix of non-members changes the text's log-probability.",
            "mean lp(x given prefix) / mean lp(x)",
            &[LogProbabilities, Text, KnownTexts],
            "1, of prefix and text",
            "ReCaLL: Xie et al. 2024, arXiv:2406.15968",
        ),
        MethodName::ConRecall => (
            "As recall, contrasting a prefix of non-members with one of members; every token of the text counts after a prefix.",
            "(mean lp(x given non-members) - gamma mean lp(x given members)) / mean lp(x)",
            &[LogProbabilities, Text, KnownTexts],
            "2, of each prefix and the text",
            "Con-ReCall: Wang et al. 2025, arXiv:2409.03363",
        ),
        MethodName::GapK => (
            "How far the text's tokens fall behind the model's first choice, smoothed over neighbouring tokens.",
            "g_t = (lp_t - max_v lp_v,t) / sigma_t, moving average over `window`, mean of the max(1, floor(k m)) lowest \
             of its m values",
            &[LogProbabilities, FullLogits],
            "none",
            "Gap-K%: Kwak and Kim 2026, arXiv:2601.19936",
        ),
        MethodName::Surp => (
            "Mean log-probability of unlikely tokens at positions where the model was sure.",
            "mean of lp_t over the max(1, floor(k n)) lowest lp_t with entropy_t < max_entropy",
            &[LogProbabilities, FullLogits],
            "none",
            "SURP: Zhang and Wu 2024, arXiv:2407.21248",
        ),
        MethodName::DcPdd => (
            "Probability of the tokens, calibrated by how frequent they are in a reference corpus.",
            "mean over first occurrences of min(p_t ln(1/f_t), a), f = (count + 1)/(N + V)",
            &[LogProbabilities, TokenCounts],
            "none",
            "DC-PDD: Zhang et al. 2024, arXiv:2409.14781",
        ),
    };
    Described { summary, formula, needs: needs.to_vec(), further_passes, source }
}

pub fn weighting(name: WeightingName) -> WeightingEntry {
    let (summary, formula, source) = match name {
        WeightingName::Decay(Decay::Linear) => (
            "Falls by the same step from 1 to 1 - alpha; alpha 0 is the undecayed score.",
            "w(t) = 1 - alpha (t-1)/(n-1)",
            PDR,
        ),
        WeightingName::Decay(Decay::Exponential) => (
            "Falls by the same factor at every token, whatever the length; alpha 0 is the undecayed score.",
            "w(t) = exp(-alpha (t-1))",
            PDR,
        ),
        WeightingName::Decay(Decay::Polynomial) => (
            "Falls from 1 to 0; alpha 1 is linear decay, a larger alpha falls faster.",
            "w(t) = (1 - (t-1)/(n-1))^alpha",
            PDR,
        ),
        WeightingName::Reverse => ("The weights of a decay backwards.", "w(n + 1 - t)", PDR),
        WeightingName::Random => {
            ("The weights of a decay in an order that seed and text determine.", "w(permutation(t))", PDR)
        }
        WeightingName::EntropySample => {
            ("The model's entropy at each position of the text.", "w(t) = H_t / max_t H_t", PDR)
        }
        WeightingName::EntropyDataset => (
            "The mean entropy at each position over the texts of an audit; in audits only.",
            "w(t) = m_t / max_t m_t, m_t the mean of H_t over the texts with n >= t",
            PDR,
        ),
        WeightingName::Slope => (
            "Linear decay whose alpha is the slope of the text's losses, not clamped; the answer tells it.",
            "w(t) = 1 - alpha (t-1)/(n-1), alpha = least-squares slope of -lp_t on t",
            "CAMIA, as an ablation of PDR, arXiv:2601.06827",
        ),
    };
    WeightingEntry {
        name: name.name(),
        summary,
        formula,
        parameters: of_weighting(name),
        ablation: !matches!(name, WeightingName::Decay(_)),
        needs: match name {
            WeightingName::EntropySample | WeightingName::EntropyDataset => vec![Access::FullLogits],
            WeightingName::Slope => vec![Access::LogProbabilities],
            WeightingName::Random => vec![Access::Text],
            WeightingName::Decay(_) | WeightingName::Reverse => Vec::new(),
        },
        source,
    }
}

pub fn preset(name: PresetName) -> PresetEntry {
    let generator = optional(
        "generator",
        ParameterType::Object,
        "As of the method `neighbor`, which is among the methods where this is given or the texts have neighbours.",
    );
    let (summary, parameters) = match name {
        PresetName::PaperWikimia => {
            let length = Parameter {
                required: true,
                values: Some(LENGTHS.map(Into::into).to_vec()),
                ..optional("length", ParameterType::Integer, "Length of the texts in words, which chooses the alphas.")
            };
            let reference = optional(
                "reference",
                ParameterType::String,
                "Id of the reference model; the one that the settings give the model if left out.",
            );
            (
                "The tables on WikiMIA: lowercase, zlib, neighbor; loss, ref, min_k and min_k_plus_plus plain, with slope \
                 and with each decay.",
                vec![length, reference, generator],
            )
        }
        PresetName::PaperMimir => (
            "The tables on MIMIR: lowercase, zlib, neighbor; loss, min_k and min_k_plus_plus plain, with slope and with \
             each decay.",
            vec![generator],
        ),
    };
    PresetEntry { name, summary, parameters, source: PDR }
}
