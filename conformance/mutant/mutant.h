/* mutant.h -- a backend of seeded bugs: each engine is cpu_ref's `direct` engine, misused or its result damaged in a way that
 * occurred in a real library. The conformance suite must catch every one of them (t_mutants.tap).
 *
 * A bug is up to three hooks around the delegation, in the file of its family, and one line in mutants.h:
 *   alter    at prepare: changes the problem that `direct` is given (attributes, dims, strides)
 *   before   at run: changes what `direct` reads, in copies
 *   after    at run: changes what it wrote */
#ifndef QUERN_MUTANT_H
#define QUERN_MUTANT_H
#include <stdbool.h>
#include <stdlib.h>
#include <quern/kit.h>

enum { MUT_VALUES = 64, MUT_MORE = 8, MUT_SCRATCH = 8 };

/* What an engine keeps from prepare to run. */
struct mut_kept {
  const struct mut_bug *bug;
  qn_part *part;                          /* of direct, on the altered problem */
  qn_value value[MUT_VALUES];             /* the original problem */
  qn_value altered[MUT_VALUES];
  int32_t  first[QN_MAX_ROLES + 1], arg[MUT_VALUES];
  qn_node  node;
  uint64_t attr[64];                      /* a copy that alter may change */
  uint64_t original[64];                  /* the original */
  qn_numerics numerics;                   /* plain sums; alter may claim others */
  const qn_request *request;              /* during prepare */
  int32_t  number[MUT_VALUES];            /* indices of the request's values */
  uint32_t n_ops;                         /* taken: 1, or 2 after mut_take */
  int32_t  between;                       /* the value from one op to the other */
  qn_node  more;                          /* the second op */
  qn_value more_value[MUT_MORE];
  int32_t  more_number[MUT_MORE], more_first[QN_MAX_ROLES + 1];
  uint64_t more_attr[32];
};

/* One execution. */
struct mut_call {
  const struct mut_kept *k;
  const qn_launch *launch;
  void *ptr[MUT_VALUES];                  /* what direct gets */
  void *more[MUT_MORE];                   /* of the second op */
  void *scratch[MUT_SCRATCH];
  int   n_scratch;
};

struct mut_bug {
  const char *name;
  uint32_t    op;
  bool (*alter)(struct mut_kept *);       /* false: the bug cannot show on this problem, so the engine refuses */
  void (*before)(struct mut_call *);
  void (*after)(struct mut_call *);
  uint64_t    workspace;                  /* bytes asked for besides direct's */
};

/* mutant.c: what hooks use. Roles are QN_ROLE_...; a role that is absent gives NULL. */
const qn_value *mut_value(const struct mut_kept *k, uint32_t role);
qn_value       *mut_altered(struct mut_kept *k, uint32_t role);
void           *mut_pointer(const struct mut_call *c, uint32_t role);            /* as the caller gave it */
void           *mut_copy(struct mut_call *c, uint32_t role);    /* an input's memory, copied; direct gets the copy */
void           *mut_keep(struct mut_call *c, uint32_t role);    /* a copy of what an output held before */
int64_t         mut_offset(const qn_value *v, int64_t i, int64_t *at);           /* of packed index i; at: its place */
double          mut_get(const qn_value *v, const void *p, int64_t i);
void            mut_put(const qn_value *v, void *p, int64_t i, double x);

/* For alter: takes the request's second op too. mut_take: that op reads this output and gives a result of its dims; direct writes into the
 * result, and the hook `after` applies the second op. mut_take_before: that op produces this input, which the hook `before` supplies
 * through mut_scratch. False: there is no such op. */
bool            mut_take(struct mut_kept *k, uint32_t output_role, uint32_t second_op);
bool            mut_take_before(struct mut_kept *k, uint32_t input_role, uint32_t second_op);
void           *mut_scratch(struct mut_call *c, uint32_t role);
const qn_value *mut_more(const struct mut_call *c, uint32_t role, void **p);     /* of the second op */

