//===- StorageTest.cpp - Storage of others, lifetimes and undoing ---------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// Host memory that kernels know by its own address.
struct HostWords {
  explicit HostWords(size_t count) : words(count) {}
  std::vector<uint32_t> words;
  uint64_t address() const { return reinterpret_cast<uint64_t>(words.data()); }
  Storage storage() {
    return {reinterpret_cast<uint8_t *>(words.data()), nullptr,
            words.size() * 4};
  }
};

/// Launches a kernel of wrapKernel.
llvm::Expected<RunReport> launch(const Program &program, Memory &memory,
                                 uint64_t in, uint64_t out,
                                 LaunchConfig config = LaunchConfig()) {
  if (config.block[0] == 1)
    config.block = {32, 1, 1};
  config.params.resize(16);
  std::memcpy(config.params.data(), &in, 8);
  std::memcpy(config.params.data() + 8, &out, 8);
  return run(program, memory, config);
}

/// out[i] = in[i] + 1 for each thread, by generic addresses.
const char addOne[] = "mul.wide.u32 %d2, %r0, 4;\nadd.u64 %d0, %d0, %d2;\n"
                      "add.u64 %d1, %d1, %d2;\nld.u32 %r1, [%d0];\n"
                      "add.u32 %r1, %r1, 1;\nst.u32 [%d1], %r1;";

TEST(Storage, KernelsWorkOnMemoryOfOthersInPlace) {
  auto program = llvm::cantFail(parsePTX(wrapKernel(addOne), "test.ptx"));
  HostWords in(32), out(32);
  for (uint32_t i = 0; i < 32; ++i)
    in.words[i] = 7 * i;
  Memory memory;
  llvm::cantFail(memory.adopt(in.address(), in.storage(), "in"));
  llvm::cantFail(memory.adopt(out.address(), out.storage(), "out"));
  RunReport report =
      llvm::cantFail(launch(*program, memory, in.address(), out.address()));
  EXPECT_TRUE(report.isClean());
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out.words[i], 7 * i + 1);
}

TEST(Storage, BytesBesideItAreOutOfBounds) {
  auto program = llvm::cantFail(parsePTX(wrapKernel(addOne), "test.ptx"));
  HostWords in(32), out(32);
  Memory memory;
  Storage short1 = in.storage();
  short1.size -= 4;
  llvm::cantFail(memory.adopt(in.address(), short1, "in"));
  llvm::cantFail(memory.adopt(out.address(), out.storage(), "out"));
  RunReport report =
      llvm::cantFail(launch(*program, memory, in.address(), out.address()));
  ASSERT_EQ(report.countErrors(FindingKind::OutOfBounds), 1u);
  EXPECT_EQ(report.findings[0].buffer, "in");
  EXPECT_EQ(report.findings[0].offset, 124u);
}

TEST(Storage, UnwrittenBytesOfOthers) {
  auto program = llvm::cantFail(parsePTX(wrapKernel(addOne), "test.ptx"));
  HostWords in(32), out(32);
  std::vector<uint8_t> valid(128, 1), outValid(128, 0);
  valid[20] = 0;
  Memory memory;
  Storage storage = in.storage(), outStorage = out.storage();
  storage.valid = valid.data();
  outStorage.valid = outValid.data();
  llvm::cantFail(memory.adopt(in.address(), storage, "in"));
  llvm::cantFail(memory.adopt(out.address(), outStorage, "out"));
  EXPECT_EQ(llvm::cantFail(memory.countUninitialised(in.address(), 128)), 1u);
  RunReport report =
      llvm::cantFail(launch(*program, memory, in.address(), out.address()));
  EXPECT_EQ(report.countErrors(FindingKind::UninitialisedRead), 1u);
  EXPECT_EQ(outValid, std::vector<uint8_t>(128, 1));
}

TEST(Storage, EqualStoresDoNotRace) {
  HostWords out(32);
  for (bool areEqual : {true, false}) {
    std::string body = "shr.u32 %r1, %r0, 5;\n";
    body += areEqual ? "mov.u32 %r1, 5;\n" : "";
    auto program = llvm::cantFail(
        parsePTX(wrapKernel(body + "st.global.u32 [%d1], %r1;"), "test.ptx"));
    Memory memory;
    llvm::cantFail(memory.adopt(out.address(), out.storage(), "out"));
    LaunchConfig config;
    config.block = {64, 1, 1};
    RunReport report = llvm::cantFail(
        launch(*program, memory, out.address(), out.address(), config));
    EXPECT_EQ(report.isClean(), areEqual);
  }
}

