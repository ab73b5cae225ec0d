//===- InstrumentPasses.td - Checks inside a kernel ---------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_INSTRUMENTPASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_INSTRUMENTPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnInstrumentPass : Pass<"attn-instrument", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Let kernels check their synchronisation as they run";
  let description = [{
    Puts checks beside the ops on mbarriers, and beside accesses to the slots that they guard, of
    kernels with buffers and barriers in place. Where one fails, the kernel notes it in global
    memory (the variable `attn_reports` of its module) and goes on; `attn_report_sites` says in
    JSON what each note stands for. The kernel's parameters stay, so that it is launched as it is
    without checks, by the same launch record but for the bytes of shared memory.

    Beside each barrier lies a word with the number of signals and one with the op that sent the
    last; beside each warp that uses the barrier, the phases that it has waited for and the
    signals that it has sent. They are checked as follows.

    - A wait finds its own phase as the last complete one (*slip*).
    - A signal counts in the phase of its number (*signal in the wrong phase*).
    - A slot is read after a wait for the last copy to it, and before it is given back; it is
      written after a wait for its readers, by a copy whose barrier is that of the slot.
    - A wait ends within `timeout-us`. If one does not, all that wait say so; then no wait of the
      CTA waits any more, no signal is sent and no slot is filled, nothing else is reported, and
      the kernel ends with wrong results.

    What is not checked: barriers with other signals than `attn.mbarrier.arrive` and
    `attn.mbarrier.expect_tx` but for the time of their waits; named barriers; bytes of shared
    memory that no copy by TMA writes; tensor memory.

    Example: test/doc/attn-instrument.mlir
  }];
  let options = [
    Option<"checks", "checks", "bool", "true", "Check signals, waits and slots.">,
    Option<"timeout", "timeout-us", "int64_t", "2000000",
      "Microseconds after which a wait is given up, or 0 for never.">,
    Option<"delay", "delay-ns", "int64_t", "0",
      "Most nanoseconds of a random pause behind each wait and in front of each signal.">,
    Option<"seed", "seed", "int64_t", "1", "Which pauses. The first word of attn_reports is added to it.">,
    Option<"chip", "chip", "std::string", "\"sm_90a\"",
      "Whose shared memory the words have to fit into, where the module names no target.">
  ];
  let statistics = [
    Statistic<"numChecks", "checks", "Number of checks put in">,
    Statistic<"numBytes", "bytes", "Bytes of shared memory that they take">
  ];
  let dependentDialects = ["::mlir::attn::AttnDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
    "::mlir::gpu::GPUDialect"];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_INSTRUMENTPASSES_TD