/* The hooks that mutants.h names. */
bool mm_drop_k_tail(struct mut_kept *);
bool mm_needs_bias(struct mut_kept *);
bool mm_beta_ignored(struct mut_kept *);
bool mm_alpha_on_c(struct mut_kept *);
bool mm_needs_beta(struct mut_kept *);
bool mm_plain(struct mut_kept *);
bool mm_narrow(struct mut_kept *);
bool mm_batch_of_b_stuck(struct mut_kept *);
bool mm_square_b_transposed(struct mut_kept *);
bool mm_whole_tiles(struct mut_kept *);
bool mm_long(struct mut_kept *);
bool cv_wrong_pad_side(struct mut_kept *);
bool cv_pads_swapped(struct mut_kept *);
bool cv_dilation_ignored(struct mut_kept *);
bool cv_layout_ignored(struct mut_kept *);
bool cv_stride_ignored(struct mut_kept *);
bool cv_last_image_dropped(struct mut_kept *);
bool cv_winograd(struct mut_kept *);
bool sm_last_axis_always(struct mut_kept *);
bool pl_padding_miscounted(struct mut_kept *);
bool pl_stride_is_window(struct mut_kept *);
bool pl_pads_swapped(struct mut_kept *);
bool pl_dilation_ignored(struct mut_kept *);
bool pw_tanh_form(struct mut_kept *);
bool pw_beta_ignored(struct mut_kept *);
bool tr_step_ignored(struct mut_kept *);
bool tr_value_ignored(struct mut_kept *);
bool sl_stored_not_added(struct mut_kept *);
bool sl_max_is_min(struct mut_kept *);
bool sl_always_rising(struct mut_kept *);
bool sl_direction_ignored(struct mut_kept *);
bool sl_wrap_is_edge(struct mut_kept *);
bool rd_always_unbiased(struct mut_kept *);
bool rd_first_of_equals(struct mut_kept *);
bool rs_rounding_ignored(struct mut_kept *);
bool rs_usual_kernel(struct mut_kept *);
bool rs_antialias_ignored(struct mut_kept *);
bool rs_scale_ignored(struct mut_kept *);
bool tn_dampening_ignored(struct mut_kept *);
bool tn_same_rate(struct mut_kept *);
bool tn_limit_ignored(struct mut_kept *);
bool tn_lion_without_decay(struct mut_kept *);
bool tn_mean_of_squares_slow(struct mut_kept *);
bool tn_peak_without_decay(struct mut_kept *);
void mm_drop_first_term(struct mut_call *);
void mm_drop_middle_term(struct mut_call *);
void mm_reads_past_a(struct mut_call *);
void mm_one_running_sum(struct mut_call *);
void mm_keep(struct mut_call *);
void mm_last_row_unwritten(struct mut_call *);
void mm_bias_twice(struct mut_call *);
void mm_bias_missing_on_tail(struct mut_call *);
void mm_beta_one(struct mut_call *);
void mm_alpha_into_c(struct mut_call *);
void mm_beta_zero_reads_c(struct mut_call *);
void mm_f16_accumulator(struct mut_call *);
void mm_bf16_partial_sums(struct mut_call *);
void mm_store_truncates(struct mut_call *);
void cv_drop_last_tap(struct mut_call *);
void cv_group_shifted(struct mut_call *);
void cv_kernel_flipped(struct mut_call *);
void cv_keep_dx(struct mut_call *);
void cv_uncovered_unwritten(struct mut_call *);
void cv_keep_dw(struct mut_call *);
void cv_adds_to_output(struct mut_call *);
void cv_last_column_lost(struct mut_call *);
void sm_no_shift(struct mut_call *);
void sm_tail_left_out(struct mut_call *);
void sm_base_2(struct mut_call *);
void rd_tail_dropped(struct mut_call *);
void rd_divides_by_n_less_1(struct mut_call *);
void rd_starts_at_lowest(struct mut_call *);
void rd_nan_dropped(struct mut_call *);
void rd_squares_in_f16(struct mut_call *);
void rd_last_tie(struct mut_call *);
void pl_starts_at_zero(struct mut_call *);
void pl_nan_dropped(struct mut_call *);
void pl_windows_apart(struct mut_call *);
void pl_divided_by_the_first(struct mut_call *);
void pl_sign_lost(struct mut_call *);
bool pl_p_is_2(struct mut_kept *);
void pw_nan_to_zero(struct mut_call *);
void pw_subnormals_flushed(struct mut_call *);
void pw_tail_drops_nan(struct mut_call *);
void pw_writes_past_end(struct mut_call *);
void pw_reads_past_end(struct mut_call *);
void pw_by_reciprocal(struct mut_call *);
void pw_not_deterministic(struct mut_call *);
void pw_seldom_otherwise(struct mut_call *);
void pw_input_overwritten(struct mut_call *);
void pw_workspace_overrun(struct mut_call *);
void pw_trusts_workspace(struct mut_call *);
void pw_kink_on_wrong_side(struct mut_call *);
void pw_half_far_out(struct mut_call *);
void pw_cast_truncates(struct mut_call *);
void tr_nan_quieted(struct mut_call *);
void tr_seam(struct mut_call *);
void tr_gap_written(struct mut_call *);

