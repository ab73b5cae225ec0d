//===- attn-fuzz.cpp - Many changed inputs in one process -----------------===//
//
// Gives changed copies of the inputs in a folder to the libraries, each under a
// limit of time and memory. A child process works; when it ends, its parent
// says on which input and starts another behind it. scripts/fuzz.py makes the
// folder, sorts what is found, and makes it small.
//
//   attn-fuzz --corpus=FOLDER --first=0 --count=100000
//   attn-fuzz --corpus=FOLDER --first=17 --count=1 --write=FOLDER
//   attn-fuzz FILE...            each named TARGET-..., given as it is
//
// A line of JSON for each input that ended the process, and one at the end.
// Exit status: 0 when none did, 1 when some did, 2 for wrong arguments.
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"
#include "Targets.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <csignal>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir::attn::fuzz;
using llvm::StringRef;
namespace cl = llvm::cl;

static cl::OptionCategory category("attn-fuzz options");
static cl::list<std::string> files(cl::Positional, cl::desc("[files]"),
                                   cl::cat(category));
static cl::opt<std::string> corpusPath("corpus", cl::cat(category),
                                       cl::desc("Folder of TARGET/NAME files"));
static cl::opt<std::string>
    writePath("write", cl::cat(category),
              cl::desc("Write the inputs into this folder; run none"));
static cl::opt<uint64_t> seed("seed", cl::init(0), cl::cat(category));
static cl::opt<uint64_t> first("first", cl::init(0), cl::cat(category));
static cl::opt<uint64_t> count("count", cl::init(1000), cl::cat(category));
static cl::opt<unsigned>
    cpuSeconds("seconds", cl::init(10), cl::cat(category),
               cl::desc("Processor time that one input may take"));
static cl::opt<unsigned>
    memoryMiB("memory", cl::init(4096), cl::cat(category),
              cl::desc("Address space of the working process; 0: no limit"));
static cl::opt<unsigned>
    wallSeconds("for", cl::init(0), cl::cat(category),
                cl::desc("Stop after this many seconds; 0: never"));
static cl::opt<bool> wantsStack("stack", cl::cat(category),
                                cl::desc("Show where time ran out"));

/// Exit status of a child whose input took too long.
static constexpr int kTimeoutStatus = 80;
/// Inputs after which a child gives its memory back.
static constexpr uint64_t kRenewal = 4000;

namespace {

/// What the child tells its parent.
struct Progress {
  /// Inputs that are done, and of each target those that went through.
  uint64_t done = 0;
  uint64_t inputs[16] = {}, accepted[16] = {};
};

/// Where inputs come from: files as they are, or changed ones.
class Source {
public:
  llvm::Error read();
  uint64_t size() const { return files.empty() ? count : given.size(); }
  Mutator::Case get(uint64_t position) const {
    if (!mutator)
      return {given[position].target, given[position].text};
    return mutator->make(seed, first + position);
  }

private:
  std::vector<Seed> given;
  std::unique_ptr<Mutator> mutator;
};

} // namespace

static llvm::Expected<std::string> readBytes(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return llvm::createStringError(buffer.getError(),
                                   "cannot read '" + path + "'");
  return (*buffer)->getBuffer().str();
}

llvm::Error Source::read() {
  std::vector<std::pair<std::string, std::string>> found;
  for (StringRef path : files)
    found.emplace_back(llvm::sys::path::filename(path).split('-').first.str(),
                       path.str());
  if (files.empty())
    for (StringRef target : Targets::getNames()) {
      std::error_code code;
      std::string folder = corpusPath + "/" + target.str();
      for (llvm::sys::fs::directory_iterator it(folder, code), end;
           it != end && !code; it.increment(code))
        found.emplace_back(target.str(), it->path());
    }
  llvm::sort(found);
  for (auto &[target, path] : found) {
    if (!llvm::is_contained(Targets::getNames(), target))
      return llvm::createStringError("'" + path +
                                     "': expected a target's name in front of "
                                     "the first hyphen, got '" +
                                     target + "'");
    llvm::Expected<std::string> text = readBytes(path);
    if (!text)
      return text.takeError();
    given.push_back({target, path, std::move(*text)});
  }
  if (given.empty())
    return llvm::createStringError("expected files or --corpus, got no input");
  if (files.empty())
    mutator = std::make_unique<Mutator>(given);
  return llvm::Error::success();
}

/// Seconds since some moment, by which --for ends a run.
static double readClock() {
  // no verdict: inputs that were not run are none that failed.
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count(); // no verdict: as above
}

static void onTimeout(int) {
  if (wantsStack) {
    alarm(60);
    llvm::sys::PrintStackTrace(llvm::errs());
  }
  _exit(kTimeoutStatus);
}

