//! Home of CLIs that use a mock model, and their command lines.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Cli, Pointing};

/// The variable with the server's URL, for programs that start a CLI which is not [known](Cli::ALL).
pub const URL_VARIABLE: &str = "TEAMSTER_MOCK_URL";

/// CLIs that use a mock model, with a shared home.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PointedHome {
    /// The model's address.
    pub url: String,
    /// The home.
    pub path: PathBuf,
    /// The CLIs, each with its configuration.
    pub clis: Vec<(Cli, Pointing)>,
}

/// Variables that lead CLIs to their [home](PointedHome).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeVariables {
    /// `HOME`.
    Home,
    /// Those of the CLIs' own folders. A CLI that has none of its own keeps its files.
    Folders,
    /// Those of the CLIs' own folders, and of those of XDG, which belong to other programs too.
    FoldersWithXdg,
}

impl PointedHome {
    /// Points CLIs at the model with this address, and writes their files into a home.
    ///
    /// # Errors
    ///
    /// Fails as [`Pointing::write_files`] does, or if a folder cannot be made.
    pub fn new(
        url: impl Into<String>,
        path: impl Into<PathBuf>,
        clis: impl IntoIterator<Item = Cli>,
    ) -> io::Result<Self> {
        let (url, path) = (url.into(), path.into());
        let clis = clis.into_iter().map(|cli| (cli, cli.point_at(&url)));
        let clis: Vec<_> = clis.collect();
        for (_, pointing) in &clis {
            pointing.write_files(&path)?;
            for (_, folder) in &pointing.folders {
                std::fs::create_dir_all(path.join(folder))?;
            }
        }
        Ok(Self { url, path, clis })
    }

    /// Returns the variables to set and those to unset for a program that starts these CLIs.
    pub fn environment(
        &self,
        home: HomeVariables,
    ) -> (BTreeMap<String, String>, Vec<&'static str>) {
        let pointings = || self.clis.iter().map(|(_, pointing)| pointing);
        let own = pointings().flat_map(|pointing| pointing.env.iter().cloned());
        let mut set: BTreeMap<_, _> = own.collect();
        let keep_home = home != HomeVariables::Home;
        if keep_home {
            let with_xdg = home == HomeVariables::FoldersWithXdg;
            let folders = pointings().flat_map(|pointing| &pointing.folders);
            let folders = folders.filter(|(name, _)| with_xdg || !name.starts_with("XDG_"));
            let path = |folder| text(&self.path.join(folder));
            set.extend(folders.map(|(variable, folder)| ((*variable).to_owned(), path(folder))));
        } else {
            set.insert("HOME".to_owned(), text(&self.path));
        }
        let elsewhere = pointings().flat_map(|pointing| &pointing.elsewhere);
        let is_kept = |name: &str| keep_home && name.starts_with("XDG_");
        let unset = elsewhere
            .copied()
            .filter(|name| !set.contains_key(*name) && !is_kept(name))
            .collect();
        (set, unset)
    }

    /// Returns the command line of a CLI for this prompt, with `env` and its variables in front. `program` are the words that
    /// start the CLI.
    pub fn command_line(&self, program: &[&str], pointing: &Pointing, prompt: &str) -> Vec<String> {
        let own = |words: &[&str]| words.iter().copied().map(str::to_owned).collect::<Vec<_>>();
        let mut words = own(&["env"]);
        let elsewhere = pointing.elsewhere.iter();
        words.extend(elsewhere.flat_map(|name| own(&["-u", name])));
        words.push(format!("HOME={}", self.path.display()));
        let env = pointing.env.iter();
        words.extend(env.map(|(name, value)| format!("{name}={value}")));
        words.extend(own(program));
        words.extend(pointing.args.iter().cloned());
        words.extend(own(pointing.subcommand.as_slice()));
        words.extend(pointing.model_args());
        words.extend(own(pointing.before_prompt));
        words.push(prompt.to_owned());
        words
    }
}

