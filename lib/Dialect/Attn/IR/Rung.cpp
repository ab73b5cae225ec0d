//===- Rung.cpp - The forms that a kernel goes through --------------------===//

#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr std::pair<Rung, StringLiteral> kRungNames[] = {
    {Rung::Problem, "problem"}, {Rung::Plan, "plan"},     {Rung::Tile, "tile"},
    {Rung::Barrier, "barrier"}, {Rung::Thread, "thread"}, {Rung::NVVM, "nvvm"},
    {Rung::Launch, "launch"},   {Rung::LLVM, "llvm"},     {Rung::PTX, "ptx"},
    {Rung::Cubin, "cubin"}};

llvm::StringRef attn::stringifyRung(Rung rung) {
  return kRungNames[static_cast<unsigned>(rung)].second;
}

std::optional<Rung> attn::symbolizeRung(StringRef name) {
  for (auto [rung, text] : kRungNames)
    if (text == name)
      return rung;
  return std::nullopt;
}

llvm::Expected<Rung> attn::parseRung(StringRef name) {
  if (std::optional<Rung> rung = symbolizeRung(name))
    return *rung;
  std::string known =
      llvm::join(llvm::map_range(getRungs(), stringifyRung), ", ");
  return llvm::createStringError("expected one of " + known + ", got '" + name +
                                 "'");
}

llvm::ArrayRef<Rung> attn::getRungs() {
  static constexpr Rung rungs[] = {
      Rung::Problem, Rung::Plan,   Rung::Tile, Rung::Barrier, Rung::Thread,
      Rung::NVVM,    Rung::Launch, Rung::LLVM, Rung::PTX,     Rung::Cubin};
  return rungs;
}

void attn::setRung(gpu::GPUModuleOp module, Rung rung) {
  module->setAttr(kRungAttr,
                  StringAttr::get(module.getContext(), stringifyRung(rung)));
}

/// What `module` says; the verifier has checked the name.
static std::optional<Rung> getSaidRung(gpu::GPUModuleOp module) {
  if (auto name = module->getAttrOfType<StringAttr>(kRungAttr))
    return symbolizeRung(name.getValue());
  return std::nullopt;
}

void attn::advanceRung(gpu::GPUModuleOp module, Rung rung) {
  if (std::optional<Rung> said = getSaidRung(module); said && *said < rung)
    setRung(module, rung);
}

namespace {

/// A rung and the op that shows it.
struct Place {
  Operation *op;
  Rung rung;
};

/// Collects where the parts of a module are.
class PlaceFinder {
public:
  explicit PlaceFinder(ModuleOp module) : module(module) {}
  FailureOr<Rung> run();

private:
  LogicalResult placeKernels(gpu::GPUModuleOp kernels);
  /// The rung that the ops of a function show, tile for the barrier rung too;
  /// null for a declaration.
  static std::optional<Place> placeFunction(FunctionOpInterface function);
  /// Adds a part, which has to be at the rung of the others.
  LogicalResult add(Place place);

  ModuleOp module;
  std::optional<Place> first;
};

} // namespace

/// True for what attn-lower-tiles takes to one thread's scalars.
static bool isOnTiles(Operation *op) {
  auto isTile = [](Type type) { return isa<RankedTensorType>(type); };
  return isa_and_present<AttnDialect>(op->getDialect()) ||
         llvm::any_of(op->getOperandTypes(), isTile) ||
         llvm::any_of(op->getResultTypes(), isTile);
}

std::optional<Place> PlaceFinder::placeFunction(FunctionOpInterface function) {
  if (function.isExternal())
    return std::nullopt;
  if (isa<LLVM::LLVMFuncOp>(function))
    return Place{function, Rung::NVVM};
  Operation *tiles = nullptr;
  function->walk([&](Operation *op) {
    tiles = isOnTiles(op) ? op : nullptr;
    return tiles ? WalkResult::interrupt() : WalkResult::advance();
  });
  return tiles ? Place{tiles, Rung::Tile} : Place{function, Rung::Thread};
}

