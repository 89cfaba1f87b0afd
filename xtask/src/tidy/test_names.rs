//! Names of tests: subject, condition, result, as in `retract_without_id_is_dropped`.

use super::{File, Problem, Tree};

/// Maximum number of characters of a name.
const LONGEST: usize = 60;

/// Beginnings of names that leave out the subject.
const WITHOUT_SUBJECT: &[&str] = &["it_", "one_", "nothing_", "who_", "what_"];

/// Older names by the folder of their crate. This list may only shrink.
const OLDER: &[(&str, &[&str])] = &[
    (
        "crates/conformance/",
        &[
            "a_cell_that_was_not_played_is_kept_as_long_as_its_facts_are_declared",
            "a_version_that_lacks_a_scenario_or_tells_another_story_has_gaps",
            "every_supported_version_that_is_recorded_plays_all_scenarios_as_expected",
            "the_model_continues_after_a_broken_turn_whether_it_is_remembered_or_not",
            "what_is_in_the_output_should_have_been_reported",
        ],
    ),
    (
        "crates/fleet/",
        &[
            "a_consumer_that_all_workers_share_is_not_made_again_ten_times_a_second",
            "a_large_description_arrives_whole_and_its_log_outlives_the_copy",
            "a_limit_holds_the_agent_back_on_all_workers_with_the_login_until_it_resets",
            "a_limit_that_ends_earlier_does_not_replace_the_one_that_holds",
            "a_machine_that_took_the_name_of_a_lost_one_does_not_stand_for_it",
            "a_reader_of_an_ended_run_gets_an_end_whatever_is_left_of_its_log",
            "a_record_that_is_changed_after_the_claim_starts_nothing_that_is_not_permitted",
            "a_record_with_a_long_description_leaves_its_result_to_the_log",
            "a_refusal_is_reported_again_when_it_changes_or_is_about_to_pass",
            "a_refusal_is_the_reason_only_if_no_other_worker_may_take_the_run",
            "a_run_for_whose_changes_the_fleet_has_no_room_says_where_they_are",
            "a_run_is_carried_out_once_and_its_log_is_copied_byte_for_byte",
            "a_run_is_hinted_again_while_its_queue_has_a_hint_that_nothing_can_take",
            "a_run_outlives_its_worker_and_the_server_and_is_not_started_again",
            "a_run_that_ended_before_its_machine_was_lost_is_ended_by_another",
            "a_run_that_is_cancelled_before_its_agent_starts_is_never_started",
            "a_run_that_is_to_stop_is_not_started_by_a_worker_that_is_back",
            "a_run_that_was_given_up_is_stopped_where_it_is_and_starts_no_more",
            "a_run_whose_claim_is_damaged_on_the_disk_ends_without_an_agent",
            "a_session_is_not_set_to_a_mode_that_the_policy_does_not_allow",
            "a_worker_that_is_asked_from_elsewhere_ends_and_interrupts_what_it_has_after_a_while",
            "a_worker_that_is_killed_between_two_steps_continues_when_it_is_back",
            "an_entry_and_a_result_of_35_mb_and_a_prompt_of_8_mib_arrive_byte_for_byte",
            "an_older_layout_is_brought_up_to_date_with_its_records_and_hints",
            "consumers_and_the_presence_of_workers_are_not_asked_for_again_and_again",
            "each_user_learns_its_role_and_one_without_a_role_what_it_lacks",
            "neither_a_session_nor_the_records_of_another_owner_are_in_reach",
            "no_submitter_may_read_by_a_request_whose_subject_is_in_its_body",
            "owners_that_cannot_be_in_a_subject_and_servers_that_are_not_there_are_refused",
            "readers_that_take_nothing_leave_the_threads_of_the_runtime_free",
            "streams_are_made_once_and_those_of_another_program_are_refused",
            "the_newest_message_that_was_stored_is_known_until_it_is_forgotten",
            "the_runs_of_a_machine_that_is_cut_off_are_asked_at_once_and_shown_as_unknown",
            "what_a_policy_does_not_allow_is_refused_by_the_field",
            "what_a_policy_does_not_allow_waits_with_the_reason",
            "what_a_run_has_left_can_be_read_as_soon_as_its_log_has_its_end",
            "what_is_gone_is_waited_for_once",
            "what_leaves_the_machine_has_the_id_of_the_fleet_and_the_agents_words_stay",
            "what_one_owner_writes_changes_nothing_of_another",
            "what_unpacks_to_more_than_an_entry_is_refused",
        ],
    ),
];

