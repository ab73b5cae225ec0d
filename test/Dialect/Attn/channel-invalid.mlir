// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @one_role() {
  // expected-error @below {{expected at least 2 roles, got 1}}
  %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>]} : !attn.channel<2>
  return
}

// -----

func.func @twice() {
  // expected-error @below {{expected roles of different names, got two called 'load'}}
  %k = attn.channel.create {name = "k", roles = [#attn.role<"load", tx>, #attn.role<"load", arrive>]} : !attn.channel<2>
  return
}

// -----

func.func @one_part() {
  // expected-error @below {{expected from 2 to 16 parts of role 'load', got 1}}
  %k = attn.channel.create {name = "k", roles = [#attn.role<"load", tx, parts = ["all"]>, #attn.role<"use", arrive, parts = ["all"]>]} : !attn.channel<2>
  return
}

// -----

func.func @same_part() {
  // expected-error @below {{expected parts of different names for role 'load', got "a" twice}}
  %k = attn.channel.create {name = "k", roles = [#attn.role<"load", tx, parts = ["a", "a"]>, #attn.role<"use", arrive, parts = ["a", "a"]>]} : !attn.channel<2>
  return
}

// -----

func.func @both(%k: !attn.channel<2>, %c: !attn.cursor) {
  // expected-error @below {{expected a part or 'each_warpgroup', got both}}
  %i, %t = attn.channel.acquire %k[%c] as "use" part "a" {each_warpgroup} : !attn.channel<2>
  return
}

// -----

// expected-error @below {{expected partitions of different names for role 'use', got "a" twice}}
#role = #attn.role<"use" in ["a", "b", "a"], arrive>

// -----

// expected-error @below {{expected at least one partition for role 'use', got none}}
#role = #attn.role<"use" in [], arrive>

// -----

// expected-error @below {{expected a role with a name, got none}}
#role = #attn.role<"", arrive>