LogicalResult PlaceFinder::add(Place place) {
  if (!first) {
    first = place;
    return success();
  }
  if (first->rung == place.rung)
    return success();
  InFlightDiagnostic diag = place.op->emitError("expected one rung in a file, "
                                                "got '")
                            << stringifyRung(first->rung) << "' and '"
                            << stringifyRung(place.rung) << "'";
  diag.attachNote(first->op->getLoc())
      << "the rung '" << stringifyRung(first->rung) << "' is here";
  return diag;
}

LogicalResult PlaceFinder::placeKernels(gpu::GPUModuleOp kernels) {
  std::optional<Rung> said = getSaidRung(kernels), shown;
  for (auto function : kernels.getOps<FunctionOpInterface>()) {
    std::optional<Place> place = placeFunction(function);
    if (!place)
      continue;
    // Ops on tiles are of two rungs, which differ in whether shared memory is
    // laid out and barriers are in place.
    if (place->rung == Rung::Tile) {
      if (auto kernel = dyn_cast<gpu::GPUFuncOp>(function.getOperation());
          kernel && !kernel.isKernel())
        return kernel.emitOpError("expected 'kernel' before its attributes, "
                                  "got a function that nothing launches");
      bool isLaidOut = function->hasAttr(AttnDialect::kSharedBytesAttr);
      if (said == Rung::Barrier && !isLaidOut)
        return function->emitError("expected '")
               << AttnDialect::kSharedBytesAttr
               << "' on a kernel at rung 'barrier', got none";
      place->rung = said == Rung::Barrier || (!said && isLaidOut)
                        ? Rung::Barrier
                        : Rung::Tile;
    }
    // A kernel without tiles reads the same wherever there are kernels of one
    // thread's scalars: it is where the module or the kernels in front of it
    // are.
    std::optional<Rung> others = said ? said : shown;
    if (place->rung == Rung::Thread &&
        (others == Rung::Tile || others == Rung::Barrier))
      place->rung = *others;
    if (said && *said != place->rung) {
      InFlightDiagnostic diag = place->op->emitError("expected '")
                                << stringifyRung(*said) << "', which '"
                                << kRungAttr << "' says, got what is of rung '"
                                << stringifyRung(place->rung) << "'";
      diag.attachNote(kernels.getLoc()) << "it is said here";
      return diag;
    }
    if (failed(add(*place)))
      return failure();
    shown = place->rung;
  }
  // Nothing is in the way of what has no kernels.
  if (!shown)
    return add({kernels, said.value_or(Rung::NVVM)});
  if (!said)
    kernels.emitRemark("taken to be at rung '")
        << stringifyRung(*shown) << "' by its ops, as no '" << kRungAttr
        << "' says it";
  return success();
}

FailureOr<Rung> PlaceFinder::run() {
  bool isPlanned = true;
  WalkResult walk = module.walk([&](Operation *op) -> WalkResult {
    if (auto kernels = dyn_cast<gpu::GPUModuleOp>(op)) {
      if (failed(placeKernels(kernels)))
        return WalkResult::interrupt();
      return WalkResult::skip();
    }
    if (!isa<AttentionOp, CombineOp>(op))
      return WalkResult::advance();
    isPlanned &= op->hasAttr("plan");
    return add({op, Rung::Problem});
  });
  if (walk.wasInterrupted())
    return failure();
  if (!first)
    return module.emitError("expected an 'attn.attention' or a 'gpu.module' to "
                            "compile, got neither");
  // Attentions with and without a plan go together: attn-plan keeps plans.
  return first->rung == Rung::Problem && isPlanned ? Rung::Plan : first->rung;
}

FailureOr<Rung> attn::findRung(ModuleOp module) {
  return PlaceFinder(module).run();
}