pub(super) fn check(tree: &Tree, problems: &mut Vec<Problem>) {
    let mut seen = Vec::new();
    for file in tree.with(".rs") {
        let older = older_in(&file.path);
        for (number, name) in tests_of(file) {
            if older.contains(&name) {
                seen.push(name);
            } else if let Some(fault) = fault_of(name) {
                let message =
                    format!("the test {name} {fault}: name subject, condition and result");
                problems.push(file.problem(number, message));
            }
        }
    }
    for (folder, names) in OLDER {
        let Some(first) = tree.with(".rs").find(|file| file.path.starts_with(folder)) else {
            continue;
        };
        for name in names.iter().filter(|name| !seen.contains(name)) {
            let message = format!(
                "there is no test {name}: remove it from `OLDER` in xtask/src/tidy/test_names.rs"
            );
            problems.push(first.problem(0, message));
        }
    }
}

fn older_in(path: &str) -> &'static [&'static str] {
    let list = OLDER.iter().find(|(folder, _)| path.starts_with(folder));
    list.map_or(&[], |(_, names)| *names)
}

/// Returns what is wrong with the name of a test.
fn fault_of(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return Some(format!(
            "has {} characters, more than {LONGEST}",
            name.len()
        ));
    }
    let beginning = WITHOUT_SUBJECT
        .iter()
        .find(|word| name.starts_with(**word))?;
    Some(format!("begins with `{beginning}`"))
}

/// Returns the names of the functions with an attribute `#[test]`, or `#[tokio::test]`, and their lines.
fn tests_of(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    file.lines().filter_map(move |(number, line)| {
        let line = line.trim_start();
        if let Some(attribute) = line.strip_prefix("#[") {
            let path = attribute.split(['(', ']']).next().unwrap_or_default();
            is_test |= path == "test" || path.ends_with("::test");
            return None;
        }
        let name = name_of_function(line)?;
        std::mem::take(&mut is_test).then_some((number, name))
    })
}

/// Returns the name of the function that begins in a line.
fn name_of_function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_plain = before
        .split_whitespace()
        .all(|word| matches!(word, "async" | "pub" | "const"));
    let (name, _) = rest.split_once(['(', '<'])?;
    is_plain.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::tests::problems_of;

    #[test]
    fn long_names_and_names_without_a_subject_are_found() {
        let long = "a".repeat(61);
        let source = format!(
            "#[test]\nfn what_is_wrong() {{}}\n\n#[tokio::test(start_paused = true)]\n#[cfg(unix)]\nasync fn {long}() {{}}\n\n\
             fn one_helper() {{}}\n\n#[test]\nfn retract_without_id_is_dropped() {{}}\n"
        );
        assert_eq!(
            problems_of(&[check], &[("crates/a/src/tests.rs", &source)]),
            [
                "crates/a/src/tests.rs:2: the test what_is_wrong begins with `what_`: name subject, condition and result"
                    .to_owned(),
                format!(
                    "crates/a/src/tests.rs:6: the test {long} has 61 characters, more than 60: name subject, condition and result"
                ),
            ]
        );
    }

    #[test]
    fn older_names_are_allowed_and_reported_when_they_are_gone() {
        let (folder, names) = super::OLDER[0];
        let all = format!("#[test]\nfn {}() {{}}\n", names.join("() {}\n#[test]\nfn "));
        let path = format!("{folder}src/tests.rs");
        let none: [&str; 0] = [];
        assert_eq!(problems_of(&[check], &[(&path, &all)]), none);

        let gone = format!(
            "{path}: there is no test {}: remove it from `OLDER` in xtask/src/tidy/test_names.rs",
            names[0]
        );
        let rest = all.replacen(names[0], "another_name", 1);
        assert_eq!(problems_of(&[check], &[(&path, &rest)]), [gone]);
    }
}
