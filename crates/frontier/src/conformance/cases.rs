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
