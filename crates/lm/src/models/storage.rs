//! Storage of a family's tensors: names, parts and order, as data.

use crate::models::arch::{Arch, Positions};

/// The names of a family's tensors on disk, and the order of their rows.
#[derive(Clone, Copy)]
pub struct Storage {
    /// Possible prefixes of every name but the head's, in order of preference.
    pub roots: &'static [&'static str],
    /// `(canonical, parts on disk)` without `.weight` and `.bias`; `*` stands for the layer's number. Several parts are
    /// concatenated by rows. A second entry for a canonical name is an alternative.
    pub names: &'static [(&'static str, &'static [&'static str])],
    /// The names of a head that is not tied to the embedding.
    pub head: &'static [&'static str],
    pub layout: Layout,
}

/// Difference of a tensor on disk from the same tensor in canonical order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// No difference.
    Canonical,
    /// The projections of the layers are stored `[in, out]` (GPT-2).
    Transposed,
    /// Rows of the fused projection are stored head by head, `[heads, 3, head_dim]` (GPT-NeoX).
    HeadByHead,
    /// Rotary positions pair neighbouring elements of a head instead of its halves (GPT-J). The rows of queries and
    /// keys are permuted alike into the order of halves, which changes none of their products.
    NeighbourPairs,
    /// The weights of norms are stored minus one (Gemma).
    NormsLessOne,
}

/// Buffers that files contain and that are not weights: causal masks and tables of rotary frequencies.
const BUFFERS: &[&str] =
    &[".attention.bias", ".attn.bias", ".attention.masked_bias", ".attn.masked_bias", ".rotary_emb.inv_freq"];

/// A canonical name in its parts: pattern (`layers.*.qkv`), layer and suffix (`weight`); a parameter of the layer
/// itself has the pattern `layers.*`.
struct Canonical<'a> {
    pattern: String,
    layer: &'a str,
    ending: &'a str,
}

impl<'a> Canonical<'a> {
    fn parse(name: &'a str) -> Self {
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let Some(rest) = stem.strip_prefix("layers.") else {
            return Self { pattern: stem.to_owned(), layer: "", ending };
        };
        match rest.split_once('.') {
            Some((layer, part)) => Self { pattern: format!("layers.*.{part}"), layer, ending },
            None => Self { pattern: "layers.*".to_owned(), layer: rest, ending },
        }
    }
}

impl Storage {
    /// For a canonical name, each way in which it may be stored on disk: the names of the parts that it consists of.
    pub fn candidates(&self, canonical: &str) -> Vec<Vec<String>> {
        let name = Canonical::parse(canonical);
        if name.pattern == "head" {
            return self.head.iter().map(|head| vec![format!("{head}.{}", name.ending)]).collect();
        }
        let entries = self.names.iter().filter(|(pattern, _)| *pattern == name.pattern);
        let rooted = |(_, parts): &(&str, &[&str])| {
            let on_disk = |root: &str, part: &str| format!("{root}{}.{}", part.replace('*', name.layer), name.ending);
            let under = |root: &&str| parts.iter().map(|part| on_disk(root, part)).collect::<Vec<_>>();
            self.roots.iter().map(under).collect::<Vec<_>>()
        };
        entries.flat_map(rooted).collect()
    }

    /// The parts of the canonical tensor that a tensor on disk is a part of, itself included; empty if there is none.
    pub fn parts_with(&self, name: &str) -> Vec<String> {
        let Some((stem, ending)) = name.rsplit_once('.') else { return Vec::new() };
        if self.head.contains(&stem) {
            return vec![name.to_owned()];
        }
        let layer = |root: &str, part: &str| {
            let rest = stem.strip_prefix(root)?;
            match part.split_once('*') {
                None => (rest == part).then_some(""),
                Some((before, after)) => {
                    let layer = rest.strip_prefix(before)?.strip_suffix(after)?;
                    (!layer.is_empty() && layer.bytes().all(|byte| byte.is_ascii_digit())).then_some(layer)
                }
            }
        };
        let parts = |root: &str, parts: &[&str]| {
            let layer = parts.iter().find_map(|part| layer(root, part))?;
            Some(parts.iter().map(|part| format!("{root}{}.{ending}", part.replace('*', layer))).collect())
        };
        let rooted = self.roots.iter().flat_map(|root| self.names.iter().map(move |(_, names)| (root, names)));
        rooted.into_iter().find_map(|(root, names)| parts(root, names)).unwrap_or_default()
    }

    /// Rows of each of the parts of a canonical tensor with `rows` rows.
    pub fn part_rows(&self, arch: &Arch, canonical: &str, rows: usize, parts: usize) -> Vec<usize> {
        if parts == 3 && Canonical::parse(canonical).pattern == "layers.*.qkv" {
            return vec![arch.sizes.queries(), arch.sizes.keys(), arch.sizes.keys()];
        }
        vec![rows / parts; parts]
    }

    /// Returns true if a tensor is stored `[in, out]`.
    pub fn is_transposed(&self, canonical: &str) -> bool {
        let name = Canonical::parse(canonical);
        let projections = ["layers.*.qkv", "layers.*.attention_out", "layers.*.mlp_up", "layers.*.mlp_down"];
        self.layout == Layout::Transposed && name.ending == "weight" && projections.contains(&name.pattern.as_str())
    }

    /// Returns true if a tensor is a matrix used in products, or the embedding, which may be the head as well.
    pub fn is_matrix(canonical: &str, shape: &[usize]) -> bool {
        let name = Canonical::parse(canonical);
        shape.len() == 2 && name.ending == "weight" && name.pattern != "positions"
    }

