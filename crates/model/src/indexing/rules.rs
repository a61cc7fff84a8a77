//! A policy, ready to be used: which values of an item are in the index.
//!
//! The paths of the policy stand in a tree, so that the way down an item is at
//! the same time the way down the tree:
//!
//! ```text
//! /*            root, below: yes
//! /a/?          root -a-> itself: yes
//! /a/[]/b/*     root -a-> -[]-> -b-> below: yes
//! ```
//!
//! At a value its own `/?` decides, else its own `/*`, else the nearest `/*`
//! above it. `id` is in every index; what the server adds to an item is in none, but
//! for `_ts`, which may be a member of a composite index.
//! A computed property is in the index where a path names it; `/*` does not mean it.
//! A stored property of the same name is not.
//! A path with a tuple, `/a/[]/{b, c}/?`, is kept with the policy and has no
//! entries: what it would find is found by reading the items.

use std::collections::HashMap;

use super::{IndexingMode, IndexingPolicy, Order, Segment, Step};
use crate::json::Path;
use crate::system::SYSTEM_PROPERTIES;

/// When the item was written.
const TIME: &str = "_ts";

/// What is in every index, whatever the policy says.
const ID: &str = "id";

/// How long an item lives.
const TTL: &str = "ttl";

/// How long the bytes of a value are at most; longer ones are cut.
pub const VALUE_BYTES_MAX: usize = 512;

/// A policy, ready to be used.
#[derive(Debug)]
pub struct Rules {
    nodes: Vec<Node>,
    composites: Vec<Composite>,
    /// The names of computed properties.
    computed: Vec<String>,
    /// The names at the top that have no entries, whatever the policy says.
    left_out: Vec<String>,
    /// The members of composite indexes that are `_ts`.
    times: Vec<Slot>,
    /// The paths and composite indexes whose entries cost nothing.
    free: Vec<u64>,
    is_on: bool,
}

/// A computed property, as far as an index goes.
#[derive(Clone, Copy, Debug)]
pub struct Computed<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it can have entries: it depends on nothing but what the user wrote.
    pub has_entries: bool,
}

/// A place in the tree of paths.
#[derive(Debug, Default)]
pub(super) struct Node {
    names: HashMap<String, usize>,
    items: Option<usize>,
    /// What `/?` says.
    itself: Option<bool>,
    /// What `/*` says.
    below: Option<bool>,
    /// The members of composite indexes that stand here.
    pub(super) slots: Vec<Slot>,
}

/// A member of a composite index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) composite: usize,
    pub(super) member: usize,
}

/// Where in the tree a value is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// `None`: no path leads here.
    node: Option<usize>,
    /// What the nearest `/*` above says.
    inherited: bool,
}

impl Place {
    /// Where an item itself is.
    pub(super) const TOP: Place = Place { node: Some(0), inherited: false };
    /// Where nothing is of interest.
    pub(super) const NOWHERE: Place = Place { node: None, inherited: false };
}

/// A composite index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Composite {
    /// Stands for its paths and their order in entries.
    pub id: u64,
    /// Its paths, and which way each goes.
    pub members: Vec<(Path, Order)>,
}

impl Composite {
    /// How long the bytes of one member are at most.
    pub fn member_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX / self.members.len().max(1)
    }
}

impl Rules {
    /// The rules of a policy, for items without computed properties.
    pub fn new(policy: &IndexingPolicy) -> Rules {
        Rules::with_computed(policy, &[])
    }

