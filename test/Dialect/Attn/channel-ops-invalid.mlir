// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @one_role() {
  // expected-error @below {{expected at least 2 roles, got 1}}
  %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>]} : !attn.channel<2>
  return
}

// -----

func.func @twice() {
  // expected-error @below {{expected one role for each partition, got two for 'load'}}
  %k = attn.channel.create {name = "k", roles = [#attn.role<"load", tx>, #attn.role<"load", arrive>]} : !attn.channel<2>
  return
}