TEST(Storage, OverlapIsRefused) {
  HostWords words(64);
  Memory memory;
  llvm::cantFail(memory.adopt(words.address(), words.storage(), "first"));
  Storage part = words.storage();
  part.size = 4;
  for (uint64_t at : {words.address(), words.address() + 252}) {
    auto second = memory.adopt(at, part, "second");
    ASSERT_FALSE(static_cast<bool>(second));
    std::string message = llvm::toString(second.takeError());
    EXPECT_TRUE(llvm::StringRef(message).contains(
        "'second' that no other allocation holds, got 4 bytes"))
        << message;
  }
  EXPECT_TRUE(static_cast<bool>(
      memory.adopt(words.address() + 256, part, "neighbour")));
}

TEST(Storage, FreedMemoryIsNamed) {
  auto program = llvm::cantFail(parsePTX(wrapKernel(addOne), "test.ptx"));
  Memory memory;
  uint64_t in = memory.allocate(128, "in");
  uint64_t out = memory.allocate(128, "out");
  llvm::cantFail(memory.fill(in, 128, 0));
  llvm::cantFail(memory.release(out, "cuMemFree"));
  RunReport report = llvm::cantFail(launch(*program, memory, in, out));
  ASSERT_EQ(report.countErrors(FindingKind::UseAfterFree), 1u);
  EXPECT_EQ(report.findings[0].buffer, "out");
  EXPECT_EQ(
      report.findings[0].message,
      "writes 4 bytes of memory that was freed by cuMemFree; it had 128 bytes");
  // A new owner of the place ends that.
  HostWords words(64);
  llvm::cantFail(memory.adopt(out, words.storage(), "new"));
  EXPECT_TRUE(llvm::cantFail(launch(*program, memory, in, out)).isClean());
}

TEST(Storage, BulkCopiesOfFreedMemory) {
  auto program = llvm::cantFail(parsePTX(
      wrapKernel("setp.ne.u32 %p0, %r0, 0;\n@%p0 ret;\n"
                 "mov.u32 %r2, smem;\nst.shared.u32 [%r2], %r0;\n"
                 "fence.proxy.async.shared::cta;\n"
                 "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r2], "
                 "16;\ncp.async.bulk.commit_group;\n"
                 "cp.async.bulk.wait_group 0;"),
      "test.ptx"));
  Memory memory;
  uint64_t out = memory.allocate(128, "out");
  llvm::cantFail(memory.release(out));
  LaunchConfig config;
  config.dynamicShared = 128;
  RunReport report = llvm::cantFail(launch(*program, memory, out, out, config));
  ASSERT_EQ(report.countErrors(FindingKind::UseAfterFree), 1u);
  EXPECT_NE(report.findings[0].message.find("of 'out', which was freed"),
            std::string::npos);
}

TEST(MemoryUndo, PutsBackTouchedPagesOnly) {
  Memory memory;
  uint64_t big = memory.allocate(1 << 20, "big");
  llvm::cantFail(memory.fill(big, 1 << 20, 5));
  uint64_t fresh = memory.allocate(64, "fresh");
  MemoryUndo outer(memory);
  llvm::cantFail(memory.fill(big + 4090, 12, 6));
  EXPECT_EQ(outer.countKept(), 8192u);
  {
    MemoryUndo inner(memory);
    llvm::cantFail(memory.fill(big + 4096, 1, 7));
    llvm::cantFail(memory.fill(fresh, 64, 1));
    EXPECT_EQ(inner.countKept(), 4096u + 64);
    inner.restore();
    EXPECT_EQ(inner.countKept(), 0u);
    std::array<uint8_t, 12> back;
    llvm::cantFail(memory.read(big + 4090, back));
    EXPECT_TRUE(llvm::all_of(back, [](uint8_t b) { return b == 6; }));
    EXPECT_EQ(llvm::cantFail(memory.countUninitialised(fresh, 64)), 64u);
    llvm::cantFail(memory.write(fresh, {1}));
  }
  outer.restore();
  EXPECT_TRUE(llvm::all_of(memory.find(big)->getBytes(),
                           [](uint8_t b) { return b == 5; }));
  EXPECT_EQ(llvm::cantFail(memory.countUninitialised(fresh, 64)), 64u);
  // Memory that is freed meanwhile is not put back.
  llvm::cantFail(memory.fill(big, 1, 9));
  llvm::cantFail(memory.release(big));
  outer.restore();
}

