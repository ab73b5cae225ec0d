// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What masks, plans and the attributes of kernels refuse.

// expected-error @below {{expected bounds with a window only, got left = 4 and right = -1 with causal}}
func.func private @f() attributes {x = #attn.mask<kind = causal, left = 4>}

// -----

// expected-error @below {{expected a window with at least one bound, got none}}
func.func private @f() attributes {x = #attn.mask<kind = window>}

// -----

// expected-error @below {{expected warps to be a power of two up to 32, got 3}}
func.func private @f() attributes {x = #attn.split_q<warps = 3>}

// -----

// expected-error @below {{expected block_m to be a multiple of 16 * warps = 128 up to 8192, got 64}}
func.func private @f() attributes {x = #attn.split_q<block_m = 64, warps = 8>}

// -----

// expected-error @below {{expected block_m to be a multiple of 16 * warps = 64 up to 8192, got 4611686018427388160}}
func.func private @f() attributes {x = #attn.split_q<block_m = 4611686018427388160>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 8192, got 24}}
func.func private @f() attributes {x = #attn.split_q<block_n = 24>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 8192, got 1152921504606847040}}
func.func private @f() attributes {x = #attn.split_q<block_n = 1152921504606847040>}

// -----

// expected-error @below {{expected stages from 1 to 4, got 5}}
func.func private @f() attributes {x = #attn.split_q<stages = 5>}

// -----

// expected-error@+1 {{expected parts to divide block_n / 16 = 4, got 3}}
func.func private @f() attributes {x = #attn.split_q<parts = 3>}

// -----

// expected-error@+1 {{expected group_heads to be 0, or positive in order 'longest_first', got 2 in order 'row_major'}}
func.func private @f() attributes {x = #attn.split_q<group_heads = 2>}

// -----

// expected-error @below {{unknown parameter 'speed' of schedule 'split_q', expected one of block_m, block_n, warps, stages, q_in_regs, parts, softmax, order, group_heads, epilogue}}
func.func private @f() attributes {x = #attn.split_q<warps = 2, speed = 2>}

// -----

// expected-error @below {{parameter 'group' of schedule 'split_q' is called 'group_heads' now}}
func.func private @f() attributes {x = #attn.split_q<group = 2>}

// -----

// expected-error @below {{expected parameter 'warps' once}}
func.func private @f() attributes {x = #attn.split_q<warps = 2, warps = 2>}

// -----

// expected-error @below {{expected order to be one of row_major, longest_first, got 'random'}}
func.func private @f() attributes {x = #attn.split_q<order = random>}

// -----

// expected-error @below {{expected q_in_regs to be true or false, got '1'}}
func.func private @f() attributes {x = #attn.split_q<q_in_regs = 1>}

// -----

// expected-error @below {{'attn.launch' is for kernels only}}
module attributes {attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["1", "1", "1"], block = [32, 1, 1], tensors = [], args = []>} {}

// -----

// expected-error @below {{expected 'attn.launch' to be #attn.launch<...>, got 3}}
func.func private @f() attributes {attn.launch = 3}

// -----

gpu.module @kernels {
  // expected-error @below {{'gpu.func' op expected 'kernel' before its attributes, got a function that nothing launches}}
  gpu.func @f() attributes {attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["1", "1", "1"], block = [32, 1, 1], tensors = [], args = []>} {
    gpu.return
  }
}

// -----

// The rules are those of the launch record.
// expected-error @below {{launch record: steps[0].block: expected 1 to 3 elements, got 4}}
func.func private @f() attributes {x = #attn.launch<chip = "sm_80", ptx = 80, grid = ["1", "1", "1"], block = [32, 1, 1, 1], tensors = [], args = []>}

// -----

// expected-error @below {{launch record: steps[0].args[0].index: expected an integer from 0 to -1, got 0}}
func.func private @f() attributes {x = #attn.launch<chip = "sm_80", ptx = 80, grid = ["1", "1", "1"], block = [32, 1, 1], tensors = [], args = [{kind = "workspace", index = 0 : i64}]>}

// -----

// expected-error @below {{expected warps to be a power of two up to 32, got 3}}
func.func private @f() attributes {x = #attn.combine<warps = 3>}

// -----

// expected-error @below {{expected 'attn.warps' to be two powers of two (warps over rows and columns), or any number of rows and 1, of at most 32 warps, got array<i64: 3, 2>}}
func.func private @f() attributes {attn.warps = array<i64: 3, 2>}

// -----

// expected-error @below {{expected block_m to be 64, 128 or 192, got 96}}
func.func private @ws_rows() attributes {p = #attn.ws_wgmma<block_m = 96>}

// -----

// expected-error @below {{expected cluster to be 1, 2 or 4, got 3}}
func.func private @ws_cluster() attributes {p = #attn.ws_wgmma<cluster = 3>}

// -----

// expected-error @below {{expected loaders to be 1 or 2, got 3}}
func.func private @ws_loaders() attributes {p = #attn.ws_wgmma<loaders = 3>}

// -----

// expected-error @below {{expected CTAs of one tile with pack_heads, got 2 tiles in a cluster}}
func.func private @ws_packed_cluster() attributes {p = #attn.ws_wgmma<pack_heads = true, cluster = 2>}

// -----

// expected-error @below {{expected order = row_major with pack_heads, got longest_first}}
func.func private @ws_packed_order() attributes {p = #attn.ws_columns<pack_heads = true, order = longest_first>}

// -----

// expected-error @below {{expected loaders = 1 in a cluster, got 2}}
func.func private @ws_loaders_cluster() attributes {p = #attn.ws_wgmma<loaders = 2, cluster = 2>}

// -----

// expected-error @below {{expected pv_behind with qk_ahead and the softmax policy 'optimistic', got qk_ahead = true and 'exact'}}
func.func private @ws_behind() attributes {p = #attn.ws_wgmma<pv_behind = true>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 256, got 24}}
func.func private @ws_keys() attributes {p = #attn.ws_wgmma<block_n = 24>}

// -----

// expected-error @below {{expected k_stages from 1 to 8, got 0}}
func.func private @ws_stages() attributes {p = #attn.ws_wgmma<k_stages = 0>}

// -----

// expected-error @below {{expected group_heads not to be negative, got -1}}
func.func private @ws_group() attributes {p = #attn.ws_wgmma<group_heads = -1>}

// -----

// expected-error @below {{expected first_block = whole without qk_ahead, got auto}}
func.func private @ws_first() attributes {p = #attn.ws_wgmma<qk_ahead = false, first_block = auto>}

// -----

// expected-error @below {{expected turns with qk_ahead}}
func.func private @ws_turns() attributes {p = #attn.ws_wgmma<qk_ahead = false, turns = true>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 256, got 272}}
func.func private @self_keys() attributes {p = #attn.self_load<block_n = 272>}

// -----

// expected-error @below {{expected v_stages from 1 to 8, got 9}}
func.func private @self_stages() attributes {p = #attn.self_load<v_stages = 9>}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 4, got 5}}
func.func private @self_ctas() attributes {p = #attn.self_load<ctas_per_sm = 5>}

// -----

// expected-error @below {{expected group_heads not to be negative, got -2}}
func.func private @self_group() attributes {p = #attn.self_load<group_heads = -2>}

// -----

// expected-error @below {{'attn.rung' is for a gpu.module only}}
func.func private @f() attributes {attn.rung = "tile"}

// -----

// expected-error @below {{expected 'attn.rung' to be "tile", "barrier", "thread" or "nvvm", got "plan"}}
gpu.module @m attributes {attn.rung = "plan"} {
}

// -----

// expected-error @below {{expected block_m to be a multiple of 16 up to 64, got 80}}
func.func private @decode_rows() attributes {p = #attn.decode<block_m = 80>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 128, got 144}}
func.func private @decode_keys() attributes {p = #attn.decode<block_n = 144>}

// -----

// expected-error @below {{expected warps to be a power of two up to 16, got 6}}
func.func private @decode_warps() attributes {p = #attn.decode<warps = 6>}

// -----

// expected-error @below {{expected stages from 2 to 8, got 1}}
func.func private @decode_stages() attributes {p = #attn.decode<stages = 1>}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 8, got 9}}
func.func private @decode_ctas() attributes {p = #attn.decode<ctas_per_sm = 9>}

// -----

// expected-error @below {{expected warps_m and warps_n to be powers of two with a product up to 32, got 3 and 8}}
func.func private @mla_warps() attributes {p = #attn.mla<warps_m = 3>}

// -----

// expected-error @below {{expected block_m to be a multiple of 16 * warps_m = 32 up to 128, got 48}}
func.func private @mla_rows() attributes {p = #attn.mla<warps_m = 2, block_m = 48>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 128, got 144}}
func.func private @mla_keys() attributes {p = #attn.mla<block_n = 144>}

// -----

// expected-error @below {{expected block_n to be a multiple of 8 * warps_n = 64 with score = shard, got 32}}
func.func private @mla_shard() attributes {p = #attn.mla<block_n = 32>}

// -----

// expected-error @below {{expected block_m = 64, warps_m = 4, warps_n = 2 and score = twice or own with wgmma}}
func.func private @mla_wgmma() attributes {p = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, wgmma = true>}

// -----

// expected-error @below {{expected q_in_regs = false with wgmma and score = twice, got true}}
func.func private @mla_held() attributes {p = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, q_in_regs = true, score = twice, wgmma = true>}

// -----

// expected-error @below {{expected wgmma with score = own, got false}}
func.func private @mla_own() attributes {p = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = own>}

// -----

// expected-error @below {{expected cluster = 1, or 2 with score = own, got 2}}
func.func private @mla_cluster() attributes {p = #attn.mla<cluster = 2>}

// -----

// expected-error @below {{expected at least 2 stages with wgmma, got 1}}
func.func private @mla_wgmma_stages() attributes {p = #attn.mla<block_m = 64, warps_m = 4, warps_n = 2, score = twice, wgmma = true, stages = 1>}

// -----

// expected-error @below {{expected stages from 1 to 8, got 9}}
func.func private @mla_stages() attributes {p = #attn.mla<stages = 9>}

// -----

// expected-error @below {{expected ctas_per_sm from 1 to 8, got 0}}
func.func private @mla_ctas() attributes {p = #attn.mla<ctas_per_sm = 0>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 128, or 256 with pair and tiles = 1, got 8}}
func.func private @tmem_keys() attributes {p = #attn.ws_tmem<block_n = 8>}

// -----

// expected-error @below {{expected kv_stages from 2 to 32, got 33}}
func.func private @tmem_stages() attributes {p = #attn.ws_tmem<kv_stages = 33>}

// -----

// expected-error @below {{expected tiles to be 1 or 2, got 3}}
func.func private @tmem_tiles() attributes {p = #attn.ws_tmem<tiles = 3>}

// -----

// expected-error @below {{expected block_n to be a multiple of 32 with one tile, got 48}}
func.func private @tmem_parts() attributes {p = #attn.ws_tmem<tiles = 1, block_n = 48>}

// -----

// expected-error @below {{expected two tiles with p_beside, got one}}
func.func private @tmem_beside() attributes {p = #attn.ws_tmem<tiles = 1, p_beside = true>}

// -----

// expected-error @below {{expected two tiles with own_blocks, got one}}
func.func private @tmem_own() attributes {p = #attn.ws_tmem<tiles = 1, own_blocks = true>}

// -----

// expected-error @below {{expected the softmax 'exact', 'threshold' or 'lagged' with one tile, got 'optimistic'}}
func.func private @tmem_bets() attributes {p = #attn.ws_tmem<tiles = 1, softmax = optimistic>}

// -----

// expected-error @below {{expected the epilogue 'direct' with one tile, got 'tma'}}
func.func private @tmem_epilogue() attributes {p = #attn.ws_tmem<tiles = 1, epilogue = tma>}

// -----

// expected-error @below {{expected polynomial from 0 to 16, got -1}}
func.func private @tmem_polynomial() attributes {p = #attn.ws_tmem<polynomial = -1>}

// -----

// expected-error @below {{expected group_heads not to be negative, got -2}}
func.func private @tmem_group() attributes {p = #attn.ws_tmem<group_heads = -2>}

// -----

// expected-error @below {{expected value_ctas to be 1 or 2, got 3}}
func.func private @tmem_value_ctas() attributes {p = #attn.ws_tmem<value_ctas = 3>}

// -----

// expected-error @below {{expected tiles = 1 and pair = false with value_ctas = 2, got tiles = 2 and pair = false}}
func.func private @tmem_value_tiles() attributes {p = #attn.ws_tmem<value_ctas = 2>}

// -----

// expected-error @below {{expected cluster to be 1 or 4, got 2}}
func.func private @tmem_cluster() attributes {p = #attn.ws_tmem<pair = true, cluster = 2>}

// -----

// expected-error @below {{expected tiles = 2, pair = true and own_blocks = false with cluster = 4, got tiles = 2, pair = false and own_blocks = false}}
func.func private @tmem_cluster_of_one() attributes {p = #attn.ws_tmem<cluster = 4>}

// -----

// expected-error @below {{expected tiles = 2, pair = true and own_blocks = false with cluster = 4, got tiles = 2, pair = true and own_blocks = true}}
func.func private @tmem_cluster_blocks() attributes {p = #attn.ws_tmem<own_blocks = true, pair = true, cluster = 4>}

// -----

// expected-error @below {{expected tiles = 2 and pair = true with one_ring, got tiles = 2 and pair = false}}
func.func private @tmem_one_ring() attributes {p = #attn.ws_tmem<one_ring = true>}

// -----

// expected-error @below {{expected the epilogue 'staged' or 'tma' with o_halves, got 'auto'}}
func.func private @tmem_halves() attributes {p = #attn.ws_tmem<o_halves = true>}

// -----

// expected-error @below {{expected 'kernel' to be letters, digits and underscores that begin with no digit, got "a b"}}
func.func private @kernel_name() attributes {p = #attn.ws_tmem<kernel = "a b">}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 up to 256, got 8}}
func.func private @columns_keys() attributes {p = #attn.ws_columns<block_n = 8>}

// -----

// expected-error @below {{expected k_stages from 1 to 8, got 9}}
func.func private @columns_stages() attributes {p = #attn.ws_columns<k_stages = 9>}

// -----

// expected-error @below {{expected v_stages of at least 2, got 1}}
func.func private @columns_values() attributes {p = #attn.ws_columns<v_stages = 1>}

// -----

// expected-error @below {{expected w_stages of at least 2, got 1}}
func.func private @columns_others() attributes {p = #attn.ws_columns<w_stages = 1>}

// -----

// expected-error @below {{expected softmax_columns to be a multiple of 64 up to 256, got 96}}
func.func private @columns_split() attributes {p = #attn.ws_columns<softmax_columns = 96>}

// -----

// expected-error @below {{expected cluster to be 1, 2 or 4, got 3}}
func.func private @columns_cluster() attributes {p = #attn.ws_columns<cluster = 3>}

// -----

// expected-error @below {{expected depth_ctas to be 1 or 2, got 4}}
func.func private @columns_depth() attributes {p = #attn.ws_columns<cluster = 4, depth_ctas = 4>}

// -----

// expected-error @below {{expected cluster = 2 with depth_ctas = 2, got 1}}
func.func private @columns_alone() attributes {p = #attn.ws_columns<depth_ctas = 2>}

// -----

// expected-error @below {{expected block_n to be a multiple of 32, of which each CTA has half, got 48}}
func.func private @pair_keys() attributes {p = #attn.ws_pair<block_n = 48>}

// -----

// expected-error @below {{expected stages from 2 to 32, got 1}}
func.func private @pair_stages() attributes {p = #attn.ws_pair<stages = 1>}

// -----

// expected-error @below {{expected slice to be a multiple of 64 up to 256, got 96}}
func.func private @pair_slice() attributes {p = #attn.ws_pair<slice = 96>}

// -----

// expected-error @below {{expected warps_m and warps_n to be powers of two with a product up to 32, got 3 and 2}}
func.func private @tiled_warps() attributes {p = #attn.tiled_d<warps_m = 3>}

// -----

// expected-error @below {{expected block_m to be 16, 32 or 64, got 48}}
func.func private @role_rows() attributes {p = #attn.ws_mla<block_m = 48>}

// -----

// expected-error @below {{expected block_n to be a multiple of 32 up to 128 with block_m = 16, got 16}}
func.func private @role_keys() attributes {p = #attn.ws_mla<block_m = 16, block_n = 16>}

// -----

// expected-error @below {{expected stages from 1 to 8, got 9}}
func.func private @role_slots() attributes {p = #attn.ws_mla<stages = 9>}

// -----

// expected-error @below {{expected p_stages of 1 or 2, got 3}}
func.func private @role_hand_over() attributes {p = #attn.ws_mla<p_stages = 3>}

// -----

// expected-error @below {{expected block_m to be a multiple of 16 * warps_m = 64 up to 128, got 80}}
func.func private @tiled_rows() attributes {p = #attn.tiled_d<block_m = 80>}

// -----

// expected-error @below {{expected block_n to be a multiple of 16 and of 8 * warps_n = 32 up to 128, got 48}}
func.func private @tiled_keys() attributes {p = #attn.tiled_d<warps_n = 4, block_n = 48>}

// -----

// expected-error @below {{expected slice to be a multiple of 16 and of 8 * warps_n = 32 up to 256, got 80}}
func.func private @tiled_slice() attributes {p = #attn.tiled_d<warps_n = 4, slice = 80>}

// -----

// expected-error @below {{expected stages from 2 to 16, got 1}}
func.func private @tiled_stages() attributes {p = #attn.tiled_d<stages = 1>}

// -----

// expected-error @below {{expected group_heads to be 0, or positive in order 'longest_first', got 2 in order 'row_major'}}
func.func private @tiled_group() attributes {p = #attn.tiled_d<group_heads = 2>}

// -----

// expected-error @below {{expected 1 part with share = kv, got 2}}
func.func private @shared_parts() attributes {p = #attn.split_q<parts = 2, share = kv>}

// -----

// expected-error @below {{expected slice to be a multiple of 16 * warps_n = 64 with s_split = depth, got 96}}
func.func private @tiled_depth() attributes {p = #attn.tiled_d<warps_n = 4, slice = 96, s_split = depth>}

// -----

// expected-error @below {{expected block_n to be a power of two with s_split = depth, got 48}}
func.func private @tiled_runs() attributes {p = #attn.tiled_d<block_n = 48, s_split = depth>}

// -----

// expected-error @below {{'attn.proof' is for kernels only}}
%c = arith.constant {attn.proof = {assumptions = [], profile = "isa", verdict = "proved"}} 0 : i32

// -----

// expected-error @below {{expected 'attn.proof' to be a verdict of the check of barriers, such as {assumptions = ["A4"], profile = "isa", verdict = "proved"}, got "proved"}}
func.func private @f() attributes {attn.proof = "proved"}

// -----

// A proof has a profile, and no more is said than what it has.
// expected-error @below {{expected 'attn.proof' to be a verdict}}
func.func private @f() attributes {attn.proof = {verdict = "proved"}}

// -----

// expected-error @below {{expected 'attn.proof' to be a verdict}}
func.func private @f() attributes {attn.proof = {assumptions = [], profile = "isa", tiles = 2, verdict = "proved"}}

// -----

// expected-error @below {{expected 'attn.proof' to be a verdict}}
func.func private @f() attributes {attn.proof = {assumptions = ["A13"], profile = "isa", verdict = "proved"}}

// -----

// expected-error @below {{expected 'attn.proof' to be a verdict}}
func.func private @f() attributes {attn.proof = {verdict = "unchecked"}}

// -----

// expected-error @below {{expected 'attn.most_ctas_per_sm' to be from 1 to 32, got 0 : i64}}
func.func private @no_ctas() attributes {attn.most_ctas_per_sm = 0 : i64}

// -----

// expected-error @below {{expected 'attn.most_ctas_per_sm' to be from 1 to 32, got 9223372036854775807 : i64}}
func.func private @all_ctas() attributes {attn.most_ctas_per_sm = 9223372036854775807 : i64}