bool rs_half_pixel_ignored(struct mut_kept *);
bool rs_corners_not_aligned(struct mut_kept *);
bool rs_cubic_is_linear(struct mut_kept *);
void rs_last_point_lost(struct mut_call *);
void rs_edges_weigh_less(struct mut_call *);

bool lr_alpha_undivided(struct mut_kept *);
bool lr_even_window_one_longer(struct mut_kept *);
bool lr_across_always(struct mut_kept *);
bool lr_neighbours_forgotten(struct mut_kept *);
void lr_last_channel_alone(struct mut_call *);
bool lr_with_means(struct mut_kept *);
void lr_x_centred(struct mut_call *);
void lr_mean_squared_outside(struct mut_call *);
bool lr_with_dmeans(struct mut_kept *);
void lr_means_lost(struct mut_call *);
void lr_mean_summed_outside(struct mut_call *);

bool sp_corners_aligned(struct mut_kept *);
bool sp_border_for_zeros(struct mut_kept *);
bool sp_reflection_is_border(struct mut_kept *);
bool sp_cubic_is_linear(struct mut_kept *);
void sp_coordinates_swapped(struct mut_call *);
void sp_last_point_lost(struct mut_call *);
void sp_slope_unscaled(struct mut_call *);
void sp_translation_lost(struct mut_call *);

bool sl_edge_is_value(struct mut_kept *);
bool sl_edge_lost(struct mut_kept *);
bool sl_on_is_one(struct mut_kept *);
bool sl_exclusive_ignored(struct mut_kept *);
void sl_index_clamped(struct mut_call *);
void sl_index_wrapped(struct mut_call *);
void sl_adds_at_edge(struct mut_call *);
void sl_last_one_kept(struct mut_call *);
void sl_edge_twice(struct mut_call *);
void sl_later_tie(struct mut_call *);
void sl_nan_least(struct mut_call *);
void sl_carry_lost(struct mut_call *);

bool nm_last_dim(struct mut_kept *);
bool nm_eps_fixed(struct mut_kept *);
bool nm_momentum_swapped(struct mut_kept *);
void nm_difference_of_squares(struct mut_call *);
void nm_unbiased(struct mut_call *);
void nm_tail_left_out(struct mut_call *);
void nm_eps_outside(struct mut_call *);
void nm_running_biased(struct mut_call *);
void nm_mean_term_missing(struct mut_call *);
void nm_last_row_not_in_dshift(struct mut_call *);
bool nm_by_group(struct mut_kept *);
void nm_last_image_not_in_dshift(struct mut_call *);
void nm_first_scale_for_group(struct mut_call *);
void nm_scale_missing_on_tail(struct mut_call *);
bool nm_with_sum(struct mut_kept *);
bool nm_inference_with_sum(struct mut_kept *);
bool nm_of_sum(struct mut_kept *);
void nm_sum_unwritten(struct mut_call *);
void nm_addend_of_next_row(struct mut_call *);
bool cv_with_norm(struct mut_kept *);
void nm_residual_of_next_row(struct mut_call *);
void nm_residual_not_on_tail(struct mut_call *);
void nm_residual_by_address(struct mut_call *);
void cv_folded_without_eps(struct mut_call *);
void cv_folded_shift_scaled(struct mut_call *);