TEST(Storage, TouchedMemoryIsListed) {
  auto program = llvm::cantFail(parsePTX(wrapKernel(addOne), "test.ptx"));
  Memory memory;
  uint64_t in = memory.allocate(8192, "in");
  uint64_t out = memory.allocate(8192, "out");
  llvm::cantFail(memory.fill(in, 8192, 0));
  LaunchConfig config;
  // Over the border of a page of the shadow.
  EXPECT_TRUE(llvm::cantFail(launch(*program, memory, in, out, config))
                  .touched.empty());
  config.listsTouched = true;
  RunReport report =
      llvm::cantFail(launch(*program, memory, in + 4032, out, config));
  ASSERT_EQ(report.touched.size(), 2u);
  EXPECT_EQ(report.touched[0].begin, in + 4032);
  EXPECT_EQ(report.touched[0].end, in + 4032 + 128);
  EXPECT_EQ(report.touched[0].kind, TouchedRange::Read);
  EXPECT_EQ(report.touched[1].begin, out);
  EXPECT_EQ(report.touched[1].end, out + 128);
  EXPECT_EQ(report.touched[1].kind, TouchedRange::Write);
}

/// Adds one to a variable of the module and returns what it had.
const char countLaunches[] = "atom.global.add.u32 %r1, [count], 1;\n"
                             "st.global.u32 [%d1], %r1;";
const char variables[] = ".visible .global .align 4 .u32 count = 5;\n"
                         ".visible .global .align 8 .u64 pointer = count;\n";

TEST(ModuleVariables, BelongToTheLoadedModule) {
  auto program = llvm::cantFail(
      parsePTX(wrapKernel(countLaunches, "sm_100a", variables), "test.ptx"));
  Memory memory;
  uint64_t out = memory.allocate(4, "out");
  ModuleVariables loaded = llvm::cantFail(loadVariables(*program, memory));
  const ModuleVariable *count = loaded.find("count");
  ASSERT_TRUE(count && loaded.find("pointer") && !loaded.find("none"));
  uint64_t pointer = 0;
  llvm::cantFail(memory.read(
      loaded.find("pointer")->address,
      llvm::MutableArrayRef(reinterpret_cast<uint8_t *>(&pointer), 8)));
  EXPECT_EQ(pointer, count->address);
  LaunchConfig config;
  config.variables = &loaded;
  for (unsigned i = 0; i < 2; ++i)
    EXPECT_TRUE(
        llvm::cantFail(launch(*program, memory, out, out, config)).completed);
  uint32_t now = 0;
  llvm::cantFail(
      memory.read(count->address,
                  llvm::MutableArrayRef(reinterpret_cast<uint8_t *>(&now), 4)));
  EXPECT_EQ(now, 5u + 64);
  // A launch by itself has its own.
  config.variables = nullptr;
  config.watched = {"count"};
  RunReport alone = llvm::cantFail(launch(*program, memory, out, out, config));
  EXPECT_EQ(alone.variables["count"], bytesOf<uint32_t>({5 + 32}));
  unloadVariables(memory, loaded);
  ASSERT_TRUE(memory.findFreed(count->address));
  EXPECT_EQ(memory.findFreed(count->address)->where, "unloading the module");
}

TEST(ModuleVariables, OfAnotherModuleAreRefused) {
  auto program = llvm::cantFail(
      parsePTX(wrapKernel(countLaunches, "sm_100a", variables), "test.ptx"));
  Memory memory;
  uint64_t out = memory.allocate(4, "out");
  ModuleVariables none;
  LaunchConfig config;
  config.variables = &none;
  auto report = launch(*program, memory, out, out, config);
  ASSERT_FALSE(static_cast<bool>(report));
  EXPECT_EQ(llvm::toString(report.takeError()),
            "expected 2 variables of the module, got 0");
}

} // namespace
