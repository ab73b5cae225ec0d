// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @nothing(%b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected a tile to take, got none}}
  "attn.team_take"(%b) <{from = 2 : i64}> : (!attn.buffer<256xf32, #attn.auto, shared>) -> ()
  return
}

// -----

func.func @type(%x: tensor<16x8xf16, #attn.auto>, %b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected tiles of f32, got 'tensor<16x8xf16, #attn.auto>'}}
  %y = attn.team_take %x via %b from 2 : tensor<16x8xf16, #attn.auto> via <256xf32, #attn.auto, shared>
  return
}

// -----

func.func @buffer(%x: tensor<16x8xf32, #attn.auto>, %b: !attn.buffer<4x64xf32, #attn.auto, shared>) {
  // expected-error @below {{expected a buffer of f32 with one dimension, got '!attn.buffer<4x64xf32, #attn.auto, shared>'}}
  %y = attn.team_take %x via %b from 2 : tensor<16x8xf32, #attn.auto> via <4x64xf32, #attn.auto, shared>
  return
}

// -----

func.func @from(%x: tensor<16x8xf32, #attn.auto>, %b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected at least one team that takes, got 0}}
  %y = attn.team_take %x via %b from 0 : tensor<16x8xf32, #attn.auto> via <256xf32, #attn.auto, shared>
  return
}

// -----

func.func @share_nothing(%b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected a tile to take, got none}}
  "attn.team_share"(%b) : (!attn.buffer<256xf32, #attn.auto, shared>) -> ()
  return
}

// -----

func.func @share_results(%m: tensor<16xf32, #attn.auto>, %x: tensor<16x8xf32, #attn.auto>, %b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected results of each team for 2 tiles, got 3}}
  %y:3 = attn.team_share %m, %x via %b : tensor<16xf32, #attn.auto>, tensor<16x8xf32, #attn.auto> via <256xf32, #attn.auto, shared> -> tensor<16xf32, #attn.auto>, tensor<16x8xf32, #attn.auto>, tensor<16xf32, #attn.auto>
  return
}

// -----

func.func @share_columns(%x: tensor<16x8xf32, #attn.auto>, %b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected columns that 3 teams divide, got 'tensor<16x8xf32, #attn.auto>'}}
  %y:3 = attn.team_share %x via %b : tensor<16x8xf32, #attn.auto> via <256xf32, #attn.auto, shared> -> tensor<16x2xf32, #attn.auto>, tensor<16x2xf32, #attn.auto>, tensor<16x2xf32, #attn.auto>
  return
}

// -----

func.func @share_part(%x: tensor<16x8xf32, #attn.auto>, %b: !attn.buffer<256xf32, #attn.auto, shared>) {
  // expected-error @below {{expected a part of 'tensor<16x8xf32, #attn.auto>' for each of 2 teams, got 'tensor<16x8xf32, #attn.auto>'}}
  %y:2 = attn.team_share %x via %b : tensor<16x8xf32, #attn.auto> via <256xf32, #attn.auto, shared> -> tensor<16x4xf32, #attn.auto>, tensor<16x8xf32, #attn.auto>
  return
}

// -----

// expected-error @below {{expected 'attn.teams' to be from 1 to 32, got 33 : i64}}
func.func private @many() attributes {attn.warps = array<i64: 1, 1>, attn.teams = 33 : i64}

// -----

// expected-error @below {{expected 'attn.warps' to be one warp beside 'attn.teams', got array<i64: 4, 1>}}
func.func private @warps() attributes {attn.warps = array<i64: 4, 1>, attn.teams = 4 : i64}

// -----

// expected-error @below {{expected 'attn.warps' to be one warp beside 'attn.teams', got unit}}
func.func private @none() attributes {attn.teams = 4 : i64}
