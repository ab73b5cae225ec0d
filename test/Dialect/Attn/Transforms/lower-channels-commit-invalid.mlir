// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-channels))' -split-input-file -verify-diagnostics

// What a role that signals by commit has to keep to.

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!sum = !attn.buffer<64x64xf32, #attn.rows, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @no_thread() kernel {
    %q = attn.alloc {name = "q"} : !slot
    %ring = attn.alloc {name = "k"} : !ring
    %s = attn.alloc {name = "s"} : !sum
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %k as "mma" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
      %slot = attn.slot %ring[%i] : !ring -> !slot
      // expected-error @below {{expected to stand in an attn.elect of one thread, whose products role 'mma' of channel 'k' commits, got none}}
      attn.channel.release %k, %t as "mma" : !ch
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
      attn.channel.release %k, %t as "load" : !ch
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!sum = !attn.buffer<64x64xf32, #attn.rows, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @many_threads() kernel {
    %q = attn.alloc {name = "q"} : !slot
    %ring = attn.alloc {name = "k"} : !ring
    %s = attn.alloc {name = "s"} : !sum
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      attn.elect each_warpgroup {
        %c = attn.cursor.start %k as "mma" : !ch
        %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
        %slot = attn.slot %ring[%i] : !ring -> !slot
        // expected-error @below {{expected to stand in an attn.elect of one thread, whose products role 'mma' of channel 'k' commits, got one of each warpgroup}}
        attn.channel.release %k, %t as "mma" : !ch
      }
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
      attn.channel.release %k, %t as "load" : !ch
    }
    gpu.return
  }
}

// -----

// The same thread runs both, but nothing says so.

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!sum = !attn.buffer<64x64xf32, #attn.rows, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @other_elect() kernel {
    %q = attn.alloc {name = "q"} : !slot
    %ring = attn.alloc {name = "k"} : !ring
    %s = attn.alloc {name = "s"} : !sum
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      %c = attn.cursor.start %k as "mma" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
      %slot = attn.slot %ring[%i] : !ring -> !slot
      attn.elect {
        // expected-note @below {{the product is here}}
        test_attn.buffer_product %q, %slot to %s : !slot, !slot, !sum
      }
      attn.elect {
        // expected-error @below {{expected to stand in the attn.elect of each product that uses the slot of role 'mma' of channel 'k', since a commit is for what its thread has started, got another one}}
        attn.channel.release %k, %t as "mma" : !ch
      }
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
      attn.channel.release %k, %t as "load" : !ch
    }
    gpu.return
  }
}

// -----

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!sum = !attn.buffer<64x64xf32, #attn.rows, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @in_front() kernel {
    %q = attn.alloc {name = "q"} : !slot
    %ring = attn.alloc {name = "k"} : !ring
    %s = attn.alloc {name = "s"} : !sum
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "mma" : !ch
        %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
        %slot = attn.slot %ring[%i] : !ring -> !slot
        %kt = attn.transpose %slot : !slot -> !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
        // expected-error @below {{expected to stand after each product that uses the slot of role 'mma' of channel 'k', got one after it}}
        attn.channel.release %k, %t as "mma" : !ch
        // expected-note @below {{the product is here}}
        test_attn.buffer_product %q, %kt to %s : !slot, !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, !sum
      }
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
      attn.channel.release %k, %t as "load" : !ch
    }
    gpu.return
  }
}

// -----

// Products of one CTA cannot be counted in others.

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!sum = !attn.buffer<64x64xf32, #attn.rows, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @cluster() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %q = attn.alloc {name = "q"} : !slot
    %ring = attn.alloc {name = "k"} : !ring
    %s = attn.alloc {name = "s"} : !sum
    // expected-error @below {{expected a role that signals by arrive before one of the cluster's leader, got role 'mma' of channel 'k'}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "mma" : !ch
        %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
        %slot = attn.slot %ring[%i] : !ring -> !slot
        attn.channel.release %k, %t as "mma" : !ch
      }
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      attn.cluster_leader {
        %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
        attn.channel.release %k, %t as "load" : !ch
      }
    }
    gpu.return
  }
}

// -----

// Nor those of a pair's leader in the leader of all pairs.

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!slot = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @other_leader() kernel attributes {known_cluster_size = array<i32: 4, 1, 1>} {
    %ring = attn.alloc {name = "k"} : !ring
    // expected-error @below {{expected a role that signals by arrive before one of the cluster's leader, got role 'mma' of channel 'k'}}
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "mma" : !ch
        attn.cluster_leader bits 1 {
          %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
          attn.channel.release %k, %t as "mma" : !ch
        }
      }
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      attn.cluster_leader {
        %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
        attn.channel.release %k, %t as "load" : !ch
      }
    }
    gpu.return
  }
}

// -----

// In a pair both are the same CTA.

!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!ch = !attn.channel<2>

gpu.module @kernels {
  gpu.func @same_leader() kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "k"} : !ring
    %k = attn.channel.create {name = "k", roles = [#attn.role<"load", arrive>, #attn.role<"mma", commit>]} : !ch
    attn.warp_specialize
    partition "mma" warps 4 registers 24 {
      attn.elect {
        %c = attn.cursor.start %k as "mma" : !ch
        attn.cluster_leader bits 1 {
          %i, %t = attn.channel.acquire %k[%c] as "mma" : !ch
          attn.channel.release %k, %t as "mma" : !ch
        }
      }
    }
    partition "load" warps 4 registers 24 {
      %c = attn.cursor.start %k as "load" : !ch
      attn.cluster_leader {
        %i, %t = attn.channel.acquire %k[%c] as "load" : !ch
        attn.channel.release %k, %t as "load" : !ch
      }
    }
    gpu.return
  }
}
