//! Acquiring and releasing a lease.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use teamster_core::provider::ConfigEdit;

use super::Released;
use super::content;
use super::disk::{Disk, Step};
use super::folder::{Folder, Lock, Patience, Stop, busy, refused};
use super::journal::{Entry, Holder, Journal, union};
use super::paths::Location;
use crate::edit::EditError;

/// A lease that is held.
#[derive(Debug)]
pub(super) struct Held {
    disk: Disk,
    pub(super) file: PathBuf,
    /// Location of the journal at the start of the lease.
    location: Location,
    id: String,
    /// The journal at the start of the lease, in case its folder is removed early.
    journal: Journal,
    /// Lock of the holder's file.
    _lock: Lock,
}

/// Retries an operation until the state of the disk does not change meanwhile.
fn until_done<T>(disk: &Disk, mut attempt: impl FnMut() -> Result<T, Stop>) -> Result<T, Stop> {
    let mut patience = Patience::new(disk.patience);
    loop {
        match attempt() {
            Err(Stop::Again) if patience.wait() => {}
            Err(Stop::Again) => return Err(busy(disk)),
            done => return done,
        }
    }
}

fn unreadable(error: &EditError) -> Stop {
    Stop::Failed(format!("{error}; repair the file"))
}

/// Acquires a lease: puts entries into a file.
pub(super) fn acquire(disk: &Disk, file: &Path, edit: &ConfigEdit) -> Result<Held, Stop> {
    let entries = union([&*edit.entries]);
    if let Some((name, _)) = edit.entries.iter().find(|entry| !entries.contains(entry)) {
        return Err(Stop::Failed(format!("two servers have the name `{name}`")));
    }
    // Checked before anything is created beside a possible device.
    content::look(file)?;
    until_done(disk, || {
        let folder = Folder::enter(disk, file, true)?.ok_or(Stop::Again)?;
        let Some(journal) = folder.journal.clone() else {
            return begin(&folder, edit, &entries).map_err(|stop| {
                match (leave(disk, folder, None), stop) {
                    (Err(_), Stop::Failed(what)) => Stop::Failed(format!(
                        "{what}; after that, restore {} to remove what is left of it",
                        file.display()
                    )),
                    (_, stop) => stop,
                }
            });
        };
        let living = folder.living(None)?;
        if living.is_empty() {
            undo(folder, journal, None)?;
            return Err(Stop::Again);
        }
        // If this fails, the live holders undo it together with their own changes.
        join(&folder, journal, &living, edit, &entries).inspect_err(|_| {
            let _ = leave(disk, folder, None);
        })
    })
}

/// Begins the first lease of a file.
fn begin(folder: &Folder, edit: &ConfigEdit, entries: &[Entry]) -> Result<Held, Stop> {
    let table = &edit.table;
    folder.hide()?;
    let original = folder.keep_original()?;
    let text = original.as_ref().map(|content| content.text.clone());
    let mut journal = Journal::new(
        folder.location.name(),
        table.format,
        table.key,
        text,
        edit.new_file,
    );
    let current = original.as_ref().map(|content| &*content.text);
    refuse_names_of_the_user(&journal, entries)?;
    let next = journal
        .plan(current, entries)
        .map_err(|error| unreadable(&error))?;
    if next.is_some() {
        journal.folders = missing_folders(folder);
    }
    let (lock, id) = folder.add_holder()?;
    journal.holders.push(Holder {
        id: id.clone(),
        entries: entries.to_vec(),
    });
    // The undo now has all it needs. The journal must be on the disk before the change.
    folder.write_journal(&journal)?;
    folder.sync_location()?;
    if let Some(next) = &next
        && Some(&**next) != current
    {
        make_folders(folder, &mut journal)?;
        folder.replace(original.as_ref(), next)?;
    }
    Ok(Held {
        disk: folder.disk.clone(),
        file: folder.location.file(),
        location: folder.location.clone(),
        id,
        journal,
        _lock: lock,
    })
}

