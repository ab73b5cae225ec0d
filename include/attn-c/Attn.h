/*===- attn-c/Attn.h - The compiler's C interface -----------------*- C -*-===*\
|*                                                                            *|
|* From an attention problem to PTX, cubin, launch record and simulation, for *|
|* programs in C and for other languages. docs/CAPI.md is the guide.          *|
|*                                                                            *|
|* Ownership: an object from an attn...Create, attnCompile or attnSimulate is *|
|* the caller's and ends with its attn...Destroy, which takes NULL too. An    *|
|* AttnStringRef or array that an object hands out lives as long as the       *|
|* object. What the caller passes in is copied before the call returns.       *|
|*                                                                            *|
|* NULL: a call on a NULL object does nothing, and a getter gives what an     *|
|* empty object has: false, 0 or no text. attnCompile(NULL) and bytes that    *|
|* are NULL where there should be some give a failed result that says so.     *|
|* Meant to be NULL are the `problem` of attnSimulate, where there is none,   *|
|* and the `simulation` of both runs, for the default settings. An            *|
|* AttnStringRef whose data is NULL is empty, whatever its length. What was   *|
|* destroyed counts as NULL until a later object has its address.             *|
|*                                                                            *|
|* Threads: calls on different objects may run at once. A request or a        *|
|* simulation may be read by several calls at once while none changes it.     *|
|*                                                                            *|
|* Failure: no call ends the process or throws. Fatal errors inside LLVM come *|
|* back as diagnostics; the memory that the failed compilation held is lost   *|
|* then, and nothing else.                                                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef ATTN_C_ATTN_H
#define ATTN_C_ATTN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Version of this interface. It grows when something is added; a change that
 * breaks callers also changes the library's soname. */
#define ATTN_C_API_VERSION 5

#if defined(__GNUC__) || defined(__clang__)
#define ATTN_C_EXPORTED __attribute__((visibility("default")))
#else
#define ATTN_C_EXPORTED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes with a length. From this library the byte at data[length] is 0, which
 * a cubin's bytes do not make a text. */
typedef struct AttnStringRef {
  const char *data;
  size_t length;
} AttnStringRef;

/** A problem and how to compile it. */
typedef struct AttnRequest AttnRequest;
/** What a compilation gave, failed or not. */
typedef struct AttnResult AttnResult;
/** Inputs and settings of a run on the simulator. */
typedef struct AttnSimulation AttnSimulation;
/** What a run on the simulator gave, failed or not. */
typedef struct AttnReport AttnReport;

typedef enum AttnSeverity {
  AttnSeverityError = 0,
  AttnSeverityWarning = 1,
  AttnSeverityRemark = 2,
  AttnSeverityNote = 3
} AttnSeverity;

/** One message of the compiler. */
typedef struct AttnDiagnostic {
  AttnSeverity severity;
  /** Lower case, without a final stop. */
  AttnStringRef message;
  /** Name of the file, as the request has it; empty without a location. */
  AttnStringRef file;
  /** From 1; 0 without a location. */
  uint32_t line;
  uint32_t column;
  /** Messages at other places that belong to this one. */
  size_t numNotes;
} AttnDiagnostic;

/** One target of the compiler. */
typedef struct AttnTarget {
  /** What the option `chip` takes, such as "sm_90a". */
  AttnStringRef chip;
  /** Compute capability times ten: 90. */
  uint32_t computeCapability;
  /** PTX versions times ten: the least that knows the chip, and the one that
   * the compiler emits. */
  uint32_t minPTX;
  uint32_t defaultPTX;
  /** Most bytes of shared memory of one CTA. */
  uint32_t sharedBytesPerCTA;
} AttnTarget;

/** One tensor of a simulated launch. */
typedef struct AttnTensor {
  AttnStringRef name;
  /** f16, bf16, f32, f64, f8E4M3FN, f8E5M2, f8E8M0FNU, i8 to i64, or u8 to u64.
   */
  AttnStringRef dtype;
  const int64_t *shape;
  size_t rank;
  /** True for what the kernel writes, in place too. */
  bool written;
  /** The elements, row-major and dense, little-endian. */
  const void *data;
  size_t numBytes;
} AttnTensor;

/*===----------------------------------------------------------------------===*\
|* Versions and targets                                                       *|
\*===----------------------------------------------------------------------===*/

/** ATTN_C_API_VERSION of the library that was loaded. */
ATTN_C_EXPORTED uint32_t attnGetAPIVersion(void);
/** Version of the compiler and of LLVM, such as "0.1.0 (LLVM 22.1.8)". Other
 * output for the same input means another text here only in releases. */
ATTN_C_EXPORTED AttnStringRef attnGetCompilerVersion(void);
/** The build of the ptxas that makes cubins, as it states it; empty where there
 * is none. Lives until the thread's next call of this function. */
ATTN_C_EXPORTED AttnStringRef attnGetAssemblerVersion(void);

