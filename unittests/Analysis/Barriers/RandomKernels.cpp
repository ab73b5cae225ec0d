//===- RandomKernels.cpp - Random programs on shared memory ---------------===//

#include "RandomKernels.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::attn;
using llvm::formatv;

namespace {

constexpr unsigned kRings = 2;
constexpr unsigned kPlain = 2;
constexpr unsigned kDepth[kRings] = {2, 3};

class Generator {
public:
  Generator(std::mt19937 &random, const KernelOptions &options)
      : random(random), options(options) {}

  std::string run() {
    for (unsigned ring = 0; ring < kRings; ++ring)
      cursors[ring] = pick(2) ? "%c0" : "%c1";
    block(options.depth, /*inLoop=*/false);
    std::string arguments;
    for (unsigned i = 0; i < loops; ++i)
      arguments += formatv(", %n{0}: i32", i).str();
    for (unsigned i = 0; i < branches; ++i)
      arguments += formatv(", %b{0}: i1", i).str();
    std::string allocs;
    for (unsigned i = 0; i < kPlain; ++i)
      allocs += alloc(formatv("a{0}", i).str(), "!b");
    for (unsigned i = 0; i < kRings; ++i)
      allocs += alloc(formatv("r{0}", i).str(), formatv("!r{0}", i).str());
    return R"(!tile = tensor<16x16xf16, #attn.mma<warps = [1, 1]>>
!b = !attn.buffer<16x16xf16, #attn.rows, shared>
!r0 = !attn.buffer<2x16x16xf16, #attn.rows, shared>
!r1 = !attn.buffer<3x16x16xf16, #attn.rows, shared>
!g = !attn.global<?x16xf16>
gpu.module @kernels {
gpu.func @kernel(%t: !tile, %g: !g, %x: i32)" +
           arguments + R"() kernel attributes {attn.warps = array<i64: 1, 1>} {
%c0 = arith.constant 0 : i32
%c1 = arith.constant 1 : i32
%c2 = arith.constant 2 : i32
%c3 = arith.constant 3 : i32
)" + allocs +
           text + "gpu.return\n}\n}\n";
  }

private:
  unsigned pick(unsigned count) { return random() % count; }
  std::string fresh() { return formatv("%v{0}", values++).str(); }

  std::string alloc(const std::string &name, const std::string &type) {
    std::string attributes = formatv("name = \"{0}\"", name).str();
    if (options.offsets)
      attributes += formatv(", offset = {0} : i64", 256 * pick(14)).str();
    return formatv("%{0} = attn.alloc {{{1}} : {2}\n", name, attributes, type)
        .str();
  }

  /// A buffer to touch: a plain one, or a slot of a ring.
  std::string buffer(bool inLoop) {
    unsigned which = pick(kPlain + 2 * kRings);
    if (which < kPlain)
      return formatv("%a{0}", which).str();
    unsigned ring = which % kRings;
    std::string slot = fresh(),
                index = formatv("%c{0}", pick(kDepth[ring])).str(), attributes;
    if (inLoop && pick(4) != 0) {
      unsigned distance = pick(kDepth[ring]);
      std::string sum = fresh();
      index = fresh();
      text += formatv("{0} = arith.addi {1}, %c{2} : i32\n", sum, cursors[ring],
                      distance);
      text += formatv("{0} = arith.remui {1}, %c{2} : i32\n", index, sum,
                      kDepth[ring]);
      attributes = formatv(" {{distance = {0} : i64}", distance).str();
    } else if (options.unknownSlots && pick(6) == 0) {
      index = "%x";
    }
    text += formatv("{0} = attn.slot %r{1}[{2}]{3} : !r{1} -> !b\n", slot, ring,
                    index, attributes);
    return slot;
  }

  void block(unsigned depth, bool inLoop) {
    for (unsigned i = 0; i < options.statements; ++i)
      statement(depth, inLoop);
  }

  void statement(unsigned depth, bool inLoop) {
    unsigned kind = pick(10);
    if (kind < 3) {
      std::string target = buffer(inLoop);
      text += formatv("attn.local_store %t, {0} : !tile, !b\n", target);
    } else if (kind < 6) {
      std::string source = buffer(inLoop);
      text +=
          formatv("{0} = attn.local_load {1} : !b -> !tile\n", fresh(), source);
    } else if (kind < 8) {
      if (!options.copies)
        return;
      std::string target = buffer(inLoop);
      text += formatv("attn.cp_async %g[%c0], {0} : !g, !b\n", target);
      text += "attn.cp_async.commit\n";
      if (unsigned wait = pick(6))
        text +=
            formatv("attn.cp_async.wait {{pending = {0}}\n", wait == 1 ? 1 : 0);
    } else if (depth > 0 && kind == 8) {
      branch(depth - 1, inLoop);
    } else if (depth > 0) {
      loop(depth - 1);
    }
  }

  void branch(unsigned depth, bool inLoop) {
    text += formatv("scf.if %b{0} {{\n", branches++);
    block(depth, inLoop);
    if (pick(2)) {
      text += "} else {\n";
      block(depth, inLoop);
    }
    text += "}\n";
  }

  void loop(unsigned depth) {
    std::string outer[kRings] = {cursors[0], cursors[1]};
    std::string result = fresh();
    unsigned id = loops++;
    text += formatv("{0}:2 = scf.for %i{1} = %c0 to %n{1} step %c1 "
                    "iter_args(%s{1}_0 = {2}, %s{1}_1 = {3}) -> (i32, i32) : "
                    "i32 {{\n",
                    result, id, outer[0], outer[1]);
    for (unsigned ring = 0; ring < kRings; ++ring)
      cursors[ring] = formatv("%s{0}_{1}", id, ring).str();
    block(depth, /*inLoop=*/true);
    std::string next[kRings];
    for (unsigned ring = 0; ring < kRings; ++ring) {
      std::string sum = fresh();
      next[ring] = fresh();
      text += formatv("{0} = arith.addi %s{1}_{2}, %c1 : i32\n", sum, id, ring);
      text += formatv("{0} = arith.remui {1}, %c{2} : i32\n", next[ring], sum,
                      kDepth[ring]);
    }
    text += formatv("scf.yield {0}, {1} : i32, i32\n}\n", next[0], next[1]);
    // The next loop goes on where this one ended, or starts anew. Values of a
    // branch or an inner loop are not visible outside of it.
    for (unsigned ring = 0; ring < kRings; ++ring)
      cursors[ring] = depth + 1 == options.depth && pick(2)
                          ? formatv("{0}#{1}", result, ring).str()
                          : outer[ring];
  }

  std::mt19937 &random;
  const KernelOptions &options;
  std::string text;
  std::string cursors[kRings];
  unsigned values = 0, loops = 0, branches = 0;
};

} // namespace

std::string mlir::attn::makeRandomKernel(std::mt19937 &random,
                                         const KernelOptions &options) {
  return Generator(random, options).run();
}
