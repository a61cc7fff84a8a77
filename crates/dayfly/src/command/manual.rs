//! What helps with typing and reading: completions for shells, and pages for `man`.
//! Both are made from the help texts.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::print;

/// Completions for a shell.
#[derive(Clone, Debug, Args)]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Prints them.
    pub(super) fn run(&self, mut whole: clap::Command) -> Result<(), String> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut whole, "dayfly", &mut script);
        print(&String::from_utf8_lossy(&script)).map(drop)
    }
}

/// The manual.
#[derive(Clone, Debug, Args)]
pub(crate) struct Manual {
    /// A folder for the pages of all commands, which must be there. Without it the
    /// first page is printed.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Manual {
    /// Prints the first page, or writes all.
    pub(super) fn run(&self, whole: clap::Command) -> Result<(), String> {
        let Some(folder) = &self.folder else {
            let mut page = Vec::new();
            return clap_mangen::Man::new(whole)
                .render(&mut page)
                .map_err(|error| format!("The page could not be made: {error}."))
                .and_then(|()| print(&String::from_utf8_lossy(&page)).map(drop));
        };
        clap_mangen::generate_to(whole, folder).map_err(|error| {
            format!("The pages could not be written into {}: {error}.", folder.display())
        })
    }
}
