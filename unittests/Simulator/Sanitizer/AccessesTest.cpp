//===- AccessesTest.cpp - Every access in memory, and until when ----------===//
//
// Inputs/accesses.txt says of each instruction form what it reads and writes,
// and what shows that it has. Each access gets kernels that touch the same
// memory: while it may still run, after a wait that promises less, over an
// mbarrier, all of which are found, and after the right wait, which is clean.
//
//===----------------------------------------------------------------------===//

#include "../TestForms.h"
#include "../TestKernel.h"
#include "attn/Simulator/Async/TensorMap.h"
#include "llvm/Support/GlobPattern.h"
#include <map>
#include <optional>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::StringRef;

namespace {

constexpr unsigned NumThreads = 160, SharedBytes = 17408, AreaBytes = 4096;
/// Of global memory: operands, what the tensor map describes, the map.
constexpr unsigned MappedAt = 24576, MapAt = 32768, GlobalBytes = 36864;

struct FormAccess {
  std::string role, space, until, operand;
  bool reads() const { return role != "write"; }
  bool writes() const { return role != "read"; }
};

/// A line of the table.
struct Row {
  std::string text;
  std::optional<llvm::GlobPattern> pattern;
  std::vector<FormAccess> accesses;
  std::map<std::string, std::string> settings;
  unsigned uses = 0;
};

std::vector<StringRef> splitOf(StringRef text, StringRef separator) {
  llvm::SmallVector<StringRef> parts;
  text.split(parts, separator, -1, /*KeepEmpty=*/false);
  return {parts.begin(), parts.end()};
}

std::vector<Row> readTable() {
  static const std::string file = readInput("accesses.txt");
  std::vector<Row> rows;
  for (StringRef line : splitOf(file, "\n")) {
    if (line.starts_with("#"))
      continue;
    auto [pattern, rest] = line.split(" | ");
    auto [accesses, settings] = rest.split(" |");
    Row row;
    row.text = line.str();
    row.pattern = llvm::cantFail(llvm::GlobPattern::create(pattern, 64));
    if (accesses.trim() != "none")
      for (StringRef each : splitOf(accesses, ";")) {
        std::vector<StringRef> words = splitOf(each.trim(), " ");
        EXPECT_EQ(words.size(), 4u) << row.text;
        if (words.size() == 4)
          row.accesses.push_back(
              {words[0].str(), words[1].str(), words[2].str(), words[3].str()});
      }
    for (StringRef each : splitOf(settings, " ")) {
      auto [name, value] = each.split('=');
      row.settings[name.str()] = value.str();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

/// The instruction forms that the simulator takes, one by one.
std::vector<std::string> readForms() {
  std::string file = readInput("forms.txt");
  std::vector<std::string> forms;
  for (StringRef line : splitOf(file, "\n"))
    if (!line.starts_with("#") && !line.starts_with("refused "))
      expand(line.split(' ').second.str(), forms);
  return forms;
}

/// An instruction form with its operands.
struct Form {
  std::string text, mnemonic;
  std::vector<std::string> brackets; ///< what stands in each

  explicit Form(const std::string &text) : text(text) {
    StringRef rest = text;
    mnemonic = rest.split(' ').first.str();
    for (size_t at = rest.find('['); at != StringRef::npos;
         at = rest.find('[', at + 1))
      brackets.push_back(
          rest.slice(at + 1, rest.find(']', at)).split(',').first.str());
  }
  bool has(StringRef part) const { return StringRef(text).contains(part); }
  /// The register that an operand of the table stands for; "" for none.
  std::string findRegister(StringRef operand) const {
    unsigned index;
    if (!operand.consume_front("["))
      return StringRef(text + ",").contains("," + operand.str() + ",")
                 ? operand.str()
                 : "";
    operand.consume_back("]");
    if (!operand.getAsInteger(10, index))
      return index < brackets.size() ? brackets[index] : "";
    return llvm::is_contained(brackets, operand.str()) ? operand.str() : "";
  }
  /// Lanes of one warp or of four, or one thread.
  bool isOfWarpgroup() const { return has("wgmma."); }
  bool isOfWarp() const { return has(".sync.aligned"); }
  bool isOfPair() const { return has("cta_group::2"); }
};

bool usesMemory(const std::string &form) {
  return StringRef(form).contains('[') ||
         StringRef(form).starts_with("wgmma.mma_async");
}

Row *findRow(std::vector<Row> &rows, const Form &form) {
  for (Row &row : rows)
    if (row.pattern->match(form.mnemonic))
      return &row;
  return nullptr;
}

/// When memory is touched while an access may still run, and when not.
enum class Moment {
  InFlight,
  WeakWait,     ///< after a wait that promises less
  AfterWait,    ///< after the right one
  AfterSignal,  ///< of cp.async: after its mbarrier, which is right as well
  SameThread,   ///< by the thread itself, behind what is over at once
  OverMbarrier, ///< the operand is an mbarrier in use
};

/// Kernels around one access of one form.
class Kernel {
public:
  Kernel(const Form &form, const Row &row, const FormAccess &access,
         bool isRemote)
      : form(form), row(row), access(access), isRemote(isRemote) {}

  std::string build(Moment moment, bool touchWrites);
  unsigned countCtas() const { return isRemote || form.isOfPair() ? 2 : 1; }
  /// The other access of the race.
  std::string touched;

private:
  bool usesTensorMemory() const {
    return StringRef(form.mnemonic).starts_with("tcgen05.") &&
           !form.has("tcgen05.alloc");
  }
  bool isIssue() const {
    return access.until == "issue" || access.until == "end";
  }
  std::string prologue(Moment moment);
  std::string setAddress(const FormAccess &a, unsigned index, bool ofConflict);
  std::string setRegisters();
  std::string touch(bool writes, StringRef predicate);
  std::string drain(bool isWeak, bool bySignal = false) const;
  std::string execute() const;
  std::string waitForBarrier() const {
    return "{\nW: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 "
           "%u5, [%v1], 0;\n"
           "@!%u5 bra W;\n}\n";
  }
  std::string meet() const {
    return countCtas() > 1 ? "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                           : "bar.sync 0;\n";
  }
  unsigned countBytes() const;
  uint32_t describe() const;

  const Form &form;
  const Row &row;
  const FormAccess &access;
  bool isRemote;
};

unsigned Kernel::countBytes() const {
  std::string bytes = row.settings.at("bytes");
  if (bytes == "box")
    return form.has("gather4") ? 64 : 16;
  if (bytes != "auto")
    return std::stoi(bytes);
  unsigned element = StringRef(form.mnemonic).ends_with("64") ? 8 : 4;
  return element * (form.has(".v2.") ? 2 : form.has(".v4.") ? 4 : 1);
}

/// The instruction descriptor of a tcgen05.mma of N = 64.
uint32_t Kernel::describe() const {
  StringRef kind = row.settings.at("kind");
  unsigned m = form.isOfPair() ? 256 : 128, shape = 8 << 17 | m / 16 << 24;
  if (kind == "mx")
    return 8 << 17 | m / 128 << 27 | 1 << 23 |
           (form.has("mxf4") ? 1 << 7 | 1 << 10 : 0);
  return kind == "tf32" ? 1 << 4 | 2 << 7 | 2 << 10 | shape
         : kind == "i8" ? 2 << 4 | shape
                        : 1 << 4 | shape;
}

std::string Kernel::prologue(Moment moment) {
  std::string s =
      ".reg .pred %u<10>;\n.reg .b32 %v<60>;\n.reg .b64 %w<30>;\n"
      "ld.param.u64 %w0, [in];\nmov.u32 %v0, %tid.x;\nmov.u32 %v1, smem;\n"
      "setp.eq.u32 %u0, %v0, 0;\nsetp.lt.u32 %u1, %v0, 32;\n"
      "setp.eq.u32 %u2, %v0, 128;\nsetp.lt.u32 %u4, %v0, 128;\n"
      "mov.u32 %v2, %cluster_ctarank;\nsetp.eq.u32 %u3, %v2, 0;\n"
      "mov.u32 %v40, 0;\nmov.u32 %v43, 1234;\nshl.b32 %v41, %v0, 4;\nadd.u32 "
      "%v41, %v41, %v1;\n"
      "add.u32 %v42, %v1, 17408;\n"
      "{\nZ: st.shared.v4.b32 [%v41], {%v40, %v40, %v40, %v40};\n"
      "add.u32 %v41, %v41, 2560;\nsetp.lt.u32 %u6, %v41, %v42;\n"
      "@%u6 bra Z;\n}\nbar.sync 0;\n"
      "@%u0 mbarrier.init.shared.b64 [%v1], 1;\n";
  if (row.settings.count("bytes"))
    s += "@%u0 mbarrier.arrive.expect_tx.shared.b64 %w20, [%v1], " +
         std::to_string(countBytes()) + ";\n";
  if (moment == Moment::OverMbarrier)
    s += "@%u0 mbarrier.init.shared.b64 [%v1+" +
         std::to_string(1024 + AreaBytes * (&access - row.accesses.data())) +
         "], 1;\n";
  s += "@%u0 fence.mbarrier_init.release.cluster;\nfence.proxy.async;\n";
  std::string group = form.isOfPair() ? "cta_group::2" : "cta_group::1";
  if (form.isOfPair())
    s += meet();
  if (usesTensorMemory())
    s += "@!%u1 bra T;\ntcgen05.alloc." + group +
         ".sync.aligned.shared::cta.b32 [%v1+32], 512;\nT:\n";
  s += meet();
  if (usesTensorMemory())
    s += "ld.shared.b32 %v10, [%v1+32];\n";
  return s;
}

/// Puts the address of an operand into its register, or into %v20 and %w20,
/// with which the same memory is touched.
std::string Kernel::setAddress(const FormAccess &a, unsigned index,
                               bool ofConflict) {
  std::string at = std::to_string(1024 + AreaBytes * index);
  std::string reg = ofConflict ? "" : form.findRegister(a.operand);
  bool isWide = StringRef(reg).starts_with("%d");
  auto move = [&](const std::string &narrow) {
    return isWide ? "cvt.u64.u32 " + reg + ", " + narrow + ";\n"
                  : "mov.u32 " + reg + ", " + narrow + ";\n";
  };
  if (a.role == "object")
    return "mapa.shared::cluster.u32 %v21, %v1, " +
           std::string(isRemote ? "1" : "%v2") + ";\n" + move("%v21");
  if (a.space == "tensor")
    return "add.u32 %v20, %v10, " + std::to_string(64 * index) + ";\n" +
           (ofConflict ? "" : move("%v20"));
  if (a.space == "map" || a.space == "mapped" || a.space == "global") {
    unsigned offset = a.space == "global"                 ? AreaBytes * index
                      : a.space == "mapped" && ofConflict ? MappedAt
                                                          : MapAt;
    return "add.u64 " + (ofConflict ? "%w20" : reg) + ", %w0, " +
           std::to_string(offset) + ";\n";
  }
  std::string s = "add.u32 %v20, %v1, " + at + ";\n";
  if (ofConflict)
    return s;
  if (!StringRef(a.operand).starts_with("[")) {
    // Without a swizzle: halves of K 128 bytes apart, groups of rows 256.
    bool isBlackwell = !form.isOfWarpgroup();
    uint64_t fixed =
        uint64_t(8) << 16 | uint64_t(16) << 32 | uint64_t(isBlackwell) << 46;
    return s + "and.b32 %v20, %v20, 0xffffff;\nshr.u32 %v20, %v20, 4;\n" +
           move("%v20") + "or.b64 " + reg + ", " + reg + ", " +
           std::to_string(fixed) + ";\n";
  }
  if (a.space == "cluster")
    return s + "mapa.shared::cluster.u32 %v20, %v20, " +
           (isRemote ? "1" : "%v2") + ";\n" + move("%v20");
  if (isWide && !form.has(".shared"))
    return s + "cvt.u64.u32 %w21, %v20;\ncvta.shared.u64 " + reg + ", %w21;\n";
  return s + move("%v20");
}

std::string Kernel::setRegisters() {
  std::string s = "mov.b16 %h1, 1;\nmov.b16 %h4, 1;\nmov.u32 %r3, 0;\n"
                  "setp.eq.u32 %p0, %r3, 0;\nmov.u64 %d3, 0;\n";
  if (isRemote)
    s += "mov.b16 %h1, 2;\nmov.b16 %h4, 2;\n";
  for (unsigned i : {2, 4, 5, 6, 7, 8, 9, 10, 11})
    s += "mov.u32 %r" + std::to_string(i) + ", 0;\n";
  if (row.settings.count("kind"))
    s += "mov.u32 %r3, " + std::to_string(describe()) + ";\n";
  for (const auto &[name, value] : row.settings)
    if (name == "%p0")
      s += "setp.ne.u32 %p0, 0, " + value + ";\n";
    else if (StringRef(name).starts_with("%"))
      s += "mov." + std::string(name[1] == 'd' ? "u64 " : "u32 ") + name +
           ", " + value + ";\n";
  for (const auto &[i, a] : llvm::enumerate(row.accesses))
    if (!form.findRegister(a.operand).empty())
      s += setAddress(a, i, false);
  return s + setAddress(access, &access - row.accesses.data(), true);
}

std::string Kernel::touch(bool writes, StringRef predicate) {
  std::string at = predicate.str();
  if (access.space == "tensor") {
    touched = writes ? "tcgen05.st" : "tcgen05.ld";
    return touched + ".sync.aligned.32x32b.x1.b32 " +
           (writes ? "[%v20], {%v0};\n" : "{%v30}, [%v20];\n");
  }
  bool isGlobal =
      access.space == "global" || StringRef(access.space).starts_with("map");
  std::string space = isGlobal ? ".global" : ".shared";
  touched = (writes ? "st" : "ld") + space;
  std::string where = isGlobal ? "[%w20]" : "[%v20]";
  return at + touched + ".b32 " +
         (writes ? where + ", %v43" : "%v30, " + where) + ";\n";
}

/// Waits for the access; a weak wait promises less.
std::string Kernel::drain(bool isWeak, bool bySignal) const {
  StringRef until = access.until;
  if (bySignal)
    return "@%u0 cp.async.mbarrier.arrive.noinc.shared.b64 [%v1];\n" +
           waitForBarrier();
  auto groups = [&](const char *commit, const char *wait) {
    return std::string("@%u0 ") + commit + ";\n@%u0 " + wait + " " +
           (isWeak ? "1" : "0") + ";\n";
  };
  if (until == "group")
    return groups("cp.async.commit_group", "cp.async.wait_group");
  if (until == "reads")
    return groups("cp.async.bulk.commit_group",
                  "cp.async.bulk.wait_group.read");
  if (until == "stores")
    return std::string("@%u0 cp.async.bulk.commit_group;\n"
                       "@%u0 cp.async.bulk.wait_group") +
           (isWeak ? ".read" : "") + " 0;\n";
  if (until == "products")
    return std::string("wgmma.commit_group.sync.aligned;\n"
                       "wgmma.wait_group.sync.aligned ") +
           (isWeak ? "1" : "0") + ";\nbar.sync 1, 128;\n";
  if (until == "loads" || until == "tensor-stores")
    return (until == "loads") == isWeak ? "tcgen05.wait::st.sync.aligned;\n"
                                        : "tcgen05.wait::ld.sync.aligned;\n";
  // What follows a wait that has not been made is a barrier of the CTA.
  if (isWeak)
    return "bar.warp.sync -1;\n";
  if (until != "commit")
    return waitForBarrier();
  return std::string("@%u0 tcgen05.commit.") +
         (form.isOfPair() ? "cta_group::2" : "cta_group::1") +
         ".mbarrier::arrive::one.shared::cluster.b64 [%v1];\n" +
         waitForBarrier() + "tcgen05.fence::after_thread_sync;\n";
}

std::string Kernel::execute() const {
  std::string s = form.isOfWarpgroup() ? "wgmma.fence.sync.aligned;\n" : "";
  if (!form.isOfWarp() && !form.isOfWarpgroup())
    s += "@%u0 ";
  return s + form.text + ";\n";
}

std::string Kernel::build(Moment moment, bool writes) {
  std::string s = prologue(moment) + setRegisters();
  bool isFlying = !isIssue();
  bool ofPeer = isRemote && access.space == "cluster";
  // The executing threads, of the first CTA.
  s += std::string("@!%u3 bra B;\n@!%u") + (form.isOfWarpgroup() ? "4" : "1") +
       " bra A;\n" + execute();
  bool bySignal = moment == Moment::AfterSignal;
  bool isLate = moment == Moment::AfterWait || bySignal;
  if (moment == Moment::SameThread ||
      (isFlying && !ofPeer && moment == Moment::InFlight))
    s += touch(writes, "@%u0 ");
  if (isFlying && !ofPeer && moment == Moment::WeakWait)
    s += drain(true) + touch(writes, "@%u0 ");
  if (isFlying && !isRemote)
    s += drain(false, bySignal);
  if (isFlying && !isRemote && isLate)
    s += touch(writes, "@%u0 ");
  s += "A:\n";
  if (!isFlying && !ofPeer && moment == Moment::InFlight)
    s += touch(writes, "@%u2 ");
  s += "bra C;\nB:\n";
  if (form.isOfPair() && form.has("tcgen05.alloc"))
    s += "@!%u1 bra C;\n" + execute();
  // The other CTA, which receives what is sent.
  if (ofPeer && moment == Moment::InFlight)
    s += touch(writes, "@%u0 ");
  if (isRemote && isFlying)
    s += "@!%u1 bra C;\n" + waitForBarrier();
  if (ofPeer && isFlying && isLate)
    s += touch(writes, "@%u0 ");
  s += "C:\n" + meet();
  if (isLate && !isFlying)
    s += (ofPeer ? "@%u3 bra D;\n" : "@!%u3 bra D;\n") +
         touch(writes, "@%u2 ") + "D:\n";
  if (isLate && isFlying && isRemote && !ofPeer)
    s += "@!%u3 bra D;\n" + touch(writes, "@%u0 ") + "D:\n";
  std::string group = form.isOfPair() ? "cta_group::2" : "cta_group::1";
  if (usesTensorMemory() || form.has("tcgen05.alloc")) {
    if (access.space == "tensor")
      s += "@!%u1 bra F;\ntcgen05.wait::ld.sync.aligned;\n"
           "tcgen05.wait::st.sync.aligned;\nF:\n";
    // A pair's columns are those of both CTAs.
    if (form.isOfPair())
      s += "tcgen05.fence::before_thread_sync;\n" + meet() +
           "tcgen05.fence::after_thread_sync;\n";
    s += "@!%u1 bra E;\n";
    bool isAlloc = form.has("tcgen05.alloc");
    if (isAlloc && !form.isOfPair())
      s += "@!%u3 bra E;\n";
    if (isAlloc)
      s += "mov.u32 %v10, 0;\n";
    s += "tcgen05.dealloc." + group + ".sync.aligned.b32 %v10, " +
         (isAlloc ? "32" : "512") + ";\nE:\n";
  }
  return s;
}

Outcome runKernel(const std::string &body, unsigned ctas, unsigned rank,
                  Profile profile) {
  std::string text = ".version 9.0\n.target sm_100a\n.address_size 64\n"
                     ".extern .shared .align 1024 .b8 smem[];\n"
                     ".visible .entry k(.param .u64 in)\n"
                     ".explicitcluster\n.reqnctapercluster " +
                     std::to_string(ctas) + ", 1, 1\n{\n" +
                     std::string(declarations) + body + "ret;\n}\n";
  Outcome r;
  auto program = parsePTX(text, "test.ptx");
  if (!program) {
    r.error = llvm::toString(program.takeError());
    return r;
  }
  Memory memory;
  uint64_t in = memory.allocate(GlobalBytes, "in");
  llvm::cantFail(memory.fill(in, GlobalBytes, 0));
  TensorMapInfo map;
  map.address = in + MappedAt;
  map.element = TensorMapElement::U32;
  map.rank = rank;
  for (unsigned i = 0; i < rank; ++i) {
    map.dims[i] = 4;
    map.strides[i] = i ? 64 : 0;
    map.box[i] = i ? 1 : 4;
  }
  llvm::cantFail(
      memory.write(in + MapAt, llvm::cantFail(encodeTensorMap(map))));
  LaunchConfig config;
  config.block = {NumThreads, 1, 1};
  config.grid = config.cluster = {ctas, 1, 1};
  config.dynamicShared = SharedBytes;
  config.profile = profile;
  config.params.resize(8);
  std::memcpy(config.params.data(), &in, 8);
  auto report = run(**program, memory, config);
  if (report)
    r.report = std::move(*report);
  else
    r.error = llvm::toString(report.takeError());
  return r;
}

/// A race of the form with what touches its memory.
bool hasRace(const Outcome &r, const Form &form, const std::string &touched) {
  for (const Finding &f : r.report.findings) {
    if (f.kind != FindingKind::Race || f.severity != Severity::Error ||
        !f.first || !f.second)
      continue;
    for (auto [a, b] : {std::make_pair(&*f.first, &*f.second),
                        std::make_pair(&*f.second, &*f.first)})
      if (StringRef(a->text).starts_with(form.mnemonic) &&
          StringRef(b->text).starts_with(touched))
        return true;
  }
  return false;
}

void checkAccess(const Form &form, const Row &row, const FormAccess &access,
                 bool isRemote) {
  unsigned rank = 2;
  for (unsigned r = 1; r <= 5; ++r)
    if (form.has("tensor." + std::to_string(r) + "d"))
      rank = r;
  auto run = [&](Moment moment, bool writes, Profile profile, auto &&judge) {
    Kernel kernel(form, row, access, isRemote);
    std::string body = kernel.build(moment, writes);
    Outcome r = runKernel(body, kernel.countCtas(), rank, profile);
    EXPECT_TRUE(r.error.empty() && judge(r, kernel.touched))
        << form.text << "\n"
        << access.role << " " << access.space << " " << access.operand
        << ", moment " << int(moment) << (writes ? ", write" : ", read")
        << (isRemote ? ", remote" : "") << "\n"
        << r.text() << "\n"
        << body;
  };
  auto races = [&](const Outcome &r, const std::string &touched) {
    return hasRace(r, form, touched);
  };
  auto isClean = [](const Outcome &r, const std::string &) {
    return r.report.isClean();
  };
  bool isFlying = access.until != "issue" && access.until != "end";
  // Only assumption A3 orders a warp's own accesses of tensor memory.
  bool needsIsa = access.until == "loads" || access.until == "tensor-stores";
  for (bool writes : {false, true}) {
    if (!writes && !access.writes())
      continue;
    run(Moment::InFlight, writes, Profile::Isa, races);
    if (!needsIsa)
      run(Moment::InFlight, writes, Profile::Hw, races);
    if (isFlying && !isRemote)
      run(Moment::WeakWait, writes, Profile::Isa, races);
    if (access.until == "end") {
      run(Moment::AfterWait, writes, Profile::Isa, races);
      run(Moment::SameThread, writes, Profile::Isa, races);
      continue;
    }
    run(Moment::AfterWait, writes, Profile::Isa, isClean);
    if (access.until == "group")
      run(Moment::AfterSignal, writes, Profile::Isa, isClean);
    if (!isFlying)
      run(Moment::SameThread, writes, Profile::Isa, isClean);
  }
  if (access.writes() && access.space == "shared")
    run(Moment::OverMbarrier, true, Profile::Isa,
        [](const Outcome &r, const std::string &) {
          return r.text().find("writes over an mbarrier that is in use") !=
                 std::string::npos;
        });
}

} // namespace

TEST(Accesses, EveryFormHasALine) {
  std::vector<Row> rows = readTable();
  for (const std::string &text : readForms()) {
    if (!usesMemory(text))
      continue;
    Form form(text);
    Row *row = findRow(rows, form);
    if (!row) {
      ADD_FAILURE() << "accesses.txt has no line for " << text;
      continue;
    }
    ++row->uses;
    // Each of its operands in memory is one of the line's accesses.
    for (const std::string &operand : form.brackets)
      EXPECT_TRUE(row->accesses.empty() ||
                  llvm::any_of(row->accesses,
                               [&](const FormAccess &a) {
                                 return form.findRegister(a.operand) == operand;
                               }))
          << row->text << " says nothing of [" << operand << "] in " << text;
  }
  for (const Row &row : rows)
    EXPECT_GT(row.uses, 0u) << "no form needs: " << row.text;
}

TEST(Accesses, RunUntilTheyAreAwaited) {
  std::vector<Row> rows = readTable();
  for (const std::string &text : readForms()) {
    if (!usesMemory(text))
      continue;
    Form form(text);
    Row *row = findRow(rows, form);
    if (!row)
      continue;
    for (const FormAccess &access : row->accesses) {
      if (access.role == "object" || form.findRegister(access.operand).empty())
        continue;
      std::vector<std::string> spaces = {access.space};
      if (access.space == "any")
        spaces = {"shared", "global"};
      for (const std::string &space : spaces) {
        Row used = *row;
        FormAccess &which = used.accesses[&access - row->accesses.data()];
        which.space = space;
        checkAccess(form, used, which, false);
        bool sends = llvm::any_of(row->accesses, [](const FormAccess &a) {
          return a.space == "cluster";
        });
        if (sends)
          checkAccess(form, used, which, true);
      }
    }
  }
}