    /// The value to be added to every element.
    pub fn offset(&self, canonical: &str) -> f32 {
        let name = Canonical::parse(canonical);
        let is_norm = name.pattern.ends_with("norm") && name.ending == "weight";
        if self.layout == Layout::NormsLessOne && is_norm { 1.0 } else { 0.0 }
    }

    /// For each row of a canonical tensor, its row on disk, if the order differs.
    pub fn row_order(&self, arch: &Arch, canonical: &str) -> Option<Vec<usize>> {
        if Canonical::parse(canonical).pattern != "layers.*.qkv" {
            return None;
        }
        match self.layout {
            Layout::HeadByHead => Some(head_by_head(arch)),
            Layout::NeighbourPairs => Some(neighbour_pairs(arch)),
            Layout::Canonical | Layout::Transposed | Layout::NormsLessOne => None,
        }
    }

    /// Returns true if a tensor on disk is not part of the model: a buffer, or a head in addition to a tied embedding.
    pub fn ignores(&self, tied_head: bool, name: &str) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        BUFFERS.iter().any(|buffer| name.ends_with(buffer)) || tied_head && self.head.contains(&stem)
    }
}

/// Canonical row `(part, head, i)` is stored at `(head, part, i)`.
fn head_by_head(arch: &Arch) -> Vec<usize> {
    let (heads, dim) = (arch.sizes.heads, arch.sizes.head_dim);
    let on_disk = |row: usize| {
        let (part, head, i) = (row / (heads * dim), row / dim % heads, row % dim);
        (head * 3 + part) * dim + i
    };
    (0..3 * heads * dim).map(on_disk).collect()
}

/// Of the rotated elements of every query and key head, the even ones come first, then the odd ones.
fn neighbour_pairs(arch: &Arch) -> Vec<usize> {
    let rotated = match &arch.positions {
        Positions::Rotary(rotary) => rotary.dims,
        Positions::Learned { .. } => 0,
    };
    let (dim, half) = (arch.sizes.head_dim, rotated / 2);
    let on_disk = |row: usize| {
        let (head, i) = (row / dim * dim, row % dim);
        if row >= arch.sizes.queries() + arch.sizes.keys() || i >= rotated {
            row
        } else if i < half {
            head + 2 * i
        } else {
            head + 2 * (i - half) + 1
        }
    };
    (0..arch.qkv_width()).map(on_disk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::arch::Sizes;
    use crate::models::rotary::Rotary;

    const STORAGE: Storage = Storage {
        roots: &["a.", ""],
        names: &[("layers.*.qkv", &["h.*.q", "h.*.kv"]), ("layers.*.qkv", &["h.*.qkv"])],
        head: &["out", "lm_head"],
        layout: Layout::NeighbourPairs,
    };

    #[test]
    fn candidates_come_in_order_with_every_root() {
        let names = STORAGE.candidates("layers.12.qkv.bias");
        let want: &[&[&str]] = &[
            &["a.h.12.q.bias", "a.h.12.kv.bias"],
            &["h.12.q.bias", "h.12.kv.bias"],
            &["a.h.12.qkv.bias"],
            &["h.12.qkv.bias"],
        ];
        assert_eq!(names, want);
        assert_eq!(STORAGE.candidates("head.weight"), [["out.weight"], ["lm_head.weight"]]);
        assert!(STORAGE.candidates("layers.1.other.weight").is_empty());
        let bare = Storage { names: &[("layers.*", &["layers.*.mixer"])], ..STORAGE };
        assert_eq!(bare.candidates("layers.7.A_log")[0], ["a.layers.7.mixer.A_log"]);
    }

    #[test]
    fn parts_are_those_of_the_same_layer() {
        let parts = |name: &str| STORAGE.parts_with(name);
        assert_eq!(parts("a.h.12.kv.weight"), ["a.h.12.q.weight", "a.h.12.kv.weight"]);
        assert_eq!(parts("h.3.qkv.bias"), ["h.3.qkv.bias"]);
        assert_eq!(parts("out.weight"), ["out.weight"]);
        for other in ["h.x.q.weight", "h..q.weight", "h.1.other.weight", "weight", "a.out.weight"] {
            assert!(parts(other).is_empty(), "{other}");
        }
    }

    #[test]
    fn row_orders_are_permutations_of_the_rows() {
        let sizes = Sizes { vocab: 5, hidden: 24, layers: 1, heads: 3, kv_heads: 3, head_dim: 8, inner: 4, context: 4 };
        let arch = Arch { positions: Positions::Rotary(Rotary::plain(4, 1e4)), ..Arch::new(sizes) };
        let order = STORAGE.row_order(&arch, "layers.0.qkv.weight").unwrap();
        assert_eq!(&order[..10], [0, 2, 1, 3, 4, 5, 6, 7, 8, 10]);
        assert_eq!(&order[48..], (48..72).collect::<Vec<_>>());
        let by_head = Storage { layout: Layout::HeadByHead, ..STORAGE }.row_order(&arch, "layers.0.qkv.bias").unwrap();
        assert_eq!((by_head[8], by_head[24]), (24, 8));
        for mut order in [order, by_head] {
            order.sort_unstable();
            assert_eq!(order, (0..72).collect::<Vec<_>>());
        }
    }

    #[test]
    fn buffers_are_ignored_and_biases_of_projections_are_not() {
        for name in ["gpt_neox.layers.0.attention.bias", "h.0.attn.bias", "transformer.h.1.attn.attention.masked_bias"]
        {
            assert!(STORAGE.ignores(false, name), "{name}");
        }
        for name in ["h.0.attn.c_attn.bias", "gpt_neox.layers.0.attention.dense.bias", "lm_head.weight"] {
            assert!(!STORAGE.ignores(false, name), "{name}");
        }
        assert!(STORAGE.ignores(true, "lm_head.weight"));
    }
}
