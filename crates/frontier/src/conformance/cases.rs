//! The list of all cases, stamped onto an implementation.

/// One test for each case of the contract, in a module of this name.
///
/// The second argument is a function that makes a [`Place`](crate::conformance::Place) where nothing is
/// kept yet. A test of this crate makes sure that no case is missing here.
#[macro_export]
macro_rules! conformance_suite {
    ($name:ident, $new_place:expr) => {
        mod $name {
            #[allow(unused_imports, reason = "the place may be named by anything that is in sight")]
            use super::*;

            $crate::conformance_cases! { $new_place, configure,
                what_is_added_is_listed_in_order,
                what_is_there_is_changed_enabled_and_disabled,
                what_is_removed_is_gone,
                errors_name_the_thing_at_fault,
                all_changes_of_a_call_are_made_or_none,
                changes_of_a_call_build_on_each_other,
                a_collection_that_is_removed_takes_its_entries_with_it,
                a_seed_that_comes_back_owns_its_entries_again,
                a_collection_that_has_entries_keeps_its_kind,
                a_call_without_changes_changes_nothing,
            }

            $crate::conformance_cases! { $new_place, start,
                a_seed_starts_at_depth_0_and_is_due_now,
                a_target_names_what_is_started_where,
                what_is_not_configured_cannot_be_started,
                starting_again_sets_depth_0_and_due_now_and_keeps_history,
                a_disabled_seed_is_started_for_later,
                a_seed_out_of_its_own_scope_is_not_queued,
                a_collection_that_is_gone_takes_no_seeds,
                a_new_harvest_fetches_again_what_an_earlier_one_is_through_with,
                starting_what_a_worker_has_leaves_its_lease_and_its_owner,
            }

            $crate::conformance_cases! { $new_place, discover,
                a_new_link_is_added_and_a_known_one_kept,
                answers_come_in_the_order_of_the_links_and_pages,
                a_link_that_stands_twice_in_a_batch_is_one_entry,
                of_links_that_stand_twice_in_a_batch_the_best_counts,
                what_is_no_web_url_is_invalid_and_told_why,
                out_of_scope_is_ignored_and_the_rule_is_named,
                the_source_page_gives_seed_depth_and_priority,
                a_page_that_is_no_entry_says_its_seed_and_depth_itself,
                a_page_that_is_no_entry_and_names_no_seed_brings_nothing,
                a_collection_that_is_not_there_takes_nothing,
                a_new_entry_is_due_at_once_and_has_no_history,
                metadata_is_kept_as_it_was_given,
                a_rediscovery_only_improves,
                a_sitemap_raises_the_priority_and_leaves_the_depth,
                a_rediscovery_never_touches_what_was_learned,
                found_out_of_scope_but_stored_in_scope_is_kept,
                found_and_stored_out_of_scope_is_removed,
                what_a_worker_has_is_never_removed_under_it,
                in_scope_of_disabled_profiles_only_is_added_for_later,
                what_was_fetched_as_often_as_asked_is_kept_out,
                a_url_is_one_entry_in_each_collection,
                profiles_say_which_urls_are_one,
                a_call_without_links_changes_nothing,
                discoveries_survive_a_restart,
            }

            $crate::conformance_cases! { $new_place, ownership,
                of_two_seeds_the_rules_choose_one,
                own_domain_lets_the_seed_on_the_domain_win,
                the_seed_that_fetches_earlier_wins_what_is_on_neither_domain,
                a_disabled_seed_is_never_the_earliest,
                a_new_owner_brings_its_own_depth,
                a_new_owner_brings_its_own_order,
                a_leased_entry_never_changes_its_owner,
                what_the_seed_of_the_page_does_not_cover_stays_with_its_owner,
                what_a_seed_that_is_gone_left_goes_to_who_finds_it,
            }

            $crate::conformance_cases! { $new_place, priority,
                hierarchy_goes_by_how_a_page_was_found,
                a_source_on_another_domain_hands_nothing_on,
                the_chain_from_the_homepage_falls_to_the_least,
                raising_a_page_does_not_lift_what_it_linked_before,
                fifo_has_no_priorities,
                linked_adds_a_little_for_each_further_page,
                linked_stays_below_the_homepage,
                risk_goes_by_what_the_address_says,
                a_file_on_a_critical_page_is_critical,
                services_goes_by_address_and_words,
                score_is_that_of_news,
                a_score_moves_exactly_when_it_steps,
                a_score_steps_when_a_change_is_a_day_old,
                a_step_of_the_score_changes_who_goes_first,
            }

            $crate::conformance_cases! { $new_place, lease,
                an_entry_is_handed_out_with_all_a_worker_needs,
                what_was_learned_is_handed_out_too,
                nothing_is_handed_out_twice,
                tokens_are_never_used_twice,
                inside_a_host_the_highest_priority_goes_first,
                arrival_breaks_ties_even_if_another_is_due_earlier,
                due_time_breaks_ties_where_the_order_says_so,
                hosts_take_turns,
                the_host_served_longest_ago_comes_first,
                a_call_hands_out_at_most_so_many_and_so_many_of_a_host,
                a_call_may_be_about_one_collection_or_one_host,
                a_collection_that_is_not_there_is_an_error,
                collections_that_share_a_host_both_get_their_turn,
                every_tenth_is_the_oldest_due,
                the_reserved_share_can_be_chosen,
                what_is_not_due_is_not_handed_out,
                a_disabled_seed_or_profile_puts_its_entries_back,
                a_disabled_collection_hands_out_nothing_and_loses_nothing,
                what_is_out_of_scope_by_now_is_removed_and_told,
                another_seed_takes_over_what_a_removed_one_left,
                a_profile_that_became_slower_puts_its_entries_back,
                what_is_postponed_makes_room_for_the_next,
                a_crowd_that_waits_does_not_hold_up_the_rest,
            }

            $crate::conformance_cases! { $new_place, waiting,
                an_answer_gives_entries_or_a_reason_but_not_both,
                asking_for_nothing_never_says_to_wait_for_the_past,
                empty_if_nothing_is_queued_or_under_way,
                empty_once_all_is_done,
                not_due_until_the_first_is,
                throttled_until_the_delay_is_over,
                throttled_until_the_first_of_several_hosts_opens,
                throttled_by_each_gate_of_a_host,
                the_gate_that_opens_last_counts,
                blocked_for_good_if_only_a_person_can_change_it,
                blocked_while_workers_have_all_there_is,
                blocked_while_as_many_are_in_flight_as_may_be,
                blocked_while_all_that_waits_is_disabled_or_paused,
                what_is_due_soon_ends_a_longer_throttle,
                what_is_due_at_a_host_that_opens_later_waits_for_the_host,
                a_filter_asks_about_its_own_collection_and_host_only,
                the_bell_rings_when_something_arrives,
                the_bell_is_heard_by_one_who_waits,
            }

            $crate::conformance_cases! { $new_place, complete,
                a_success_is_scheduled_by_velocity_and_risk,
                velocity_is_learned_from_the_fourth_scan_on,
                the_first_fetch_is_never_a_change,
                a_change_is_told_in_the_same_call,
                whether_it_changed_is_told_by_the_worker_or_the_fingerprint,
                a_long_fingerprint_is_bounded_and_still_compares,
                failures_touch_nothing_that_was_learned,
                counters_count_failures_in_a_row,
                a_transient_failure_waits_an_hour_and_doubles,
                a_page_that_is_gone_is_never_polled_more_often_than_a_healthy_one,
                a_page_with_fetches_left_that_is_gone_waits_its_normal_interval_too,
                retry_after_lengthens_the_wait_and_never_shortens_it,
                a_profile_says_how_often_at_most,
                disabled_meanwhile_postpones_and_never_removes,
                out_of_scope_meanwhile_is_removed,
                another_seed_takes_over_after_a_fetch,
                length_counts_down_and_ends_the_entry_but_not_its_history,
                an_answer_that_there_is_no_page_counts_down_too,
                failures_do_not_count_down,
                a_limited_page_is_tried_again_so_often_and_then_given_up,
                an_unlimited_page_is_never_given_up,
                history_keeps_the_last_fetches_oldest_first,
                a_report_without_status_or_error_is_refused,
                a_batch_is_answered_in_order_and_counted_once,
                due_times_are_whole_seconds_and_never_too_early,
                jitter_stays_within_its_bounds,
            }

            $crate::conformance_cases! { $new_place, leases,
                a_lease_is_held_for_as_long_as_was_asked,
                a_lease_can_be_extended_from_now,
                a_lease_can_be_shortened_too,
                what_is_given_back_is_as_if_never_taken,
                what_is_given_back_does_not_shorten_the_delay,
                tokens_that_are_not_held_are_refused_and_change_nothing,
                a_token_counts_once_in_a_batch,
                a_lease_that_ran_out_is_refused_and_changes_nothing,
                a_refused_report_leaves_the_lease_of_the_next_worker,
                a_lease_that_ran_out_counts_one_try,
                every_call_takes_back_what_ran_out,
                leases_that_run_out_are_taken_back_one_by_one,
                what_is_fetched_once_is_given_up_after_too_many_lost_leases,
                what_is_fetched_without_end_waits_longer_after_too_many_lost_leases,
                a_long_absence_takes_back_every_lease,
            }

            $crate::conformance_cases! { $new_place, hosts,
                a_host_hands_out_one_entry_and_then_waits,
                the_delay_counts_from_the_lease_and_not_from_the_report,
                delays_are_drawn_between_their_bounds,
                a_clock_that_is_behind_does_not_shorten_a_delay,
                ports_protocols_and_collections_share_the_patience_of_a_host,
                www_is_a_host_of_its_own,
                a_host_may_have_a_delay_of_its_own,
                a_blocked_host_opens_at_its_time_or_never,
                no_more_are_in_flight_than_may_be,
                no_more_are_fetched_than_may_be,
                a_fetch_limit_is_kept_by_workers_at_the_same_time,
                robots_close_a_host_until_they_expire,
                a_host_that_fails_is_left_alone_longer_each_time,
                a_success_that_was_under_way_does_not_end_the_pause,
                a_page_that_fails_is_not_the_fault_of_its_host,
                a_host_that_is_not_known_yet_can_be_set,
                settings_are_replaced_as_a_whole,
                hosts_are_listed_in_the_order_they_became_known,
                only_plain_collections_have_hosts_of_their_own,
            }

            $crate::conformance_cases! { $new_place, jobs,
                a_job_starts_at_its_urls_in_a_collection_of_its_own,
                a_job_fetches_each_page_once,
                a_job_tells_how_far_it_is,
                what_leaves_the_queue_unfetched_counts_as_skipped,
                a_job_is_finished_when_nothing_is_left_and_says_so_once,
                a_job_ends_after_so_many_pages,
                a_job_ends_after_so_many_bytes,
                a_job_ends_after_so_long,
                a_job_that_ends_by_itself_says_so_too,
                a_paused_job_hands_out_nothing_until_it_is_resumed,
                a_cancelled_job_hands_out_nothing_any_more,
                jobs_are_found_by_name,
                a_job_that_cannot_start_leaves_nothing,
                the_name_of_a_job_that_was_removed_is_free_again,
                a_job_may_start_where_a_disabled_seed_is,
                a_job_may_start_where_a_seed_is,
            }

            $crate::conformance_cases! { $new_place, read,
                an_entry_is_found_by_every_form_of_its_url,
                asking_for_what_cannot_be_is_an_error,
                a_list_shows_what_the_filter_asks_for,
                a_list_goes_on_where_it_stopped,
                counts_equal_a_scan_of_everything,
                looking_changes_nothing,
                the_plan_is_what_is_handed_out_then,
                the_plan_keeps_the_share_of_the_oldest,
                the_plan_says_what_each_waits_for,
                the_plan_may_be_about_one_collection_or_host,
                the_plan_knows_what_is_stopped,
                the_log_is_read_from_a_position_on,
            }

            $crate::conformance_cases! { $new_place, explain,
                a_url_is_shown_in_all_its_forms,
                what_is_next_needs_nothing,
                what_others_go_before_knows_its_place,
                what_a_worker_has_waits_for_the_worker,
                what_is_not_due_says_when_and_why,
                a_failure_is_why_it_is_due_when_it_is,
                what_is_through_says_so,
                a_url_never_seen_would_be_added_or_ignored,
                a_stranger_at_a_host_that_is_known_is_shown_its_gates,
                every_closed_gate_is_shown,
                what_is_disabled_says_what_has_to_be_enabled,
                what_is_out_of_scope_by_now_says_so,
                a_paused_job_has_to_be_resumed,
                a_score_is_shown_term_by_term,
                every_order_has_its_terms,
                asking_about_what_cannot_be_is_an_error,
            }

            $crate::conformance_cases! { $new_place, image,
                what_is_imported_equals_what_was_exported,
                what_was_imported_is_handed_out_in_the_same_order,
                an_image_survives_json,
                what_is_leased_is_exported_as_queued,
                an_export_goes_on_where_it_stopped,
                what_is_known_already_stays_as_it_is,
                an_import_takes_all_or_nothing,
                what_comes_into_a_plain_collection_has_no_seed,
                what_was_imported_takes_part_in_everything,
            }

            $crate::conformance_cases! { $new_place, plain,
                urls_are_kept_byte_for_byte,
                the_queue_key_is_given_or_derived,
                a_url_is_one_entry_under_each_key,
                what_has_no_key_or_is_too_long_is_invalid,
                the_date_of_the_client_rules,
                of_equal_dates_the_first_to_come_goes_first,
                queues_take_turns,
                a_call_may_take_several_of_a_queue_and_then_it_waits,
                politeness_is_its_own,
                an_entry_that_was_reported_is_done,
                an_entry_that_was_lost_comes_back,
                limits_hold_for_each_queue,
                a_collection_that_is_removed_leaves_nothing,
                the_same_key_in_two_collections_is_two_queues,
                an_entry_is_found_by_its_url_whatever_its_key,
                any_text_can_be_explained,
            }
        }
    };
}

/// Tests of one module; part of [`conformance_suite!`](crate::conformance_suite).
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($new_place:expr, $module:ident, $($case:ident,)*) => {
        mod $module {
            use super::*;

            $(
                #[tokio::test]
                async fn $case() {
                    let world = $crate::conformance::World::new($new_place);
                    $crate::conformance::$module::$case(world).await;
                }
            )*
        }
    };
}