/** Names a folder where ptxas and nvdisasm are looked for behind all others.
 * Since interface version 5. */
ATTN_C_EXPORTED void attnAddProgramFolder(AttnStringRef folder);

ATTN_C_EXPORTED size_t attnGetNumTargets(void);
/** The target at `index`, oldest first; an empty chip when there is none. */
ATTN_C_EXPORTED AttnTarget attnGetTarget(size_t index);

/** A string that ends with a zero byte as an AttnStringRef; NULL is empty. */
ATTN_C_EXPORTED AttnStringRef attnStringFromC(const char *text);

/** The value of an expression of a launch record, such as an extent of the grid
 * (docs/LaunchRecord.md), for a launch where the size, stride or number of the
 * device called `names[i]` (q.dim2, q.stride0, sms) is `values[i]`. Returns
 * true and sets `result`. Returns false for what is no expression, names
 * something else, divides by zero or overflows 64 bits; `error` then says so,
 * until the thread's next call of this function. */
ATTN_C_EXPORTED bool attnEvaluateSize(AttnStringRef expression,
                                      const AttnStringRef *names,
                                      const int64_t *values, size_t count,
                                      int64_t *result, AttnStringRef *error);

/*===----------------------------------------------------------------------===*\
|* Compilation                                                                *|
\*===----------------------------------------------------------------------===*/

/** A request without a problem. */
ATTN_C_EXPORTED AttnRequest *attnRequestCreate(void);
ATTN_C_EXPORTED void attnRequestDestroy(AttnRequest *request);

/** Takes the problem from MLIR text: attn.attention on memrefs or tensors, or
 * a later rung. `fileName` is for diagnostics. */
ATTN_C_EXPORTED void attnRequestSetText(AttnRequest *request,
                                        AttnStringRef text,
                                        AttnStringRef fileName);

/** Sets an option. Names and values are those of attn-compile's flags without
 * the dashes: those of a problem that is not given as text (docs/spec.md,
 * "Options"); chip, board, schedule, set, plan-table, shipped-plans,
 * assemble-check, read-masks, split-keys, partials, epilogue, debug-lines for
 * the compilation; emit for the last rung. `set` adds up; another option that
 * is set twice has its last value. A value of true, false or nothing (true)
 * goes with what is there or not, such as lse, shipped-plans, read-masks,
 * split-keys and debug-lines. Wrong names and values are found by attnCompile.
 */
ATTN_C_EXPORTED void attnRequestSetOption(AttnRequest *request,
                                          AttnStringRef name,
                                          AttnStringRef value);

/** Compiles. Never gives NULL; ask attnResultSucceeded. */
ATTN_C_EXPORTED AttnResult *attnCompile(const AttnRequest *request);
ATTN_C_EXPORTED void attnResultDestroy(AttnResult *result);

ATTN_C_EXPORTED bool attnResultSucceeded(const AttnResult *result);
/** The text of the last rung, or the bytes of the cubin. */
ATTN_C_EXPORTED AttnStringRef attnResultGetOutput(const AttnResult *result);
/** The PTX; empty when the last rung lies above it. */
ATTN_C_EXPORTED AttnStringRef attnResultGetPTX(const AttnResult *result);

/** The plan of each attention, as it prints in IR. */
ATTN_C_EXPORTED size_t attnResultGetNumPlans(const AttnResult *result);
ATTN_C_EXPORTED AttnStringRef attnResultGetPlan(const AttnResult *result,
                                                size_t index);
/** The launch record of each kernel as JSON, from the rung nvvm on. */
ATTN_C_EXPORTED size_t attnResultGetNumLaunches(const AttnResult *result);
ATTN_C_EXPORTED AttnStringRef attnResultGetLaunch(const AttnResult *result,
                                                  size_t index);

/** All errors, warnings and remarks as a terminal would show them, with the
 * lines of the problem that they are about. */
ATTN_C_EXPORTED AttnStringRef
attnResultGetDiagnosticText(const AttnResult *result);
/** The same as records. An index out of range gives an empty record. */
ATTN_C_EXPORTED size_t attnResultGetNumDiagnostics(const AttnResult *result);
ATTN_C_EXPORTED AttnDiagnostic attnResultGetDiagnostic(const AttnResult *result,
                                                       size_t index);
ATTN_C_EXPORTED AttnDiagnostic attnResultGetNote(const AttnResult *result,
                                                 size_t diagnostic,
                                                 size_t note);

/*===----------------------------------------------------------------------===*\
|* Simulation                                                                 *|
\*===----------------------------------------------------------------------===*/

/** Settings of a run: random inputs, seed 0. */
ATTN_C_EXPORTED AttnSimulation *attnSimulationCreate(void);
ATTN_C_EXPORTED void attnSimulationDestroy(AttnSimulation *simulation);

/** Gives an input its elements: row-major, dense, `numBytes` of them. `dtype`
 * is named as in AttnTensor. */
