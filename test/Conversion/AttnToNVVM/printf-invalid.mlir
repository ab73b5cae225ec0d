// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-nvvm))' -split-input-file -verify-diagnostics

gpu.module @kernels {
  gpu.func @fewer(%a: i32) kernel {
    // expected-error @below {{expected as many arguments as format "%d of %d" takes, which are 2, got 1}}
    gpu.printf "%d of %d", %a : i32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @more(%a: i32) kernel {
    // expected-error @below {{expected as many arguments as format "100%%" takes, which are 0, got 1}}
    gpu.printf "100%%", %a : i32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @integer(%a: f32) kernel {
    // expected-error @below {{expected an integer of at most 32 bits for conversion '%d', got 'f32'}}
    gpu.printf "%d", %a : f32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @width(%a: f32) kernel {
    // expected-error @below {{expected an integer of at most 32 bits for conversion '%*f', got 'f32'}}
    gpu.printf "%*f", %a, %a : f32, f32
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @wide(%a: i64) kernel {
    // expected-error @below {{expected an integer of at most 32 bits for conversion '%u', got 'i64'}}
    gpu.printf "%u", %a : i64
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @long(%a: index) kernel {
    // expected-error @below {{expected an integer of 64 bits for conversion '%ld', got 'index'}}
    gpu.printf "%ld", %a : index
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @float(%a: f8E4M3FN) kernel {
    // expected-error @below {{expected a float of 16, 32 or 64 bits for conversion '%8.3f', got 'f8E4M3FN'}}
    gpu.printf "%8.3f", %a : f8E4M3FN
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @string(%a: i64) kernel {
    // expected-error @below {{expected conversions of numbers, got '%s'}}
    gpu.printf "%s", %a : i64
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @conversion(%a: i32) kernel {
    // expected-error @below {{expected a conversion of printf (d, i, o, u, x, X, c, f, F, e, E, g, G, a, A, s or p), got '%y'}}
    gpu.printf "%y", %a : i32
    gpu.return
  }
}