/// Works until the inputs or its time are over.
static void work(const Source &source, Progress &progress, int errors,
                 double deadline) {
  dup2(errors, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  if (memoryMiB) {
    rlimit limit = {rlim_t(memoryMiB) << 20, rlim_t(memoryMiB) << 20};
    setrlimit(RLIMIT_AS, &limit);
  }
  rlimit noCore = {0, 0};
  setrlimit(RLIMIT_CORE, &noCore);
  signal(SIGPROF, onTimeout);
  Targets targets;
  llvm::ArrayRef<llvm::StringLiteral> names = Targets::getNames();
  for (uint64_t last = progress.done + kRenewal;
       progress.done < source.size() && progress.done < last; ++progress.done) {
    if (wallSeconds && readClock() > deadline)
      break;
    Mutator::Case input = source.get(progress.done);
    // What earlier inputs have printed is of no interest.
    if (ftruncate(errors, 0) == 0)
      lseek(errors, 0, SEEK_SET);
    itimerval timer = {};
    timer.it_value.tv_sec = cpuSeconds;
    setitimer(ITIMER_PROF, &timer, nullptr);
    bool accepted = targets.run(input.target, input.text);
    size_t index = llvm::find(names, input.target) - names.begin();
    ++progress.inputs[index];
    progress.accepted[index] += accepted;
  }
  _exit(0);
}

static std::string describeEnd(int status) {
  if (WIFSIGNALED(status))
    return ("signal " + llvm::Twine(WTERMSIG(status))).str();
  if (WEXITSTATUS(status) == kTimeoutStatus)
    return "time";
  return ("status " + llvm::Twine(WEXITSTATUS(status))).str();
}

/// The beginning of what the last input has printed.
static std::string takeErrors(int file) {
  off_t size = lseek(file, 0, SEEK_END);
  constexpr off_t kMost = 16384;
  std::string text(std::min(size, kMost), '\0');
  ssize_t got = pread(file, text.data(), text.size(), 0);
  text.resize(std::max<ssize_t>(got, 0));
  if (ftruncate(file, 0) == 0)
    lseek(file, 0, SEEK_SET);
  return llvm::json::fixUTF8(text);
}

static void printLine(llvm::json::Object object) {
  llvm::outs() << llvm::json::Value(std::move(object)) << "\n";
  llvm::outs().flush();
}

static int runAll(const Source &source) {
  auto *progress = new (mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Progress;
  int errors = memfd_create("errors", 0);
  double start = readClock(), deadline = start + wallSeconds;
  bool failed = false;
  while (progress->done < source.size() &&
         !(wallSeconds && readClock() > deadline)) {
    pid_t child = fork();
    if (child == 0)
      work(source, *progress, errors, deadline);
    int status = 0;
    waitpid(child, &status, 0);
    std::string text = takeErrors(errors);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      continue;
    Mutator::Case input = source.get(progress->done);
    std::string end = describeEnd(status);
    failed |= end != "time";
    printLine(llvm::json::Object{{"index", int64_t(first + progress->done)},
                                 {"target", input.target},
                                 {"end", end},
                                 {"errors", text}});
    size_t index = llvm::find(Targets::getNames(), input.target) -
                   Targets::getNames().begin();
    ++progress->inputs[index];
    ++progress->done;
  }
  llvm::json::Object accepted;
  for (auto [index, name] : llvm::enumerate(Targets::getNames()))
    accepted[name] = llvm::json::Array{int64_t(progress->accepted[index]),
                                       int64_t(progress->inputs[index])};
  printLine(llvm::json::Object{{"done", int64_t(progress->done)},
                               {"accepted", std::move(accepted)},
                               {"seconds", readClock() - start}});
  return failed;
}

static llvm::Error writeAll(const Source &source) {
  for (uint64_t i = 0; i < source.size(); ++i) {
    Mutator::Case input = source.get(i);
    std::string path =
        writePath + "/" + input.target.str() + "-" + std::to_string(first + i);
    std::error_code code;
    llvm::raw_fd_ostream file(path, code);
    if (code)
      return llvm::createStringError(code, "cannot write '" + path + "'");
    file << input.text;
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  llvm::sys::PrintStackTraceOnErrorSignal(argv[0]);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv, "gives changed inputs to the libraries\n", &llvm::errs()))
    return 2;
  auto fail = [](llvm::Error error) {
    llvm::WithColor::error(llvm::errs(), "attn-fuzz")
        << llvm::toString(std::move(error)) << "\n";
    return 2;
  };
  Source source;
  if (llvm::Error error = source.read())
    return fail(std::move(error));
  if (writePath.empty())
    return runAll(source);
  if (llvm::Error error = writeAll(source))
    return fail(std::move(error));
  return 0;
}