bool rn_p_of_zeros(struct mut_kept *);
bool rn_needs_mask(struct mut_kept *);
bool rn_needs_seed(struct mut_kept *);
void rn_offset_ignored(struct mut_call *);
void rn_of_23_bits(struct mut_call *);
void rn_key_of_32_bits(struct mut_call *);
void rn_pairs_swapped(struct mut_call *);
void rn_unscaled(struct mut_call *);
void rn_times_zero(struct mut_call *);
void rn_bits_reversed(struct mut_call *);
void rn_bits_past_the_last(struct mut_call *);
void rn_mask_shifted(struct mut_call *);
void rn_drawn_afresh(struct mut_call *);

bool ls_per_row(struct mut_kept *);
bool ls_smoothing_of_others(struct mut_kept *);
bool ls_ignore_is_fixed(struct mut_kept *);
bool ls_smoothing_ignored(struct mut_kept *);
bool ls_logits_always(struct mut_kept *);
void ls_mean_over_all(struct mut_call *);
void ls_no_shift(struct mut_call *);
void ls_label_from_the_end(struct mut_call *);
void ls_mean_undivided(struct mut_call *);
void ls_mean_unweighted(struct mut_call *);
void ls_weights_ignored(struct mut_call *);
void ls_soft_weights_ignored(struct mut_call *);
void ls_keep(struct mut_call *);
void ls_ignored_unwritten(struct mut_call *);
bool ls_blank_is_fixed(struct mut_kept *);
bool ls_infinity_kept(struct mut_kept *);
void ls_last_frame_lost(struct mut_call *);
void ls_repeats_skip(struct mut_call *);
void ls_mean_by_labels(struct mut_call *);
void ls_keep_frames(struct mut_call *);
void ls_beyond_unwritten(struct mut_call *);
void ls_no_labels(struct mut_call *);

bool qu_one_scale_of_integers(struct mut_kept *);
bool qu_blocks_of_equal_length(struct mut_kept *);
void qu_ties_away(struct mut_call *);
void qu_by_reciprocal(struct mut_call *);
void qu_saturates_first(struct mut_call *);
void qu_amax_without_nan(struct mut_call *);
void qu_power_rounded_up(struct mut_call *);
void qu_scale_of_zeros(struct mut_call *);
void qu_range_without_zero(struct mut_call *);
void qu_zero_point_last(struct mut_call *);
void qu_last_bit_lost(struct mut_call *);

bool tn_nesterov_ignored(struct mut_kept *);
bool tn_needs_found(struct mut_kept *);
bool tn_needs_scale(struct mut_kept *);
bool tn_eps_under_the_root(struct mut_kept *);
bool tn_apart(struct mut_kept *);
bool tn_decay_unrated(struct mut_kept *);
void tn_found_ignored(struct mut_call *);
void tn_scale_multiplied(struct mut_call *);
void tn_skipped_step_counts(struct mut_call *);
void tn_step_from_zero(struct mut_call *);
void tn_keep_params(struct mut_call *);
void tn_last_tensor_left(struct mut_call *);
void tn_copy_before_the_step(struct mut_call *);
void tn_first_tensor_only(struct mut_call *);
void tn_divisor_below_one(struct mut_call *);
void tn_nan_not_found(struct mut_call *);
void tn_good_kept_on_overflow(struct mut_call *);