ATTN_C_EXPORTED void attnSimulationSetInput(AttnSimulation *simulation,
                                            AttnStringRef name,
                                            AttnStringRef dtype,
                                            const int64_t *shape, size_t rank,
                                            const void *data, size_t numBytes);
/** A size or stride that the launch record leaves open, such as "q.dim2". With
 * none, and no input q, k or v, the open sizes are those of the problem. */
ATTN_C_EXPORTED void attnSimulationSetSize(AttnSimulation *simulation,
                                           AttnStringRef name, int64_t value);
/** Seed of random inputs and of the schedule. */
ATTN_C_EXPORTED void attnSimulationSetSeed(AttnSimulation *simulation,
                                           uint64_t seed);
/** Compares with the float64 reference (default), or does not. */
ATTN_C_EXPORTED void attnSimulationSetVerify(AttnSimulation *simulation,
                                             bool verify);
/** With verification: runs 64 CTAs that the seed draws, and compares the rows
 * that they write, or runs all (default). Launches whose CTAs need each other
 * run whole. */
ATTN_C_EXPORTED void attnSimulationSetQuick(AttnSimulation *simulation,
                                            bool quick);
/** Also runs every corner of schedule and timing. */
ATTN_C_EXPORTED void attnSimulationSetCorners(AttnSimulation *simulation,
                                              bool corners);
/** Host threads of the run; 0 (default) takes all cores. */
ATTN_C_EXPORTED void attnSimulationSetThreads(AttnSimulation *simulation,
                                              uint32_t threads);

/** Sets an option of the run. Names and values are those of attn-sim's flags
 * without the dashes: schedule, reads, writes, adversarial, profile, sanitize,
 * step-limit; for attnSimulateLaunch also estimate, vary, sass, trace,
 * timeline, chip and registers. Wrong names and values are found by the run. */
ATTN_C_EXPORTED void attnSimulationSetOption(AttnSimulation *simulation,
                                             AttnStringRef name,
                                             AttnStringRef value);

/** Hears how far a run is. `phase` is what is being done, such as "inputs",
 * "reference", "simulation" or "corner 3 of 8", valid during the call;
 * `fraction` how much of that is done, from 0 to 1, negative where it is not
 * known; `secondsLeft` an estimate for all that is left of the run, negative
 * where there is none. `userData` is what was given with the callback. Returns
 * true to go on, false to stop the run at once. */
typedef bool (*AttnProgressCallback)(void *userData, AttnStringRef phase,
                                     double fraction, double secondsLeft);
/** Makes runs call `callback` on the thread that called them, first before the
 * work starts and then about ten times a second; NULL (default) calls nothing.
 */
ATTN_C_EXPORTED void attnSimulationSetProgress(AttnSimulation *simulation,
                                               AttnProgressCallback callback,
                                               void *userData);

/** Runs the kernel of a launch record (JSON) in `ptx`. `problem` and
 * `simulation` may be NULL; `problem` is the request that was compiled, from
 * which score_mod, mask_mod and open sizes are taken. Never gives NULL; ask
 * attnReportRan. */
ATTN_C_EXPORTED AttnReport *attnSimulate(AttnStringRef ptx,
                                         AttnStringRef launch,
                                         const AttnRequest *problem,
                                         const AttnSimulation *simulation);
/** Runs any kernel: `launch` is a launch.json as docs/RecordedLaunches.md
 * describes it, whose tensors have their contents from attnSimulationSetInput.
 * `simulation` may be NULL. Nothing is compared with a reference. Never gives
 * NULL; ask attnReportRan. */
ATTN_C_EXPORTED AttnReport *
attnSimulateLaunch(AttnStringRef ptx, AttnStringRef launch,
                   const AttnSimulation *simulation);
ATTN_C_EXPORTED void attnReportDestroy(AttnReport *report);

/** False when the launch could not start; attnReportGetError says why. */
ATTN_C_EXPORTED bool attnReportRan(const AttnReport *report);
ATTN_C_EXPORTED AttnStringRef attnReportGetError(const AttnReport *report);
/** True when a progress callback stopped the run, which then has not run and
 * has the error "stopped by the caller". */
ATTN_C_EXPORTED bool attnReportWasStopped(const AttnReport *report);
/** True when it ran, the sanitizer found nothing and, with verification, the
 * deviations are within their tolerances. */
ATTN_C_EXPORTED bool attnReportPassed(const AttnReport *report);
/** Findings, deviations and counters, for programs and for people. */
ATTN_C_EXPORTED AttnStringRef attnReportGetJSON(const AttnReport *report);
ATTN_C_EXPORTED AttnStringRef attnReportGetText(const AttnReport *report);
/** The tensors of the launch, in the record's order; an index out of range
 * gives an empty name. */
ATTN_C_EXPORTED size_t attnReportGetNumTensors(const AttnReport *report);
ATTN_C_EXPORTED AttnTensor attnReportGetTensor(const AttnReport *report,
                                               size_t index);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ATTN_C_ATTN_H */