/// Adds a lease of a file.
fn join(
    folder: &Folder,
    mut journal: Journal,
    living: &[String],
    edit: &ConfigEdit,
    entries: &[Entry],
) -> Result<Held, Stop> {
    let table = &edit.table;
    if journal.format() != table.format || journal.key != table.key {
        return Err(Stop::Failed(format!(
            "another run uses its table `{}`; wait for its end",
            journal.key
        )));
    }
    journal.holders.retain(|holder| living.contains(&holder.id));
    let theirs = union(journal.holders.iter().map(|holder| &*holder.entries));
    if let Some((name, _)) = entries.iter().find(|(name, definition)| {
        theirs
            .iter()
            .any(|(other, other_definition)| other == name && other_definition != definition)
    }) {
        return Err(Stop::Failed(format!(
            "another run has a server `{name}` with other settings in it; choose another name, or wait \
             for its end"
        )));
    }
    let (lock, id) = folder.add_holder()?;
    journal.holders.push(Holder {
        id: id.clone(),
        entries: entries.to_vec(),
    });
    settle(folder, &mut journal, Some(entries))?;
    Ok(Held {
        disk: folder.disk.clone(),
        file: folder.location.file(),
        location: folder.location.clone(),
        id,
        journal,
        _lock: lock,
    })
}

/// Updates the file after holders were added to or removed from the journal.
fn settle(folder: &Folder, journal: &mut Journal, new: Option<&[Entry]>) -> Result<(), Stop> {
    let found = folder.read()?;
    let current = found.as_ref().map(|content| &*content.text);
    let mut wanted = union(journal.holders.iter().map(|holder| &*holder.entries));
    if new.is_none() && (current.is_none() || same(&wanted, &journal.entries)) {
        // A file that was removed meanwhile stays removed, and one that needs no change is not written.
        return Ok(());
    }
    let mut looked = journal.clone();
    looked.look(current).map_err(|error| unreadable(&error))?;
    refuse_names_of_the_user(&looked, new.unwrap_or_default())?;
    // An entry of ours that another program has changed is no longer ours.
    let taken = looked.base_names().map_err(|error| unreadable(&error))?;
    wanted.retain(|(name, _)| !taken.contains(name));
    let complete = same(&wanted, &journal.entries) && {
        let there = names(journal, current)?;
        wanted.iter().all(|(name, _)| there.contains(name))
    };
    if complete {
        return folder.write_journal(journal);
    }
    *journal = looked;
    let next = journal
        .plan(current, &wanted)
        .map_err(|error| unreadable(&error))?;
    if next.as_deref() != current {
        if next.is_some() {
            journal.folders.extend(missing_folders(folder));
            journal.folders.sort_unstable();
            journal.folders.dedup();
        }
        journal.rewritten = true;
        folder.write_journal(journal)?;
        make_folders(folder, journal)?;
        match (&next, &found) {
            (Some(next), _) => folder.replace(found.as_ref(), next)?,
            (None, Some(old)) => {
                folder.remove_target(old)?;
                folder.sync_folder()?;
            }
            (None, None) => {}
        }
    }
    // A removed entry must not be taken for ours if the user adds the same one.
    if journal.settle(next, wanted) {
        folder.write_journal(journal)?;
    }
    Ok(())
}

fn names(journal: &Journal, text: Option<&str>) -> Result<Vec<String>, Stop> {
    crate::edit::names(text.unwrap_or_default(), journal.format(), &journal.key)
        .map_err(|error| unreadable(&error))
}

fn same(a: &[Entry], b: &[Entry]) -> bool {
    a.len() == b.len() && a.iter().all(|entry| b.contains(entry))
}

fn refuse_names_of_the_user(journal: &Journal, entries: &[Entry]) -> Result<(), Stop> {
    let taken = journal.base_names().map_err(|error| unreadable(&error))?;
    match entries.iter().find(|(name, _)| taken.contains(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Stop::Failed(format!(
            "it already has a server `{name}`; choose another name"
        ))),
    }
}

/// Returns the missing folders on the path to the file.
fn missing_folders(folder: &Folder) -> Vec<usize> {
    (1..folder.location.rest.len())
        .filter(|parts| !folder.location.way(*parts).is_dir())
        .collect()
}

fn make_folders(folder: &Folder, journal: &mut Journal) -> Result<(), Stop> {
    for parts in missing_folders(folder) {
        let path = folder.location.way(parts);
        match folder.disk.make_folder(Step::MakeFolder, &path, false) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // Another process has just created it, so it is not ours to remove.
                journal.folders.retain(|made| *made != parts);
                folder.write_journal(journal)?;
                return Err(Stop::Again);
            }
            Err(error) => return Err(refused("make", &path, &error)),
        }
    }
    Ok(())
}

