//===- WgmmaFacts.cpp - What wgmma needs and takes ------------------------===//

#include "WgmmaFacts.h"
#include "../Copied/CopiedChecks.h"
#include "../Copied/GridTiles.h"
#include "../Core/CommonChecks.h"
#include "../Core/NarrowKeys.h"
#include "../Tma/TileWalk.h"
#include "attn/Layout/NamedLayouts.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

int64_t attn::getKeyDepth(const ProblemFacts &facts) {
  return llvm::alignTo(facts.headDim, facts.isNarrow() ? 32 : 16);
}

llvm::Error attn::checkWgmma(llvm::StringRef schedule,
                             const ProblemFacts &facts, const TargetRow &target,
                             int64_t mostColumns, bool serves, bool splits,
                             bool blockLists) {
  auto unsupported = [&](const llvm::Twine &what) {
    return makeUnsupported(schedule, what);
  };
  if (!target.has(Capability::Wgmma))
    return makeLacking(schedule,
                       llvm::formatv("{0}, which has no wgmma, expected {1}",
                                     target.chip,
                                     getCapabilityChips(Capability::Wgmma)));
  Parts parts;
  parts.narrow = true;
  parts.lengths = parts.pages = serves;
  parts.resultScales = serves;
  parts.narrowKeys = parts.rowScales = serves;
  parts.partialResults = splits;
  parts.blockLists = blockLists;
  parts.mostColumns = mostColumns;
  if (llvm::Error error = checkCommon(schedule, facts, parts))
    return error;
  // TMA copies rows of whole 16 bytes, which a thread widens at a time.
  if (llvm::Error error = checkNarrowKeys(schedule, facts, /*step=*/16))
    return error;
  if (llvm::Error error = checkMappable(schedule, facts))
    return error;
  if (llvm::Error error = checkPackedRuns(schedule, facts))
    return error;
  if (facts.hasNarrowKeys() && facts.hasTransposedValues())
    return unsupported("keys that are contiguous in a 'v' of 8 bits beside "
                       "queries of 16");
  // A copy that starts inside of 16 bytes of a row of keys is an illegal
  // instruction.
  if (facts.varlen && facts.hasTransposedValues())
    return unsupported("packed sequences with keys that are contiguous in 'v', "
                       "which TMA reads from multiples of 16 bytes on only");
  if (facts.isServed() && facts.hasTransposedValues())
    return unsupported("pages or lengths of the keys with keys that are "
                       "contiguous in 'v'");
  return llvm::Error::success();
}

llvm::Error attn::checkTileRuns(const ProblemFacts &facts, bool packHeads,
                                TileOrder order, int64_t groupHeads,
                                int64_t together, int64_t blockN) {
  if (packHeads)
    if (llvm::Error error = checkPackedHeads(facts, groupHeads))
      return error;
  if (!areResultsPartial(facts))
    return llvm::Error::success();
  if (order != TileOrder::RowMajor || together != 1)
    return llvm::createStringError(llvm::formatv(
        "expected order = row_major and CTAs of one tile with runs of keys, "
        "got {0} and {1}",
        stringifyTileOrder(order), together));
  return checkRunKeys(facts, blockN);
}

llvm::Error attn::checkQKAhead(bool qkAhead, int64_t kStages, int64_t vStages) {
  if (!qkAhead || (kStages >= 2 && vStages >= 2))
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("qk_ahead needs 2 slots of K and of V, got {0} and {1}",
                    kStages, vStages));
}

std::optional<std::string> attn::findNoQuads(const ProblemFacts &facts) {
  if (!facts.isNarrow() || !facts.hasTransposedValues())
    return "8-bit operands and a stride of 1 along the keys of 'v'";
  if (ShapedType::isDynamic(facts.keys) || facts.keys % 4 != 0)
    return llvm::formatv(
        "a number of keys that is a known multiple of 4, got {0}",
        ShapedType::isDynamic(facts.keys) ? "a dynamic one"
                                          : std::to_string(facts.keys));
  return std::nullopt;
}

llvm::Error attn::checkNarrow(const ProblemFacts &facts, int64_t blockN,
                              bool keyQuads) {
  // The depth of a matrix instruction.
  if (facts.isNarrow() && blockN % 32 != 0)
    return llvm::createStringError(llvm::formatv(
        "8-bit operands need block_n to be a multiple of 32, got {0}", blockN));
  if (needsTransposer(facts))
    if (llvm::Error error =
            transposeTiles(blockN, getValueColumns(facts), /*numWarps=*/4)
                .takeError())
      return error;
  if (keyQuads)
    if (std::optional<std::string> need = findNoQuads(facts))
      return llvm::createStringError("key_quads needs " + *need);
  return llvm::Error::success();
}

int64_t attn::getProbabilityRegisters(const ProblemFacts &facts,
                                      int64_t blockN) {
  return blockN / 2 * facts.elementType.getIntOrFloatBitWidth() / 32;
}

bool attn::mayShareLoads(const ProblemFacts &facts) { return !facts.varlen; }

llvm::Error attn::checkThreadStores(llvm::StringRef schedule,
                                    EpilogueKind epilogue) {
  if (epilogue != EpilogueKind::Tma && epilogue != EpilogueKind::Staged)
    return llvm::Error::success();
  return makeUnsupported(
      schedule, llvm::formatv("the epilogue '{0}', expected 'auto', 'direct' "
                              "or 'shuffled'",
                              stringifyEpilogueKind(epilogue)));
}

KernelShape attn::getPersistentShape(const ProblemFacts &facts,
                                     const TilePlan &tiles, int64_t threads,
                                     const TargetRow &target) {
  KernelShape shape;
  shape.cluster = tiles.cluster;
  shape.grid = {int64_t(target.getClusteredSMs(tiles.cluster)), 1, 1};
  shape.tiles = countDealtTiles(facts, tiles);
  shape.threads = threads;
  return shape;
}