    /// The rules of a policy.
    pub fn with_computed(policy: &IndexingPolicy, computed: &[Computed<'_>]) -> Rules {
        let is_on = policy.mode != IndexingMode::None;
        let mut rules = Rules {
            nodes: vec![Node::default()],
            composites: Vec::new(),
            computed: computed.iter().map(|property| property.name.to_owned()).collect(),
            left_out: Vec::new(),
            times: Vec::new(),
            free: [ID, TTL].map(|name| path_id(&[Step::Name(name)])).into(),
            is_on,
        };
        if !is_on {
            return rules;
        }
        for (paths, says) in [(&policy.included, true), (&policy.excluded, false)] {
            for path in paths {
                rules.add(&path.segments, path.end, says);
            }
        }
        rules.settle_top();
        for property in computed {
            rules.settle_computed(*property);
        }
        for members in &policy.composites {
            let members = members.iter().map(|member| (member.path.clone(), member.order));
            rules.add_composite(members.collect());
        }
        rules
    }

    fn add(&mut self, segments: &[Segment], end: super::End, says: bool) {
        let mut node = 0;
        for segment in segments {
            node = match segment {
                Segment::Name(name) => self.named(node, name),
                Segment::Items => self.items(node),
                Segment::Tuple(_) => return,
            };
        }
        let Some(node) = self.nodes.get_mut(node) else { return };
        match end {
            super::End::Scalar => node.itself = Some(says),
            super::End::Subtree => node.below = Some(says),
        }
    }

    /// What does not depend on the policy.
    fn settle_top(&mut self) {
        for name in SYSTEM_PROPERTIES {
            self.leave_out(name);
        }
        let id = self.named(0, ID);
        if let Some(node) = self.nodes.get_mut(id) {
            node.itself = Some(true);
        }
    }

    /// `/*` does not mean a computed property.
    fn settle_computed(&mut self, property: Computed<'_>) {
        if !property.has_entries {
            return self.leave_out(property.name);
        }
        let place = self.named(0, property.name);
        if let Some(node) = self.nodes.get_mut(place) {
            node.below.get_or_insert(false);
        }
    }

    /// Nothing at or below the property `name` has an entry.
    fn leave_out(&mut self, name: &str) {
        self.left_out.push(name.to_owned());
        let place = self.named(0, name);
        if let Some(node) = self.nodes.get_mut(place) {
            *node = Node { itself: Some(false), below: Some(false), ..Node::default() };
        }
    }

    /// What the server adds has no order that is of use, but for `_ts`; there are
    /// no entries for an index over the others, nor over what depends on them.
    fn add_composite(&mut self, members: Vec<(Path, Order)>) {
        let is_left_out = |(path, _): &(Path, Order)| {
            let is_known = |name: &String| self.left_out.contains(name);
            path.segments().first().is_some_and(is_known) && path.segments() != [TIME]
        };
        let id = composite_id(&members);
        if members.iter().any(is_left_out) || self.composites.iter().any(|known| known.id == id) {
            return;
        }
        let composite = self.composites.len();
        let is_of_time = |(path, _): &(Path, Order)| matches!(path.segments(), [name] if name == TTL || name == TIME);
        if members.iter().any(is_of_time) {
            self.free.push(id);
        }
        for (member, (path, _)) in members.iter().enumerate() {
            if path.segments() == [TIME] {
                self.times.push(Slot { composite, member });
                continue;
            }
            let node = path.segments().iter().fold(0, |node, name| self.named(node, name));
            if let Some(node) = self.nodes.get_mut(node) {
                node.slots.push(Slot { composite, member });
            }
        }
        self.composites.push(Composite { id, members });
    }

    fn named(&mut self, node: usize, name: &str) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(node) else { return node };
        let found = *node.names.entry(name.to_owned()).or_insert(new);
        if found == new {
            self.nodes.push(Node::default());
        }
        found
    }

    fn items(&mut self, node: usize) -> usize {
        let new = self.nodes.len();
        let Some(node) = self.nodes.get_mut(node) else { return node };
        let found = *node.items.get_or_insert(new);
        if found == new {
            self.nodes.push(Node::default());
        }
        found
    }

    /// Whether there is an index at all.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Whether `name` is a computed property.
    pub(super) fn is_computed(&self, name: &str) -> bool {
        self.computed.iter().any(|known| known == name)
    }

    /// Whether anything at or below the property `name` can have an entry.
    pub fn looks_at(&self, name: &str) -> bool {
        !self.passes_over(self.under(Place::TOP, name))
    }

