// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.rows" 2>&1 | FileCheck %s --check-prefix=NO-SHAPE
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.rows shape=64x-1" 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.rows shape=64x0" 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.rows shape=64 element=index" 2>&1 | FileCheck %s --check-prefix=ELEMENT
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.rows shape=64 element=f33" 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.auto shape=64" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.nothing shape=64" 2>&1 | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.mma<warps=[4,1]> shape=60x16" 2>&1 | FileCheck %s --check-prefix=FIT
// RUN: not attn-opt %s --attn-print-layouts="layout=#attn.rows shape=2048x2048" 2>&1 | FileCheck %s --check-prefix=BIG
// RUN: not attn-opt %s --attn-print-layouts="svg output-dir=%s/folder" 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: %python -c "import subprocess, sys; deep = '[' * 60000; sys.exit(subprocess.call(['attn' '-opt', sys.argv[1], '--attn-print-layouts=shape=64 layout=' + deep]) != 1)" %s 2>&1 | FileCheck %s --check-prefix=DEEP
// RUN: rm -rf %t && mkdir -p %t/0-buffer-rows-64xf32.svg
// RUN: not attn-opt %s --attn-print-layouts="svg output-dir=%t" 2>&1 | FileCheck %s --check-prefix=FILE

// NO-SHAPE: expected a shape such as 64x16 with the layout to print, got ''
// SHAPE: expected a shape such as 64x16 with the layout to print, got '64x-1'
// EMPTY: expected a shape such as 64x16 with the layout to print, got '64x0'
// ELEMENT: expected an integer or float as the element to print, got 'index'
// TYPE: error
// AUTO: expected a layout of a tile or a buffer, got #attn.auto
// ATTRIBUTE: unknown attribute `nothing` in dialect `attn`
// FIT: to be a positive multiple of
// BIG: expected at most 1048576 elements to draw, got 2048x2048
// DEEP: error: cannot read an option's text: expected at most 256 nested brackets
// FOLDER: cannot make the folder '
// FILE: cannot write '

%b = attn.alloc : !attn.buffer<64xf32, #attn.rows, shared>
