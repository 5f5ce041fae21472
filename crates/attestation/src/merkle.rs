//! Merkle trees as RFC 6962, section 2.1, defines them, with SHA-256.

use sha2::{Digest, Sha256};

/// The hash of a leaf or a node.
pub type Hash = [u8; 32];

/// Hashes the content of a leaf.
#[must_use]
pub fn leaf_hash(content: &[u8]) -> Hash {
    Sha256::new_with_prefix([0]).chain_update(content).finalize().into()
}

fn node_hash(left: &Hash, right: &Hash) -> Hash {
    Sha256::new_with_prefix([1]).chain_update(left).chain_update(right).finalize().into()
}

/// A tree to which leaves are added one after another. It keeps one hash for each level.
#[derive(Clone, Debug, Default)]
pub struct MerkleTree {
    leaves: usize,
    /// Roots of the complete subtrees, the largest first: one for each bit that is set in the number of leaves.
    subtrees: Vec<Hash>,
}

impl MerkleTree {
    /// Adds a leaf by its hash.
    pub fn add(&mut self, leaf: Hash) {
        let mut root = leaf;
        // Each bit of the count that is carried joins two subtrees of one size.
        for _ in 0..self.leaves.trailing_ones() {
            if let Some(left) = self.subtrees.pop() {
                root = node_hash(&left, &root);
            }
        }
        self.subtrees.push(root);
        self.leaves += 1;
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.leaves
    }

    /// Returns the root; that of an empty tree is the SHA-256 of nothing.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut subtrees = self.subtrees.iter().rev();
        let Some(&last) = subtrees.next() else { return Sha256::digest([]).into() };
        subtrees.fold(last, |right, left| node_hash(left, &right))
    }
}

impl FromIterator<Hash> for MerkleTree {
    fn from_iter<I: IntoIterator<Item = Hash>>(leaves: I) -> Self {
        let mut tree = Self::default();
        leaves.into_iter().for_each(|leaf| tree.add(leaf));
        tree
    }
}

/// The hashes beside the path from a leaf to the root, from the bottom up (`PATH` of RFC 6962); `None` without such a leaf.
#[must_use]
pub fn inclusion_path(leaves: &[Hash], leaf: usize) -> Option<Vec<Hash>> {
    if leaf >= leaves.len() {
        return None;
    }
    let (mut path, mut tree, mut leaf) = (Vec::new(), leaves, leaf);
    while tree.len() > 1 {
        let (left, right) = tree.split_at(split(tree.len()));
        let beside;
        (tree, beside) = if leaf < left.len() {
            (left, right)
        } else {
            leaf -= left.len();
            (right, left)
        };
        path.push(beside.iter().copied().collect::<MerkleTree>().root());
    }
    path.reverse();
    Some(path)
}

/// Computes the root of a tree from one of its leaves and the hashes beside its path; `None` if the path has another length than that of
/// such a leaf.
#[must_use]
pub fn root_of_path(leaf_hash: Hash, leaf: usize, leaves: usize, path: &[Hash]) -> Option<Hash> {
    // No tree is higher than a number of leaves has bits.
    if leaf >= leaves || path.len() > usize::BITS as usize {
        return None;
    }
    // True for each level at which the leaf is on the right, from the top down.
    let (mut is_right, mut leaf, mut leaves) = (Vec::new(), leaf, leaves);
    while leaves > 1 {
        let left = split(leaves);
        is_right.push(leaf >= left);
        (leaf, leaves) = if leaf < left { (leaf, left) } else { (leaf - left, leaves - left) };
    }
    if is_right.len() != path.len() {
        return None;
    }
    let join = |hash: Hash, (beside, is_right): (&Hash, bool)| match is_right {
        true => node_hash(beside, &hash),
        false => node_hash(&hash, beside),
    };
    Some(path.iter().zip(is_right.into_iter().rev()).fold(leaf_hash, join))
}

/// Number of leaves in the left subtree of the root: the largest power of two below `leaves`.
fn split(leaves: usize) -> usize {
    1 << (leaves - 1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves of the tests of Certificate Transparency's reference implementation.
    const CONTENTS: [&[u8]; 8] = [
        b"",
        b"\x00",
        b"\x10",
        b"\x20\x21",
        b"\x30\x31",
        b"\x40\x41\x42\x43",
        b"\x50\x51\x52\x53\x54\x55\x56\x57",
        b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
    ];

    /// Roots of the trees of their first 0 to 8, from the same place.
    const ROOTS: [&str; 9] = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    fn leaves(count: usize) -> Vec<Hash> {
        CONTENTS[..count].iter().map(|content| leaf_hash(content)).collect()
    }

    #[test]
    fn roots_are_those_of_certificate_transparency() {
        for (count, root) in ROOTS.into_iter().enumerate() {
            let tree: MerkleTree = leaves(count).into_iter().collect();
            assert_eq!((tree.leaves(), hex::encode(tree.root()).as_str()), (count, root));
        }
    }

    #[test]
    fn the_largest_tree_has_an_end() {
        assert_eq!(root_of_path([0; 32], 7, usize::MAX, &[]), None);
        assert!(root_of_path([0; 32], 7, usize::MAX, &[[0; 32]; 64]).is_some());
        assert_eq!(root_of_path([0; 32], 7, usize::MAX, &[[0; 32]; 65]), None);
    }

    #[test]
    fn a_path_is_that_of_certificate_transparency() {
        let path = inclusion_path(&leaves(8), 5).unwrap();
        assert_eq!(
            path.iter().map(hex::encode).collect::<Vec<_>>(),
            [
                "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
                "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
                "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            ]
        );
        assert_eq!(inclusion_path(&leaves(8), 8), None);
    }

    #[test]
    fn every_leaf_of_every_tree_leads_to_its_root_and_no_other_does() {
        for count in 1..=8 {
            let leaves = leaves(count);
            let root = MerkleTree::from_iter(leaves.iter().copied()).root();
            for leaf in 0..count {
                let path = inclusion_path(&leaves, leaf).unwrap();
                assert_eq!(root_of_path(leaves[leaf], leaf, count, &path), Some(root));
                assert_ne!(root_of_path(leaf_hash(b"another"), leaf, count, &path), Some(root));
                assert_eq!(root_of_path(leaves[leaf], count, count, &path), None);
                let longer: Vec<Hash> = path.iter().copied().chain([[0; 32]]).collect();
                assert_eq!(root_of_path(leaves[leaf], leaf, count, &longer), None);
            }
        }
    }
}