    /// The composite indexes that have entries.
    pub fn composites(&self) -> &[Composite] {
        &self.composites
    }

    /// Whether the entries of a path or of a composite index cost nothing, by the number that
    /// stands for it: those for how long an item lives and for when it was written, since no
    /// charge may depend on that, and those for `id`, since no policy is without them.
    pub(super) fn is_free(&self, number: u64) -> bool {
        self.free.contains(&number)
    }

    /// Whether entries depend on when an item was written.
    pub fn has_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// The members of composite indexes that are `_ts`.
    pub(super) fn times(&self) -> &[Slot] {
        &self.times
    }

    /// Whether whatever stands under these steps has an entry.
    pub fn is_indexed(&self, steps: &[Step<'_>]) -> bool {
        let place = steps.iter().fold(Place::TOP, |place, step| match step {
            Step::Name(name) => self.under(place, name),
            Step::Item => self.within(place),
        });
        !steps.is_empty() && self.takes(place)
    }

    /// Where the property `name` of what is at `place` is.
    pub(super) fn under(&self, place: Place, name: &str) -> Place {
        let inherited = self.says_below(place);
        Place { node: self.node(place).and_then(|node| node.names.get(name).copied()), inherited }
    }

    /// Where the elements of what is at `place` are.
    pub(super) fn within(&self, place: Place) -> Place {
        let inherited = self.says_below(place);
        Place { node: self.node(place).and_then(|node| node.items), inherited }
    }

    /// Whether the value at `place` has an entry.
    pub(super) fn takes(&self, place: Place) -> bool {
        let itself = self.node(place).and_then(|node| node.itself);
        itself.unwrap_or_else(|| self.says_below(place))
    }

    /// Whether nothing at `place` nor below it can be of interest.
    pub(super) fn passes_over(&self, place: Place) -> bool {
        let is_leaf =
            |node: &Node| node.names.is_empty() && node.items.is_none() && node.slots.is_empty();
        !self.takes(place) && !self.says_below(place) && self.node(place).is_none_or(is_leaf)
    }

    /// The members of composite indexes at `place`.
    pub(super) fn slots(&self, place: Place) -> &[Slot] {
        self.node(place).map_or(&[], |node| &node.slots)
    }

    fn says_below(&self, place: Place) -> bool {
        self.node(place).and_then(|node| node.below).unwrap_or(place.inherited)
    }

    fn node(&self, place: Place) -> Option<&Node> {
        place.node.and_then(|node| self.nodes.get(node))
    }
}

/// Stands for a path in entries.
pub fn path_id(steps: &[Step<'_>]) -> u64 {
    let mut spelled = Vec::new();
    for step in steps {
        match step {
            Step::Name(name) => spell_name(name, &mut spelled),
            Step::Item => spell_item(&mut spelled),
        }
    }
    spelled_id(&spelled)
}

/// The spelling of a step into a property.
pub(super) fn spell_name(name: &str, out: &mut Vec<u8>) {
    out.push(b'n');
    out.extend((name.len() as u64).to_be_bytes());
    out.extend(name.as_bytes());
}

/// The spelling of a step into an array.
pub(super) fn spell_item(out: &mut Vec<u8>) {
    out.push(b'i');
}

/// Stands for a path that is spelled so.
pub(super) fn spelled_id(mut spelled: &[u8]) -> u64 {
    // Reading from memory does not fail.
    let hash = murmur3::murmur3_x64_128(&mut spelled, 0).unwrap_or_default();
    let [_, _, _, _, _, _, _, _, id @ ..] = hash.to_be_bytes();
    u64::from_be_bytes(id)
}

fn composite_id(members: &[(Path, Order)]) -> u64 {
    let mut spelled = Vec::new();
    for (path, order) in members {
        spelled.push(match order {
            Order::Ascending => b'a',
            Order::Descending => b'd',
        });
        for name in path.segments() {
            spell_name(name, &mut spelled);
        }
    }
    spelled_id(&spelled)
}