impl Pointing {
    /// Returns the environment of the CLI with this home. Leaves out [`for_root`](Self::for_root) and `PATH`.
    pub fn environment(&self, home: &Path) -> BTreeMap<String, String> {
        let mut env: BTreeMap<_, _> = self.env.iter().cloned().collect();
        env.insert("HOME".to_owned(), text(home));
        env
    }

    /// Returns the environment of the CLI with this home, also as root. Leaves out `PATH`.
    pub fn environment_for_root(&self, home: &Path) -> BTreeMap<String, String> {
        let mut env = self.environment(home);
        let for_root = self.for_root.iter();
        env.extend(for_root.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        env
    }

    /// Returns the arguments that choose the model, if the CLI's default is not suitable.
    pub fn model_args(&self) -> impl Iterator<Item = String> {
        let model = self.model.iter();
        model.flat_map(|model| ["--model".to_owned(), model.clone()])
    }

    /// Adds the CLI's flags and model to the arguments of a caller. A model that the caller chooses is kept.
    pub fn arguments(&self, own: &[OsString]) -> Vec<OsString> {
        let mut all: Vec<_> = self.args.iter().map(OsString::from).collect();
        let (head, tail) = match own.split_first() {
            Some((first, _)) if self.subcommand.is_some_and(|it| first == it) => own.split_at(1),
            _ => (&[][..], own),
        };
        all.extend_from_slice(head);
        if !own.iter().any(names_a_model) {
            all.extend(self.model_args().map(OsString::from));
        }
        all.extend_from_slice(tail);
        all
    }
}

/// Returns `true` if the argument selects a model: `--model X`, `--model=X`, `-m X`, `-m=X` or `-mX`. The CLIs have
/// no other short flag that begins with `m`.
fn names_a_model(argument: &OsString) -> bool {
    let argument = argument.to_string_lossy();
    let is_short = argument.starts_with("-m");
    is_short || argument == "--model" || argument.starts_with("--model=")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn redirected_cli_reaches_no_other_service() {
        for cli in Cli::ALL {
            let folder = tempfile::tempdir().unwrap();
            let home = folder.path();
            let pointed = PointedHome::new("http://127.0.0.1:1", home, [cli]).unwrap();
            let (set, unset) = pointed.environment(HomeVariables::Home);
            assert_eq!(set["HOME"], text(home));
            let folders = cli.point_at("").folders;
            for (variable, _) in &folders {
                assert!(unset.contains(variable), "{cli}: {variable}");
            }
            let (set, unset) = pointed.environment(HomeVariables::FoldersWithXdg);
            assert_eq!(set.get("HOME"), None);
            for (variable, folder) in &folders {
                assert_eq!(set[*variable], text(&home.join(folder)));
                assert!(home.join(folder).is_dir());
                assert!(!unset.contains(variable), "{cli}: {variable}");
            }
            let (set, unset) = pointed.environment(HomeVariables::Folders);
            for (variable, _) in &folders {
                assert_ne!(set.contains_key(*variable), variable.starts_with("XDG_"));
                assert!(!unset.contains(variable), "{cli}: {variable}");
            }
        }
    }

    #[test]
    fn model_follows_the_subcommand_and_the_callers_one_is_kept() {
        let pointing = Pointing {
            args: vec!["-c".into(), "a=1".into()],
            model: Some("m".into()),
            ..Pointing::default()
        };
        let words = |subcommand, line: &str| {
            let mut pointing = pointing.clone();
            pointing.subcommand = subcommand;
            let line: Vec<_> = line.split(' ').map(OsString::from).collect();
            let all = pointing.arguments(&line);
            all.join(OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(words(Some("exec"), "exec hi"), "-c a=1 exec --model m hi");
        assert_eq!(words(Some("run"), "run hi"), "-c a=1 run --model m hi");
        assert_eq!(words(None, "-p hi"), "-c a=1 --model m -p hi");
        assert_eq!(words(None, "-p hi --model x"), "-c a=1 -p hi --model x");
        for own in ["-m x", "-m=x", "-mx", "--model=x"] {
            let line = format!("exec {own} hi");
            assert_eq!(words(Some("exec"), &line), format!("-c a=1 {line}"));
        }
    }
}
