//! What a query asks of indexes beside its filter.
//!
//! ```text
//! SELECT STARTSWITH(c.name, "a"), MAX(c.price)    /name and /price
//! GROUP BY c.kind, LOWER(c.name)                  /kind, and nothing that is a path
//! ```

use super::program::{Code, Program, Select};
use super::sieve::{IndexStep, Sieve, SieveReader};

/// How many paths are told.
const USES_MAX: usize = 64;

impl Program {
    /// The paths that functions and aggregates read in what is selected, where an index
    /// knows of them.
    pub fn uses(&self) -> Vec<Vec<IndexStep>> {
        let select = self.innermost();
        let mut uses = Uses { reader: SieveReader::over(self, select), paths: Vec::new() };
        uses.code(&select.projection);
        for (_, code) in &select.aggregates {
            match uses.reader.place(code) {
                Some(path) => uses.add(path),
                None => uses.code(code),
            }
        }
        uses.paths
    }

    /// What it groups by; `None` is no path.
    pub fn groups(&self) -> Vec<Option<Vec<IndexStep>>> {
        let select = self.innermost();
        let reader = SieveReader::over(self, select);
        select.group_by.iter().map(|code| reader.place(code)).collect()
    }

    /// The select that items are brought to.
    pub(super) fn innermost(&self) -> &Select {
        self.stages.first().map_or(&self.select, |stage| &stage.select)
    }
}

struct Uses<'p> {
    reader: SieveReader<'p>,
    paths: Vec<Vec<IndexStep>>,
}

impl Uses<'_> {
    fn add(&mut self, path: Vec<IndexStep>) {
        if self.paths.len() < USES_MAX {
            self.paths.push(path);
        }
    }

    fn code(&mut self, code: &Code) {
        match code {
            Code::Call(name, _, arguments) => {
                let sieve = self.reader.called(name, arguments);
                self.sieve(sieve);
                self.codes(arguments);
            }
            Code::Array(codes) | Code::Or(codes) | Code::And(codes) | Code::Coalesce(codes) => {
                self.codes(codes);
            }
            Code::Object(members) => members.iter().for_each(|(_, code)| self.code(code)),
            Code::Unary(_, operand) => self.code(operand),
            Code::Chain(first, rest) => {
                self.code(first);
                for (_, code) in rest {
                    self.code(code);
                }
            }
            Code::Conditional(operands) => self.codes(operands.as_slice()),
            _ => {}
        }
    }

    fn codes(&mut self, codes: &[Code]) {
        for code in codes {
            self.code(code);
        }
    }

    fn sieve(&mut self, sieve: Sieve) {
        match sieve {
            Sieve::All | Sieve::Nothing => {}
            Sieve::Span(span) => self.add(span.path),
            Sieve::And(members) | Sieve::Or(members) => {
                for member in members {
                    self.sieve(member);
                }
            }
        }
    }
}
