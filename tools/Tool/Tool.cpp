//===- Tool.cpp - How each program begins and ends ------------------------===//
//
// LLVM reads `--heads=4` as a group of flags of one letter whose first one is
// -h: it prints its help and ends with status 0. So no flag reaches it that is
// not known.
//
//===----------------------------------------------------------------------===//

#include "Tool/Tool.h"
#include "HelpText.h"
#include "attn/Support/Colors.h"
#include "attn/Support/Suggest.h"
#include "attn/Target/ToolMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace mlir::attn;
using llvm::StringRef;
namespace cl = llvm::cl;

/// What others call our flags.
static constexpr Synonym kFlagSynonyms[] = {
#define ATTN_FLAG_SYNONYM(THEIRS, OURS) {THEIRS, OURS},
#include "FlagSynonyms.def"
};

/// The flags of --help and its like, which LLVM makes as it reads flags.
static bool isHelp(StringRef name) {
  return name == "h" || name == "help" || name == "help-hidden" ||
         name == "help-list" || name == "help-list-hidden";
}

/// What a flag most likely stands for, with the placeholder of its value;
/// empty if none is near.
static std::string findNearestFlag(StringRef name) {
  auto &options = cl::getRegisteredOptions();
  std::vector<StringRef> known;
  for (const auto &entry : options)
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden)
      known.push_back(entry.first);
  // The table has no order.
  llvm::sort(known);
  StringRef nearest = findNearest(name, known, kFlagSynonyms);
  if (nearest.empty())
    return {};
  const cl::Option &option = *options.lookup(nearest);
  std::string flag = (nearest.size() == 1 ? "-" : "--") + nearest.str();
  if (!option.ValueStr.empty())
    flag += "=<" + option.ValueStr.str() + ">";
  return flag;
}

/// The option that LLVM takes `name` for, or null.
static cl::Option *findOption(StringRef name, bool withLibraries) {
  auto &options = cl::getRegisteredOptions();
  if (cl::Option *option = options.lookup(name))
    return withLibraries || option->getOptionHiddenFlag() == cl::NotHidden
               ? option
               : nullptr;
  // A flag may stand together with its value.
  for (const auto &entry : options) {
    auto formatting = entry.second->getFormattingFlag();
    if ((formatting == cl::Prefix || formatting == cl::AlwaysPrefix) &&
        !entry.first.empty() && name.starts_with(entry.first))
      return entry.second;
  }
  return nullptr;
}

void mlir::attn::hideOptionsOfLibraries() {
  for (auto &entry : cl::getRegisteredOptions())
    if (entry.first != "help" && entry.first != "version" &&
        entry.second->getOptionHiddenFlag() == cl::NotHidden)
      entry.second->setHiddenFlag(cl::Hidden);
}

llvm::Error mlir::attn::checkFilesDiffer(
    llvm::ArrayRef<std::pair<StringRef, StringRef>> outputs) {
  llvm::StringMap<StringRef> flags;
  for (auto [flag, path] : outputs) {
    if (path.empty() || path.starts_with("/dev/"))
      continue;
    auto [other, isNew] = flags.try_emplace(path, flag);
    if (!isNew)
      return llvm::createStringError("expected two files for " + other->second +
                                     " and " + flag + ", got '" + path +
                                     "' for both");
  }
  return llvm::Error::success();
}

