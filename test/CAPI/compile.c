/* Compiles, fails and simulates through the C interface, from several threads
 * at once. Prints what compile.test looks for; returns 1 at the first surprise.
 */
#include "attn-c/Attn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);  \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static void set(AttnRequest *request, const char *name, const char *value) {
  attnRequestSetOption(request, attnStringFromC(name), attnStringFromC(value));
}

static AttnRequest *makeRequest(void) {
  AttnRequest *request = attnRequestCreate();
  set(request, "q", "1x2x64x64xf16");
  set(request, "causal", "");
  return request;
}

static void print(const char *title, AttnStringRef text) {
  printf("%s: %.*s\n", title, (int)text.length, text.data);
}

static void testVersions(void) {
  CHECK(attnGetAPIVersion() == ATTN_C_API_VERSION);
  print("version", attnGetCompilerVersion());
  AttnStringRef assembler = attnGetAssemblerVersion();
  CHECK(assembler.length == 0 || !strncmp(assembler.data, "Build ", 6));
  attnAddProgramFolder(attnStringFromC("/nonexistent"));
  CHECK(attnGetAssemblerVersion().length == assembler.length);
  for (size_t i = 0; i < attnGetNumTargets(); ++i) {
    AttnTarget target = attnGetTarget(i);
    CHECK(target.computeCapability >= 80 && target.minPTX <= target.defaultPTX);
    CHECK(target.sharedBytesPerCTA > 0);
    print("target", target.chip);
  }
  CHECK(attnGetTarget(attnGetNumTargets()).chip.length == 0);
}

static void testCompile(void) {
  AttnRequest *request = makeRequest();
  AttnResult *result = attnCompile(request);
  print("diagnostics", attnResultGetDiagnosticText(result));
  CHECK(attnResultSucceeded(result));
  CHECK(strstr(attnResultGetPTX(result).data, ".target sm_80"));
  CHECK(attnResultGetOutput(result).length == attnResultGetPTX(result).length);
  CHECK(attnResultGetNumPlans(result) == 1);
  print("plan", attnResultGetPlan(result, 0));
  CHECK(attnResultGetNumLaunches(result) == 1);
  CHECK(strstr(attnResultGetLaunch(result, 0).data, "\"shared_bytes\""));
  CHECK(attnResultGetLaunch(result, 1).length == 0);
  CHECK(attnResultGetPlan(result, 7).length == 0);
  /* The passes' remarks. */
  CHECK(attnResultGetNumDiagnostics(result) > 0);
  CHECK(attnResultGetDiagnostic(result, 0).severity == AttnSeverityRemark);
  attnResultDestroy(result);

  static const char *const rungs[] = {"problem", "plan", "tile",   "barrier",
                                      "thread",  "nvvm", "launch", "llvm"};
  for (size_t i = 0; i < sizeof(rungs) / sizeof(*rungs); ++i) {
    set(request, "emit", rungs[i]);
    result = attnCompile(request);
    CHECK(attnResultSucceeded(result));
    CHECK(attnResultGetOutput(result).length > 0);
    attnResultDestroy(result);
  }
  attnRequestDestroy(request);
}

/* Compiles a request that must fail, and prints why. */
static void expectFailure(AttnRequest *request) {
  AttnResult *result = attnCompile(request);
  CHECK(!attnResultSucceeded(result));
  CHECK(attnResultGetPTX(result).length == 0);
  print("text", attnResultGetDiagnosticText(result));
  for (size_t i = 0; i < attnResultGetNumDiagnostics(result); ++i) {
    AttnDiagnostic record = attnResultGetDiagnostic(result, i);
    printf("record: %d %.*s:%u:%u %.*s\n", (int)record.severity,
           (int)record.file.length, record.file.data, record.line,
           record.column, (int)record.message.length, record.message.data);
    for (size_t j = 0; j < record.numNotes; ++j) {
      AttnDiagnostic note = attnResultGetNote(result, i, j);
      CHECK(note.severity == AttnSeverityNote);
      print("note", note.message);
    }
  }
  attnResultDestroy(result);
  attnRequestDestroy(request);
}

static void expectOptionFailure(const char *name, const char *value) {
  AttnRequest *request = makeRequest();
  set(request, name, value);
  expectFailure(request);
}

