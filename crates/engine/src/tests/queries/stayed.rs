//! Which items stay what they are while others, or they themselves, are written between
//! pages.
//!
//! An item stays as long as it is alive under one number: a replace leaves it where it is. Of
//! a list it must come exactly once then. Of a query it must if its rows, and what they are
//! sorted by, were the same after each write, whatever else the write changed.

use std::collections::BTreeMap;

use dayfly_model::value::{Value, order};
use dayfly_sql::Request;

use super::division;
use super::naive::{self, Document};
use super::parts::Piece;
use super::world::World;

/// What is known of the items that have stayed.
pub(super) struct Stayed<'q> {
    side: usize,
    piece: Piece,
    /// The query, if it is none of whole items.
    request: Option<&'q Request>,
    known: BTreeMap<Vec<u8>, Item>,
}

struct Item {
    docno: u64,
    /// Which write made it.
    number: u64,
    /// Its rows, and what they are sorted by.
    rows: Rows,
    is_replaced: bool,
}

type Rows = Vec<(Vec<Vec<u8>>, Value)>;

impl<'q> Stayed<'q> {
    /// All items of a piece.
    pub(super) fn new(
        world: &World,
        side: usize,
        piece: &Piece,
        request: Option<&'q Request>,
    ) -> Stayed<'q> {
        let piece = piece.clone();
        let mut stayed = Stayed { side, piece, request, known: BTreeMap::new() };
        let documents = world.documents(side, &stayed.piece);
        for (number, document) in stayed.numbers(world).into_iter().zip(&documents) {
            let (rows, docno) = (stayed.rows(document), document.tie.1);
            stayed.known.insert(
                place_of(&document.value),
                Item { docno, number, rows, is_replaced: false },
            );
        }
        stayed
    }

    /// After a write, or after time: some may have stayed until now.
    pub(super) fn look(&mut self, world: &World) {
        let (numbers, documents) = (self.numbers(world), world.documents(self.side, &self.piece));
        let now: BTreeMap<_, _> = documents
            .iter()
            .zip(numbers)
            .map(|(document, number)| (place_of(&document.value), (document, number)))
            .collect();
        let mut known = std::mem::take(&mut self.known);
        known.retain(|place, item| {
            let Some((document, number)) = now.get(place) else { return false };
            if document.tie.1 != item.docno {
                return false;
            }
            let is_other = item.number != *number;
            item.number = *number;
            item.is_replaced |= is_other;
            !is_other || self.rows(document) == item.rows
        });
        self.known = known;
    }

    /// Whether the item with this key and id has stayed.
    pub(super) fn has(&self, key: &Value, id: &Value) -> bool {
        self.known.contains_key(&place(key, id))
    }

    /// Whether it was not even written again.
    pub(super) fn is_untouched(&self, key: &Value, id: &Value) -> bool {
        self.known.get(&place(key, id)).is_some_and(|item| !item.is_replaced)
    }

    fn numbers(&self, world: &World) -> Vec<u64> {
        world.alive(self.side, &self.piece).into_iter().map(|(_, item)| item.number).collect()
    }

    fn rows(&self, document: &Document) -> Rows {
        let Some(request) = self.request else { return Rows::new() };
        let answer = naive::answer(request, std::slice::from_ref(document));
        answer.keys.into_iter().zip(answer.rows).collect()
    }
}

fn place_of(item: &Value) -> Vec<u8> {
    place(item.property(division::AT), item.property("id"))
}

fn place(key: &Value, id: &Value) -> Vec<u8> {
    [order::key(key), order::key(id)].concat()
}