impl Held {
    /// Ends the lease.
    pub(super) fn release(&self) -> Result<Released, Stop> {
        until_done(&self.disk, || {
            match Folder::enter(&self.disk, &self.file, false)? {
                Some(folder) if folder.journal.is_some() => {
                    leave(&self.disk, folder, Some(&self.id))
                }
                folder => self.release_without_journal(folder),
            }
        })
    }

    /// Releases the lease by its own copy of the journal, because the journal was removed.
    fn release_without_journal(&self, folder: Option<Folder>) -> Result<Released, Stop> {
        let folder = match folder {
            Some(folder) => folder,
            None if content::look(&self.file)?.is_none() => return Ok(Released::Cleaned),
            None => Folder::enter(&self.disk, &self.file, true)?.ok_or(Stop::Again)?,
        };
        let mut journal = self.journal.clone();
        journal.only(&self.id);
        // The folders are relative to the original location of the journal.
        let folders = std::mem::take(&mut journal.folders);
        let released = undo(folder, journal, Some(&self.id))?;
        for parts in folders.into_iter().rev() {
            let path = self.location.way(parts);
            self.disk
                .remove_folder(Step::RemoveFolder, &path)
                .map_err(|error| refused("remove", &path, &error))?;
        }
        Ok(released)
    }
}

/// Removes entries that no live holder needs. Without a live holder, removes all of them and the journal.
fn leave(disk: &Disk, folder: Folder, own: Option<&str>) -> Result<Released, Stop> {
    // The journal may have changed since the folder was entered.
    let Some(mut journal) = folder.read_journal()? else {
        folder.remove(own)?;
        return Ok(Released::Nothing);
    };
    let living = folder.living(own)?;
    if living.is_empty() {
        return undo(folder, journal, own);
    }
    journal.holders.retain(|holder| living.contains(&holder.id));
    until_done(disk, || settle(&folder, &mut journal.clone(), None))?;
    if let Some(own) = own {
        folder.drop_holder(own)?;
    }
    Ok(Released::Shared)
}

/// Restores the file and removes the journal.
fn undo(folder: Folder, mut journal: Journal, own: Option<&str>) -> Result<Released, Stop> {
    until_done(&folder.disk, || {
        put_back(&folder, &mut journal)?;
        // Synced before the journal is removed.
        folder.sync_folder()
    })?;
    folder.finish(&journal, own)?;
    Ok(if journal.edited {
        Released::Cleaned
    } else {
        Released::Restored
    })
}

fn put_back(folder: &Folder, journal: &mut Journal) -> Result<(), Stop> {
    let Some(found) = folder.read()? else {
        // Removed by us or by the user.
        journal.edited |= journal.base.is_some();
        return Ok(());
    };
    journal
        .look(Some(&found.text))
        .map_err(|error| unreadable(&error))?;
    match &journal.base {
        Some(base) if *base == found.text && !journal.rewritten => Ok(()),
        Some(_) if !journal.edited && folder.restore_original(&found)? => Ok(()),
        Some(base) if *base == found.text => Ok(()),
        Some(base) => folder.replace(Some(&found), base),
        None => folder.remove_target(&found),
    }
}

/// Undoes the changes of dead holders.
pub(super) fn restore(disk: &Disk, file: &Path) -> Result<Released, Stop> {
    let mut done = Released::Nothing;
    // There are several only if a run was killed while it searched for the location.
    for location in Location::taken(file) {
        let Some(folder) = Folder::find(disk, &location)? else {
            continue;
        };
        let released = leave(disk, folder, None)?;
        if released == Released::Shared {
            return Ok(released);
        }
        if released != Released::Nothing {
            done = released;
        }
    }
    Ok(done)
}

/// Returns the number of live leases and the servers that may be in the file, or `None` without a journal folder.
pub(super) fn pending(disk: &Disk, file: &Path) -> Result<Option<(usize, Vec<String>)>, Stop> {
    for location in Location::taken(file) {
        if let Some(folder) = Folder::find(disk, &location)? {
            let living = folder.count_living()?;
            let servers = folder.journal.as_ref().map(Journal::names);
            return Ok(Some((living, servers.unwrap_or_default())));
        }
    }
    Ok(None)
}