static void expectTextFailure(const char *text) {
  AttnRequest *request = attnRequestCreate();
  attnRequestSetText(request, attnStringFromC(text),
                     attnStringFromC("bad.mlir"));
  expectFailure(request);
}

/* Expressions of launch records have the host's sizes. */
static void testSizes(void) {
  const AttnStringRef names[] = {attnStringFromC("q.dim2"),
                                 attnStringFromC("k.stride0"),
                                 attnStringFromC("sms")};
  const int64_t values[] = {300, 64, 132};
  int64_t result = 0;
  AttnStringRef error;
  CHECK(attnEvaluateSize(attnStringFromC("ceildiv(q.dim2, k.stride0) * sms"),
                         names, values, 3, &result, &error));
  CHECK(result == 5 * 132 && error.length == 0);
  CHECK(attnEvaluateSize(attnStringFromC("2"), NULL, NULL, 0, NULL, NULL));
  const char *const bad[] = {"q.dim2 *", "v.dim0", "1 / (q.dim2 - 300)", "sms"};
  for (int i = 0; i < 4; ++i) {
    CHECK(!attnEvaluateSize(attnStringFromC(bad[i]), names, values, 2, &result,
                            &error));
    print("size error", error);
  }
  CHECK(result == 5 * 132);
}

/* A flag without a value is set. */
static void testFlags(void) {
  const char *values[] = {"", "true", "false"};
  for (int i = 0; i < 3; ++i) {
    AttnRequest *request = makeRequest();
    set(request, "sinks", values[i]);
    AttnResult *result = attnCompile(request);
    CHECK(attnResultSucceeded(result));
    const char *launch = attnResultGetLaunch(result, 0).data;
    CHECK((strstr(launch, "\"sinks\": true") != NULL) == (i != 2));
    attnResultDestroy(result);
    attnRequestDestroy(request);
  }
}

static void testFailures(void) {
  expectFailure(attnRequestCreate());
  expectOptionFailure("colour", "red");
  expectOptionFailure("chip", "sm_42");
  expectOptionFailure("emit", "assembly");
  expectOptionFailure("sinks", "maybe");
  expectOptionFailure("kv-heads", "two");
  expectOptionFailure("softcap", "-1");
  expectOptionFailure("kv-heads", "3");
  expectTextFailure("func.func @f() {\n  attn.attention\n}\n");
  expectTextFailure("module {}\n");
  AttnRequest *both = makeRequest();
  attnRequestSetText(both, attnStringFromC("module {}"), attnStringFromC("x"));
  expectFailure(both);
  attnRequestDestroy(NULL);
  attnResultDestroy(NULL);
  attnSimulationDestroy(NULL);
  attnReportDestroy(NULL);
}

/* Runs `simulation` on a compiled kernel and prints why it cannot start. */
static void expectReportError(const AttnResult *result,
                              AttnSimulation *simulation) {
  AttnReport *report =
      attnSimulate(attnResultGetPTX(result), attnResultGetLaunch(result, 0),
                   NULL, simulation);
  CHECK(!attnReportRan(report) && !attnReportPassed(report));
  CHECK(attnReportGetNumTensors(report) == 0);
  print("report error", attnReportGetError(report));
  attnReportDestroy(report);
  attnSimulationDestroy(simulation);
}

static void setInput(AttnSimulation *simulation, const char *dtype,
                     int64_t rows, size_t numBytes) {
  const int64_t shape[] = {1, 2, rows, 64};
  void *zeros = calloc(1, numBytes);
  attnSimulationSetInput(simulation, attnStringFromC("q"),
                         attnStringFromC(dtype), shape, 4, zeros, numBytes);
  free(zeros);
}