void at_kv_lengths_ignored(struct mut_call *);
void at_one_key_more(struct mut_call *);
void at_q_lengths_ignored(struct mut_call *);
void at_sink_scaled(struct mut_call *);
void at_dlse_ignored(struct mut_call *);
void at_y_scale_divides(struct mut_call *);
void at_turned_back(struct mut_call *);
void at_scale_multiplies(struct mut_call *);
void at_slots_shifted(struct mut_call *);
void at_bits_reversed(struct mut_call *);
void at_slots_wrap(struct mut_call *);
void at_positions_ignored(struct mut_call *);
bool at_other_corner(struct mut_kept *);
bool at_left_counts_itself(struct mut_kept *);
bool at_left_ignored(struct mut_kept *);
bool at_right_ignored(struct mut_kept *);
bool at_scale_is_one(struct mut_kept *);
bool at_softcap_ignored(struct mut_kept *);
bool at_dropout_ignored(struct mut_kept *);
bool at_drops(struct mut_kept *);
bool at_first_kv_head(struct mut_kept *);
bool at_first_slope(struct mut_kept *);
bool at_first_bias_row(struct mut_kept *);
bool at_first_mask(struct mut_kept *);
bool at_first_block_row(struct mut_kept *);
bool at_first_page_table(struct mut_kept *);
bool at_first_key_scale(struct mut_kept *);
bool at_pairs_otherwise(struct mut_kept *);
bool at_has_slots(struct mut_kept *);
void at_base_2(struct mut_call *);
void at_kept_unscaled(struct mut_call *);
void at_values_unscaled(struct mut_call *);
void at_dq_unscaled(struct mut_call *);
void at_dbias_scaled(struct mut_call *);
void at_dsink_positive(struct mut_call *);
void at_sink_not_in_lse(struct mut_call *);
void at_sink_in_max(struct mut_call *);
void at_nothing_seen_is_nan(struct mut_call *);
void at_y_in_bf16(struct mut_call *);
void at_keep_dk(struct mut_call *);
void at_past_end_unwritten(struct mut_call *);
void at_empty_part_counts(struct mut_call *);
void at_merged_in_base_2(struct mut_call *);
void at_rest_lost(struct mut_call *);
bool rn_back_with_lengths(struct mut_kept *);
bool rn_both(struct mut_kept *);
bool rn_clip_ignored(struct mut_kept *);
bool rn_clip_of_h(struct mut_kept *);
bool rn_dropout_ignored(struct mut_kept *);
bool rn_gru(struct mut_kept *);
bool rn_gru_with_biases(struct mut_kept *);
bool rn_has_br(struct mut_kept *);
bool rn_has_c0(struct mut_kept *);
bool rn_has_dbr(struct mut_kept *);
bool rn_has_dct(struct mut_kept *);
bool rn_has_dht(struct mut_kept *);
bool rn_has_dw(struct mut_kept *);
bool rn_has_h0(struct mut_kept *);
bool rn_has_ht(struct mut_kept *);
bool rn_has_lengths(struct mut_kept *);
bool rn_lstm(struct mut_kept *);
bool rn_reset_elsewhere(struct mut_kept *);
bool rn_reversed_with_lengths(struct mut_kept *);
bool rn_with_dropout(struct mut_kept *);
void rn_adds_to_dw(struct mut_call *);
void rn_back_lengths_whole(struct mut_call *);
void rn_beyond_unwritten(struct mut_call *);
void rn_bias_outside_reset(struct mut_call *);
void rn_bound_y(struct mut_call *);
void rn_cut(struct mut_call *);
void rn_dbr_is_dbw(struct mut_call *);
void rn_dropout_after_last(struct mut_call *);
void rn_halves_swapped(struct mut_call *);
void rn_ht_of_last_place(struct mut_call *);
void rn_ht_of_nothing_is_0(struct mut_call *);
void rn_keep_dw(struct mut_call *);
void rn_keep_y(struct mut_call *);
void rn_lengths_whole(struct mut_call *);
void rn_order_ifog(struct mut_call *);
void rn_order_iofg(struct mut_call *);
void rn_order_zrn(struct mut_call *);
void rn_repeats_last(struct mut_call *);
void rn_update_swapped(struct mut_call *);
void rn_zero_br(struct mut_call *);
void rn_zero_c0(struct mut_call *);
void rn_zero_dct(struct mut_call *);
void rn_zero_dht(struct mut_call *);
void rn_zero_h0(struct mut_call *);

#endif
