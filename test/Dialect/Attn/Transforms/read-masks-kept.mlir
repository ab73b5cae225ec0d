// RUN: attn-opt %s --attn-read-masks --split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s
// RUN: attn-opt %s --attn-read-masks --split-input-file | FileCheck %s --check-prefix=IR

// Conditions that are not read, with the reason, and stay as they are.

// IR-NOT: key_range
// IR-NOT: mask =

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: numbers may need more than 32 bits
func.func @far(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 10000000 : i32
    %x = arith.muli %j, %c : i32
    %keep = arith.cmpi sle, %x, %i : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: numbers may need more than 32 bits
func.func @far_constant(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 100000000000 : i64
    %x = arith.extsi %j : i32 to i64
    %keep = arith.cmpi sle, %x, %c : i64
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: numbers may need more than 32 bits
func.func @far_sum(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 2147483000 : i32
    %x = arith.subi %j, %c : i32
    %keep = arith.cmpi sge, %x, %c : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a value from outside
func.func @outside(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %n: i16) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %x = arith.extsi %n : i16 to i32
    %keep = arith.cmpi sle, %j, %x : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a condition from outside
func.func @condition(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %n: i1) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.andi %n, %n : i1
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: the last bits of numbers
func.func @narrow(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %x = arith.trunci %j : i32 to i8
    %c = arith.constant 5 : i8
    %keep = arith.cmpi sle, %x, %c : i8
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: 'memref.load'
func.func @mask_of_keys(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %p: memref<300xi1>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %k = arith.index_cast %j : i32 to index
    %keep = memref.load %p[%k] : memref<300xi1>
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a tensor of conditions or floats
func.func @bits_as_number(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %p: memref<4xi128>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %k = arith.index_cast %b : i32 to index
    %x = memref.load %p[%k] : memref<4xi128>
    %y = arith.trunci %x : i128 to i32
    %keep = arith.cmpi sle, %j, %y : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a tensor that a query or a key indexes
func.func @by_query(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %p: memref<300xi32>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %k = arith.index_cast %i : i32 to index
    %x = memref.load %p[%k] : memref<300xi32>
    %keep = arith.cmpi sle, %j, %x : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: numbers below 0 as unsigned ones
func.func @unsigned(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %x = arith.subi %j, %i : i32
    %c = arith.constant 9 : i32
    %keep = arith.cmpi ule, %x, %c : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: numbers below 0 as unsigned ones
func.func @extended(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %x = arith.subi %j, %i : i32
    %y = arith.extui %x : i32 to i64
    %c = arith.constant 9 : i64
    %keep = arith.cmpi sle, %y, %c : i64
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: numbers below 0 as unsigned ones
func.func @unsigned_element(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %p: memref<4xi32>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %k = arith.index_cast %b : i32 to index
    %x = memref.load %p[%k] : memref<4xi32>
    %y = arith.extui %x : i32 to i64
    %z = arith.extsi %j : i32 to i64
    %keep = arith.cmpi sle, %z, %y : i64
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a quotient by what is no constant
func.func @quotient(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %one = arith.constant 1 : i32
    %c = arith.addi %i, %one : i32
    %x = arith.divsi %j, %c : i32
    %keep = arith.cmpi sle, %x, %one : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a quotient of numbers below 0
func.func @towards_zero(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 3 : i32
    %y = arith.subi %j, %i : i32
    %x = arith.divsi %y, %c : i32
    %keep = arith.cmpi sle, %x, %c : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: bits of numbers
func.func @bits(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 5 : i32
    %x = arith.andi %j, %c : i32
    %keep = arith.cmpi sle, %x, %c : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a remainder by what is no constant
func.func @remainder(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %one = arith.constant 1 : i32
    %c = arith.addi %i, %one : i32
    %x = arith.remsi %j, %c : i32
    %keep = arith.cmpi sle, %x, %one : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a remainder of numbers below 0
func.func @remainder_below_zero(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 3 : i32
    %y = arith.subi %j, %i : i32
    %x = arith.remsi %y, %c : i32
    %keep = arith.cmpi sle, %x, %c : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: the key stands there more than once
func.func @key_twice(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 3 : i32
    %x = arith.remsi %j, %c : i32
    %d = arith.constant 1 : i32
    %keep = arith.cmpi sle, %x, %d : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a shift by what is no constant
func.func @shift(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 3 : i32
    %x = arith.shli %c, %h : i32
    %keep = arith.cmpi sle, %j, %x : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a product of what is no constant
func.func @product(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %x = arith.muli %i, %h : i32
    %keep = arith.cmpi sle, %j, %x : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a condition as a number
func.func @sign(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.cmpi sle, %j, %i : i32
    %x = arith.extsi %c : i1 to i32
    %z = arith.constant 0 : i32
    %keep = arith.cmpi ne, %x, %z : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: a condition as a number
func.func @number(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.cmpi sle, %j, %i : i32
    %x = arith.extui %c : i1 to i32
    %z = arith.constant 0 : i32
    %keep = arith.cmpi ne, %x, %z : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: an order of conditions
func.func @order(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.cmpi sle, %j, %i : i32
    %d = arith.cmpi sle, %j, %h : i32
    %keep = arith.cmpi slt, %c, %d : i1
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: 'arith.minsi'
func.func @constants(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 3 : i32
    %x = arith.minsi %c, %c : i32
    %keep = arith.cmpi sle, %j, %x : i32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: 'arith.cmpf'
func.func @float(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c = arith.constant 3.0 : f32
    %x = arith.sitofp %j : i32 to f32
    %keep = arith.cmpf ole, %x, %c : f32
    attn.yield %keep : i1
  }
  return
}

// -----

// CHECK: [Missed] kept | {{.*}}a condition stays in mask_mod alone: too many conditions
func.func @many(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c0 = arith.cmpi sle, %j, %i : i32
    %h0 = arith.constant 0 : i32
    %d0 = arith.cmpi sle, %j, %h0 : i32
    %c1 = arith.xori %c0, %d0 : i1
    %h1 = arith.constant 1 : i32
    %d1 = arith.cmpi sle, %j, %h1 : i32
    %c2 = arith.xori %c1, %d1 : i1
    %h2 = arith.constant 2 : i32
    %d2 = arith.cmpi sle, %j, %h2 : i32
    %c3 = arith.xori %c2, %d2 : i1
    %h3 = arith.constant 3 : i32
    %d3 = arith.cmpi sle, %j, %h3 : i32
    %c4 = arith.xori %c3, %d3 : i1
    %h4 = arith.constant 4 : i32
    %d4 = arith.cmpi sle, %j, %h4 : i32
    %c5 = arith.xori %c4, %d4 : i1
    %h5 = arith.constant 5 : i32
    %d5 = arith.cmpi sle, %j, %h5 : i32
    %c6 = arith.xori %c5, %d5 : i1
    %h6 = arith.constant 6 : i32
    %d6 = arith.cmpi sle, %j, %h6 : i32
    %c7 = arith.xori %c6, %d6 : i1
    %h7 = arith.constant 7 : i32
    %d7 = arith.cmpi sle, %j, %h7 : i32
    %c8 = arith.xori %c7, %d7 : i1
    %h8 = arith.constant 8 : i32
    %d8 = arith.cmpi sle, %j, %h8 : i32
    %c9 = arith.xori %c8, %d8 : i1
    %h9 = arith.constant 9 : i32
    %d9 = arith.cmpi sle, %j, %h9 : i32
    %c10 = arith.xori %c9, %d9 : i1
    %h10 = arith.constant 10 : i32
    %d10 = arith.cmpi sle, %j, %h10 : i32
    %c11 = arith.xori %c10, %d10 : i1
    %h11 = arith.constant 11 : i32
    %d11 = arith.cmpi sle, %j, %h11 : i32
    %c12 = arith.xori %c11, %d11 : i1
    %keep = arith.ori %c12, %c12 : i1
    attn.yield %keep : i1
  }
  return
}