static void testSimulation(void) {
  AttnRequest *request = makeRequest();
  AttnResult *result = attnCompile(request);
  CHECK(attnResultSucceeded(result));
  AttnSimulation *simulation = attnSimulationCreate();
  attnSimulationSetSeed(simulation, 3);
  attnSimulationSetThreads(simulation, 1);
  /* Zero queries see all keys alike. */
  setInput(simulation, "f16", 64, 2 * 64 * 64 * 2);
  AttnReport *report =
      attnSimulate(attnResultGetPTX(result), attnResultGetLaunch(result, 0),
                   request, simulation);
  print("report error", attnReportGetError(report));
  CHECK(attnReportRan(report) && attnReportPassed(report));
  CHECK(strstr(attnReportGetJSON(report).data, "\"passed\": true"));
  CHECK(attnReportGetText(report).length > 0);
  CHECK(attnReportGetNumTensors(report) == 5);
  AttnTensor lse = attnReportGetTensor(report, 4);
  CHECK(strcmp(lse.name.data, "lse") == 0 && lse.rank == 3);
  CHECK(strcmp(lse.dtype.data, "f32") == 0 && lse.written);
  CHECK(lse.numBytes == 2 * 64 * sizeof(float));
  float row[2];
  memcpy(row, lse.data, sizeof(row));
  printf("lse: %.4f %.4f\n", (double)row[0], (double)row[1]);
  CHECK(attnReportGetTensor(report, 5).name.length == 0);
  attnReportDestroy(report);
  attnSimulationDestroy(simulation);

  simulation = attnSimulationCreate();
  setInput(simulation, "f17", 64, 16);
  expectReportError(result, simulation);
  simulation = attnSimulationCreate();
  setInput(simulation, "f16", 64, 16);
  expectReportError(result, simulation);
  simulation = attnSimulationCreate();
  setInput(simulation, "f16", 64, 2 * 64 * 64 * 2 + 2);
  expectReportError(result, simulation);
  simulation = attnSimulationCreate();
  setInput(simulation, "f16", -1, 16);
  expectReportError(result, simulation);
  simulation = attnSimulationCreate();
  setInput(simulation, "bf16", 32, 2 * 32 * 64 * 2);
  expectReportError(result, simulation);
  attnResultDestroy(result);
  attnRequestDestroy(request);
}

/* What a progress callback sees, and when it stops the run. */
typedef struct Watch {
  pthread_t caller;
  int calls, stopAt;
} Watch;

static bool watch(void *userData, AttnStringRef phase, double fraction,
                  double secondsLeft) {
  Watch *seen = userData;
  CHECK(pthread_equal(seen->caller, pthread_self()));
  CHECK(phase.length > 0 && fraction <= 1 && secondsLeft < 60);
  return ++seen->calls != seen->stopAt;
}

static void testProgress(void) {
  AttnRequest *request = makeRequest();
  AttnResult *result = attnCompile(request);
  for (int stopAt = 0; stopAt <= 3; ++stopAt) {
    Watch seen = {pthread_self(), 0, stopAt};
    AttnSimulation *simulation = attnSimulationCreate();
    attnSimulationSetProgress(simulation, watch, &seen);
    AttnReport *report =
        attnSimulate(attnResultGetPTX(result), attnResultGetLaunch(result, 0),
                     request, simulation);
    CHECK(attnReportRan(report) == !stopAt);
    CHECK(attnReportWasStopped(report) == (stopAt != 0));
    CHECK(stopAt ? seen.calls == stopAt : seen.calls >= 3);
    if (stopAt == 3)
      print("stopped", attnReportGetError(report));
    attnReportDestroy(report);
    attnSimulationSetProgress(simulation, NULL, NULL);
    report = attnSimulate(attnResultGetPTX(result),
                          attnResultGetLaunch(result, 0), request, simulation);
    CHECK(attnReportPassed(report) && !attnReportWasStopped(report));
    attnReportDestroy(report);
    attnSimulationDestroy(simulation);
  }
  attnResultDestroy(result);
  attnRequestDestroy(request);
}