llvm::Error mlir::attn::checkNamesDiffer(StringRef flag,
                                         llvm::ArrayRef<std::string> values) {
  llvm::StringSet<> names;
  for (StringRef text : values)
    if (StringRef name = text.split('=').first; !names.insert(name).second)
      return llvm::createStringError("--" + flag + ": expected '" + name +
                                     "' once, got it twice");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Help
//===----------------------------------------------------------------------===//

/// Standard output, and the file that is in its place while LLVM prints.
static int realOutput = -1;
static std::FILE *helpFile = nullptr;

/// Prints what LLVM has printed, in lines that fit a terminal. The process has
/// begun to end.
static void printHelp() {
  llvm::outs().flush();
  std::string text;
  std::rewind(helpFile);
  char chunk[4096];
  while (size_t got = std::fread(chunk, 1, sizeof(chunk), helpFile))
    text.append(chunk, got);
  std::fclose(helpFile);
  ::dup2(realOutput, STDOUT_FILENO);
  llvm::outs() << wrapHelp(text);
}

/// LLVM prints its help to standard output and ends the process.
static void catchHelp() {
  llvm::outs().flush();
  realOutput = ::dup(STDOUT_FILENO);
  helpFile = realOutput < 0 ? nullptr : std::tmpfile();
  if (!helpFile)
    return;
  ::dup2(::fileno(helpFile), STDOUT_FILENO);
  std::atexit(printHelp);
}

//===----------------------------------------------------------------------===//
// Standard streams
//===----------------------------------------------------------------------===//

/// Gives a standard stream that is closed a file that refuses what is done with
/// it. The next file that is opened would take its number, and what is printed
/// would go there.
static void keepStream(int number) {
  if (::fcntl(number, F_GETFD) != -1 || errno != EBADF)
    return;
  // Nobody asks whether messages arrive.
  int access = number == STDOUT_FILENO ? O_RDONLY : O_WRONLY;
  int file = ::open("/dev/null", access);
  if (file < 0 || file == number)
    return;
  ::dup2(file, number);
  ::close(file);
}

/// The program, for an error as the process ends.
static llvm::StringRef programName;

/// LLVM and MLIR end the process after --help and their like. Where their text
/// did not arrive, the stream would abort when it is destroyed.
static void checkStreams() {
  // What does not arrive there cannot be said.
  if (llvm::errs().has_error())
    llvm::errs().clear_error();
  llvm::Error error = flushOutput();
  if (!error)
    return;
  llvm::WithColor::error(llvm::errs(), programName)
      << llvm::toString(std::move(error)) << "\n";
  if (llvm::errs().has_error())
    llvm::errs().clear_error();
  std::_Exit(EXIT_FAILURE);
}

/// Does what has to precede LLVM's own beginning.
static int &keepStreams(int &argc) {
  for (int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    keepStream(number);
  return argc;
}

Tool::Tool(int &argc, char **&argv, llvm::StringRef name)
    : init(keepStreams(argc), argv), argc(argc), argv(argv), name(name) {
  programName = name;
  // The streams are made before the handler, so that they outlive it.
  llvm::outs();
  llvm::errs();
  std::atexit(checkStreams);
  setColors();
  cl::SetVersionPrinter(
      [](llvm::raw_ostream &os) { os << "attn " << getVersionText() << "\n"; });
}

void Tool::failUsage(llvm::ArrayRef<std::string> messages) const {
  for (StringRef message : messages)
    llvm::WithColor::error(llvm::errs(), name) << message << "\n";
  std::exit(1);
}

std::string Tool::checkValue(const cl::Option &option, StringRef value) const {
  std::string flag =
      (option.ArgStr.size() == 1 ? "-" : "--") + option.ArgStr.str();
  auto found = values.find(option.ArgStr);
  if (found != values.end()) {
    llvm::SmallVector<StringRef> names(found->second.begin(),
                                       found->second.end());
    return llvm::is_contained(names, value)
               ? std::string()
               : flag + ": expected one of " + llvm::join(names, ", ") +
                     ", got '" + value.str() + "'" + suggest(value, names);
  }
  // A variable of a script that is not set.
  return value.empty() ? flag + ": expected a value, got none" : std::string();
}

void Tool::prepare(bool more) const {
  std::vector<std::string> wrong;
  bool wantsHelp = false;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (argument == "--")
      break;
    if (argument == "-" || !argument.consume_front("-"))
      continue;
    argument.consume_front("-");
    auto [flag, value] = argument.split('=');
    if (isHelp(flag)) {
      wantsHelp = true;
      continue;
    }
    if (cl::Option *option = findOption(flag, withLibraries)) {
      bool isRequired = option->getValueExpectedFlag() == cl::ValueRequired;
      bool isBeside = flag.size() != argument.size();
      // The next argument is its value, whatever it looks like.
      if (isRequired && !isBeside && ++i < argc)
        value = argv[i];
      if (isRequired && i < argc)
        if (std::string error = checkValue(*option, value); !error.empty())
          wrong.push_back(std::move(error));
      continue;
    }
    if (more && !flag.starts_with("h"))
      continue;
    std::string nearest = findNearestFlag(flag);
    std::string given = StringRef(argv[i]).split('=').first.str();
    wrong.push_back("unknown flag '" + given + "'" +
                    (nearest.empty() ? ", see --help"
                                     : "; did you mean '" + nearest + "'?"));
  }
  if (!wrong.empty())
    failUsage(wrong);
  if (wantsHelp)
    catchHelp();
}

void Tool::parse(StringRef overview,
                 llvm::ArrayRef<const cl::OptionCategory *> own,
                 bool withLibraries) {
  llvm::SmallVector<const cl::OptionCategory *> shown(own);
  shown.push_back(&llvm::getColorCategory());
  cl::HideUnrelatedOptions(shown);
  this->withLibraries = withLibraries;
  parse(overview);
}

void Tool::parse(StringRef overview) const {
  prepare();
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (cl::ParseCommandLineOptions(argc, argv, overview, &stream))
    return;
  // LLVM's messages begin with the program and end with an exclamation mark.
  std::vector<std::string> messages;
  llvm::SmallVector<StringRef> lines;
  StringRef(text).split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef line : lines) {
    line.consume_front(llvm::sys::path::filename(argv[0]));
    line.consume_front(": ");
    line.consume_back("!");
    messages.push_back(line.str());
  }
  failUsage(messages);
}