/* Every function takes NULL for an object and for bytes. */
static void testNull(void) {
  const AttnStringRef none = {NULL, 0}, lost = {NULL, 7};
  CHECK(attnStringFromC(NULL).length == 0);

  attnRequestSetText(NULL, none, none);
  attnRequestSetOption(NULL, none, none);
  expectFailure(NULL);
  AttnRequest *request = attnRequestCreate();
  attnRequestSetText(request, lost, lost);
  expectFailure(request);
  request = attnRequestCreate();
  attnRequestSetOption(request, none, lost);
  expectFailure(request);

  CHECK(!attnResultSucceeded(NULL));
  CHECK(attnResultGetOutput(NULL).length == 0);
  CHECK(attnResultGetPTX(NULL).length == 0);
  CHECK(attnResultGetNumPlans(NULL) == 0);
  CHECK(attnResultGetPlan(NULL, 0).length == 0);
  CHECK(attnResultGetNumLaunches(NULL) == 0);
  CHECK(attnResultGetLaunch(NULL, 0).length == 0);
  CHECK(attnResultGetDiagnosticText(NULL).length == 0);
  CHECK(attnResultGetNumDiagnostics(NULL) == 0);
  CHECK(attnResultGetDiagnostic(NULL, 0).message.length == 0);
  CHECK(attnResultGetNote(NULL, 0, 0).message.length == 0);

  attnSimulationSetInput(NULL, none, none, NULL, 0, NULL, 0);
  attnSimulationSetSize(NULL, none, 0);
  attnSimulationSetSeed(NULL, 0);
  attnSimulationSetVerify(NULL, true);
  attnSimulationSetQuick(NULL, true);
  attnSimulationSetCorners(NULL, true);
  attnSimulationSetThreads(NULL, 0);
  attnSimulationSetOption(NULL, none, none);
  attnSimulationSetProgress(NULL, NULL, NULL);
  attnSimulationSetProgress(NULL, watch, NULL);

  request = makeRequest();
  AttnResult *result = attnCompile(request);
  const int64_t shape[] = {1, 2, 64, 64};
  AttnSimulation *simulation = attnSimulationCreate();
  attnSimulationSetInput(simulation, attnStringFromC("q"),
                         attnStringFromC("f16"), shape, 4, NULL, 16384);
  expectReportError(result, simulation);
  simulation = attnSimulationCreate();
  attnSimulationSetInput(simulation, attnStringFromC("q"),
                         attnStringFromC("f16"), NULL, 4, shape, 16384);
  expectReportError(result, simulation);
  expectReportError(NULL, NULL);
  AttnReport *report = attnSimulate(attnResultGetPTX(result),
                                    attnResultGetLaunch(result, 0), NULL, NULL);
  CHECK(attnReportPassed(report));
  attnReportDestroy(report);
  report = attnSimulateLaunch(lost, none, NULL);
  CHECK(!attnReportRan(report));
  CHECK(attnReportGetError(report).length > 0);
  attnReportDestroy(report);
  attnResultDestroy(result);
  attnRequestDestroy(request);

  AttnStringRef error;
  const int64_t value = 1;
  CHECK(!attnEvaluateSize(none, NULL, NULL, 0, NULL, NULL));
  CHECK(!attnEvaluateSize(attnStringFromC("1"), NULL, &value, 1, NULL, &error));
  print("size error", error);
  CHECK(!attnEvaluateSize(attnStringFromC("1"), &none, NULL, 1, NULL, &error));
  print("size error", error);

  CHECK(!attnReportRan(NULL) && !attnReportPassed(NULL));
  CHECK(!attnReportWasStopped(NULL));
  CHECK(attnReportGetError(NULL).length == 0);
  CHECK(attnReportGetJSON(NULL).length == 0);
  CHECK(attnReportGetText(NULL).length == 0);
  CHECK(attnReportGetNumTensors(NULL) == 0);
  CHECK(attnReportGetTensor(NULL, 0).name.length == 0);
}

/* What was destroyed is as good as NULL, and destroyed once. */
static void testDestroyed(void) {
  AttnRequest *request = makeRequest();
  AttnResult *result = attnCompile(request);
  AttnStringRef ptx = attnResultGetPTX(result);
  CHECK(ptx.length > 0);
  AttnSimulation *simulation = attnSimulationCreate();
  AttnReport *report =
      attnSimulateLaunch(attnStringFromC(""), attnStringFromC(""), simulation);
  attnReportDestroy(report);
  attnResultDestroy(result);
  attnSimulationDestroy(simulation);
  attnRequestDestroy(request);

  set(request, "q", "1");
  attnRequestSetText(request, attnStringFromC(""), attnStringFromC(""));
  attnSimulationSetInput(simulation, attnStringFromC("q"),
                         attnStringFromC("f16"), NULL, 0, NULL, 0);
  attnSimulationSetSize(simulation, attnStringFromC("q.dim0"), 1);
  attnSimulationSetSeed(simulation, 1);
  attnSimulationSetVerify(simulation, false);
  attnSimulationSetQuick(simulation, true);
  attnSimulationSetCorners(simulation, true);
  attnSimulationSetThreads(simulation, 1);
  attnSimulationSetOption(simulation, attnStringFromC("seed"),
                          attnStringFromC("1"));
  attnSimulationSetProgress(simulation, watch, NULL);

  CHECK(!attnResultSucceeded(result));
  CHECK(attnResultGetPTX(result).length == 0);
  CHECK(attnResultGetOutput(result).length == 0);
  CHECK(attnResultGetNumPlans(result) == 0);
  CHECK(attnResultGetPlan(result, 0).length == 0);
  CHECK(attnResultGetNumLaunches(result) == 0);
  CHECK(attnResultGetLaunch(result, 0).length == 0);
  CHECK(attnResultGetDiagnosticText(result).length == 0);
  CHECK(attnResultGetNumDiagnostics(result) == 0);
  CHECK(attnResultGetDiagnostic(result, 0).message.length == 0);
  CHECK(attnResultGetNote(result, 0, 0).message.length == 0);

  CHECK(!attnReportRan(report) && !attnReportPassed(report));
  CHECK(!attnReportWasStopped(report));
  CHECK(attnReportGetError(report).length == 0);
  CHECK(attnReportGetJSON(report).length == 0);
  CHECK(attnReportGetText(report).length == 0);
  CHECK(attnReportGetNumTensors(report) == 0);
  CHECK(attnReportGetTensor(report, 0).name.length == 0);

  attnReportDestroy(report);
  attnResultDestroy(result);
  attnSimulationDestroy(simulation);
  attnRequestDestroy(request);

  AttnStringRef none = attnStringFromC("");
  AttnReport *last = attnSimulate(none, none, request, NULL);
  print("report error", attnReportGetError(last));
  attnReportDestroy(last);
  last = attnSimulateLaunch(none, none, simulation);
  print("report error", attnReportGetError(last));
  attnReportDestroy(last);
  expectFailure(request);
}

/* What is passed in may be freed when the call has returned. */
static void testFreedTexts(void) {
  AttnRequest *request = attnRequestCreate();
  static const char *const options[][2] = {{"q", "1x2x64x64xf16"},
                                           {"causal", ""}};
  for (int i = 0; i < 2; ++i) {
    char *name = strdup(options[i][0]), *value = strdup(options[i][1]);
    attnRequestSetOption(request, attnStringFromC(name),
                         attnStringFromC(value));
    memset(name, '?', strlen(name));
    memset(value, '?', strlen(value));
    free(name);
    free(value);
  }
  AttnResult *result = attnCompile(request);
  CHECK(attnResultSucceeded(result));
  attnResultDestroy(result);
  attnRequestDestroy(request);
}

static void *compileInThread(void *text) {
  AttnRequest *good = makeRequest();
  set(good, "q", text);
  AttnResult *result = attnCompile(good);
  CHECK(attnResultSucceeded(result));
  AttnRequest *bad = makeRequest();
  set(bad, "kv-heads", "3");
  AttnResult *failed = attnCompile(bad);
  CHECK(!attnResultSucceeded(failed));
  CHECK(strstr(attnResultGetDiagnosticText(failed).data, "heads"));
  attnResultDestroy(failed);
  attnRequestDestroy(bad);
  attnRequestDestroy(good);
  return result;
}

static void testThreads(void) {
  enum { count = 4 };
  static char shapes[count][16] = {"1x1x64x64xf16", "1x1x64x64xf16",
                                   "1x2x32x64xbf16", "1x1x64x32xf16"};
  pthread_t threads[count];
  AttnResult *results[count];
  for (int i = 0; i < count; ++i)
    CHECK(!pthread_create(&threads[i], NULL, compileInThread, shapes[i]));
  for (int i = 0; i < count; ++i) {
    void *result;
    CHECK(!pthread_join(threads[i], &result));
    results[i] = result;
  }
  CHECK(strcmp(attnResultGetPTX(results[0]).data,
               attnResultGetPTX(results[1]).data) == 0);
  CHECK(strcmp(attnResultGetPTX(results[0]).data,
               attnResultGetPTX(results[2]).data) != 0);
  for (int i = 0; i < count; ++i)
    attnResultDestroy(results[i]);
}

int main(void) {
  testVersions();
  testCompile();
  testSizes();
  testFlags();
  testFailures();
  testSimulation();
  testProgress();
  testNull();
  testDestroyed();
  testFreedTexts();
  testThreads();
  puts("done");
  return 0;
}
