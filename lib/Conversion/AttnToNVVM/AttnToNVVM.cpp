//===- AttnToNVVM.cpp - The pass convert-attn-to-nvvm ---------------------===//
//
// The last step before translation: structured control flow to branches, then
// everything to the llvm and nvvm dialects in one conversion. The kernel gets
// its data layout, its entry attributes and its by-value parameters here,
// because the gpu dialect loses or refuses them.
//
//===----------------------------------------------------------------------===//

#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/IndexBits.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Support/PrintfFormat.h"
#include "attn/Target/TargetTable.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/LoweringOptions.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::attn {
#define GEN_PASS_DEF_CONVERTATTNTONVVMPASS
#include "attn/Conversion/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// gpu ops that name a thread or a block: special registers, in i32.
template <typename GPUOp, typename X, typename Y, typename Z>
struct SpecialRegister : OpConversionPattern<GPUOp> {
  using OpConversionPattern<GPUOp>::OpConversionPattern;
  LogicalResult
  matchAndRewrite(GPUOp op, typename GPUOp::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type i32 = rewriter.getI32Type();
    Value value;
    switch (op.getDimension()) {
    case gpu::Dimension::x:
      value = X::create(rewriter, op.getLoc(), i32);
      break;
    case gpu::Dimension::y:
      value = Y::create(rewriter, op.getLoc(), i32);
      break;
    case gpu::Dimension::z:
      value = Z::create(rewriter, op.getLoc(), i32);
      break;
    }
    rewriter.replaceOp(op, value);
    return success();
  }
};

struct BarrierLowering : OpConversionPattern<gpu::BarrierOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(gpu::BarrierOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::Barrier0Op>(op);
    return success();
  }
};

struct ReturnLowering : OpConversionPattern<gpu::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(gpu::ReturnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

/// Whether an argument of printf is of the type that a conversion takes.
bool takesType(const PrintfArgument &argument, Type type) {
  if (argument.kind == PrintfArgument::Kind::Float)
    return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
  unsigned bits = type.isIndex()     ? kIndexBits
                  : type.isInteger() ? type.getIntOrFloatBitWidth()
                                     : 0;
  return argument.bytes == 8 ? bits == 64 : bits >= 1 && bits <= 32;
}

/// That a format takes what there is.
LogicalResult checkFormat(gpu::PrintfOp op) {
  auto pieces = parsePrintfFormat(op.getFormat());
  if (!pieces)
    return op.emitOpError() << llvm::toString(pieces.takeError());
  size_t taken = 0;
  for (const PrintfPiece &piece : *pieces)
    for (const PrintfArgument &argument : piece.arguments) {
      using Kind = PrintfArgument::Kind;
      if (argument.kind == Kind::String || argument.kind == Kind::Pointer)
        return op.emitOpError("expected conversions of numbers, got '")
               << piece.text << "'";
      Type type =
          taken < op.getArgs().size() ? op.getArgs()[taken].getType() : Type();
      ++taken;
      if (!type || takesType(argument, type))
        continue;
      StringRef expected =
          argument.kind == Kind::Float ? "a float of 16, 32 or 64 bits"
          : argument.bytes == 8        ? "an integer of 64 bits"
                                       : "an integer of at most 32 bits";
      return op.emitOpError("expected ") << expected << " for conversion '"
                                         << piece.text << "', got " << type;
    }
  if (taken == op.getArgs().size())
    return success();
  return op.emitOpError("expected as many arguments as format \"")
         << op.getFormat() << "\" takes, which are " << taken << ", got "
         << op.getArgs().size();
}

/// A call of vprintf (CUDA C++ Programming Guide, Formatted Output): the
/// format, and its arguments one after the other in local memory, promoted as C
/// does. MLIR's own pattern takes memory anew in each iteration of a loop and
/// promotes floats only.
struct PrintfLowering : OpConversionPattern<gpu::PrintfOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(gpu::PrintfOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Type> types;
    SmallVector<Value> arguments;
    for (Value argument : adaptor.getArgs()) {
      arguments.push_back(promote(rewriter, op.getLoc(), argument));
      types.push_back(arguments.back().getType());
    }
    auto pointer = LLVM::LLVMPointerType::get(op.getContext());
    auto module = op->getParentOfType<gpu::GPUModuleOp>();
    Value format =
        makeFormat(rewriter, op.getLoc(), module, op.getFormat(), pointer);
    auto type = LLVM::LLVMStructType::getLiteral(op.getContext(), types);
    Value list = makeList(rewriter, op, type, pointer);
    for (auto [index, argument] : llvm::enumerate(arguments)) {
      Value at = LLVM::GEPOp::create(
          rewriter, op.getLoc(), pointer, type, list,
          ArrayRef<LLVM::GEPArg>{0, static_cast<int32_t>(index)});
      LLVM::StoreOp::create(rewriter, op.getLoc(), argument, at);
    }
    LLVM::CallOp::create(rewriter, op.getLoc(),
                         declare(rewriter, module, pointer),
                         ValueRange{format, list});
    rewriter.eraseOp(op);
    return success();
  }

private:
  static Value promote(OpBuilder &b, Location loc, Value argument) {
    Type type = argument.getType();
    if (isa<FloatType>(type) && !type.isF64())
      return LLVM::FPExtOp::create(b, loc, b.getF64Type(), argument);
    unsigned bits = type.isInteger() ? type.getIntOrFloatBitWidth() : 64;
    if (bits == 1)
      return LLVM::ZExtOp::create(b, loc, b.getI32Type(), argument);
    if (bits < 32)
      return LLVM::SExtOp::create(b, loc, b.getI32Type(), argument);
    return argument;
  }

  /// The address of the format, which all prints of it share.
  static Value makeFormat(ConversionPatternRewriter &b, Location loc,
                          gpu::GPUModuleOp module, StringRef format,
                          Type pointer) {
    std::string text = format.str() + '\0';
    auto value = b.getStringAttr(text);
    constexpr unsigned kGlobalSpace = unsigned(NVVM::NVVMMemorySpace::Global);
    LLVM::GlobalOp global;
    unsigned count = 0;
    for (auto known : module.getOps<LLVM::GlobalOp>()) {
      count += known.getName().starts_with("attn_format_");
      if (known.getValueOrNull() == value)
        global = known;
    }
    if (!global) {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(module.getBody());
      global = LLVM::GlobalOp::create(
          b, module.getLoc(),
          LLVM::LLVMArrayType::get(b.getI8Type(), text.size()),
          /*isConstant=*/true, LLVM::Linkage::Internal,
          ("attn_format_" + Twine(count)).str(), value, /*alignment=*/0,
          kGlobalSpace);
    }
    Value address = LLVM::AddressOfOp::create(b, loc, global);
    return LLVM::AddrSpaceCastOp::create(b, loc, pointer, address);
  }

  /// Memory for the arguments, once for each thread; null without any.
  static Value makeList(ConversionPatternRewriter &b, gpu::PrintfOp op,
                        LLVM::LLVMStructType type, Type pointer) {
    if (type.getBody().empty())
      return LLVM::ZeroOp::create(b, op.getLoc(), pointer);
    auto function = op->getParentOfType<FunctionOpInterface>();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getFunctionBody().front());
    Value one = LLVM::ConstantOp::create(b, op.getLoc(), b.getI32Type(), 1);
    return LLVM::AllocaOp::create(b, op.getLoc(), pointer, type, one,
                                  /*alignment=*/0);
  }

  static LLVM::LLVMFuncOp declare(ConversionPatternRewriter &b,
                                  gpu::GPUModuleOp module, Type pointer) {
    constexpr StringLiteral name = "vprintf";
    if (auto known = module.lookupSymbol<LLVM::LLVMFuncOp>(name))
      return known;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    return LLVM::LLVMFuncOp::create(
        b, module.getLoc(), name,
        LLVM::LLVMFunctionType::get(b.getI32Type(), {pointer, pointer}));
  }
};

/// The address of a tensor map: its parameter is one already.
struct TensorMapAddress : OpConversionPattern<UnrealizedConversionCastOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(UnrealizedConversionCastOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.getNumOperands() != 1 ||
        !isa<TensorMapType>(op.getOperand(0).getType()))
      return failure();
    rewriter.replaceOp(op, adaptor.getInputs());
    return success();
  }
};

/// A kernel to an llvm.func with NVVM's entry attributes.
struct KernelLowering : OpConversionPattern<gpu::GPUFuncOp> {
  using OpConversionPattern::OpConversionPattern;
  LogicalResult
  matchAndRewrite(gpu::GPUFuncOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    const auto *converter =
        static_cast<const LLVMTypeConverter *>(getTypeConverter());
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    SmallVector<Type> types;
    for (auto [index, type] : llvm::enumerate(op.getArgumentTypes())) {
      Type converted = converter->convertType(type);
      if (!converted)
        return rewriter.notifyMatchFailure(op, "argument type not supported");
      signature.addInputs(index, converted);
      types.push_back(converted);
    }
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(op.getContext()), types);
    auto function =
        LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getName(), type);
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      function->setAttr(attribute.getName(), attribute.getValue());
    if (op.isKernel())
      function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                        rewriter.getUnitAttr());
    if (std::optional<ArrayRef<int32_t>> block = op.getKnownBlockSize())
      function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                        rewriter.getDenseI32ArrayAttr(*block));
    if (std::optional<ArrayRef<int32_t>> cluster = op.getKnownClusterSize())
      function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                        rewriter.getDenseI32ArrayAttr(*cluster));
    for (unsigned index : llvm::seq(op.getNumArguments())) {
      if (!isa<TensorMapType>(op.getArgumentTypes()[index]))
        continue;
      // CUtensorMap of the CUDA driver API: 128 bytes at a multiple of 64.
      function.setArgAttr(
          index, LLVM::LLVMDialect::getByValAttrName(),
          TypeAttr::get(LLVM::LLVMArrayType::get(rewriter.getI8Type(), 128)));
      function.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(),
                          rewriter.getI64IntegerAttr(64));
      function.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(),
                          rewriter.getUnitAttr());
    }
    rewriter.inlineRegionBefore(op.getBody(), function.getBody(),
                                function.end());
    if (failed(rewriter.convertRegionTypes(&function.getBody(), *converter,
                                           &signature)))
      return failure();
    rewriter.eraseOp(op);
    return success();
  }
};

/// The number that a value folds to, whose operands need not have been folded.
std::optional<APInt> getKnownNumber(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number;
  Operation *op = value.getDefiningOp();
  if (!op || !isa<arith::ArithDialect>(op->getDialect()))
    return std::nullopt;
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<APInt> known = getKnownNumber(operand);
    if (!known)
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *known));
  }
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(operands, folded)) || folded.size() != 1)
    return std::nullopt;
  if (auto attribute = dyn_cast<Attribute>(folded.front()))
    if (auto result = dyn_cast<IntegerAttr>(attribute))
      return result.getValue();
  return std::nullopt;
}

/// Returns what keeps ptxas from making straight code of a loop.
LLVM::LoopAnnotationAttr getRolledAnnotation(MLIRContext *context) {
  auto unroll = LLVM::LoopUnrollAttr::get(
      context, /*disable=*/BoolAttr::get(context, true), {}, {}, {}, {}, {},
      {});
  return LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {},
                                       {}, {}, {}, {}, {}, {}, {}, {});
}

/// Marks loops that are to stay loops (attn.rolled) where there is one trip: of
/// more ptxas keeps the loop by itself, and the mark would only make it move
/// other code. The mark is that of the branch that a loop becomes.
void markRolledLoops(gpu::GPUModuleOp module) {
  OperationName branch(LLVM::BrOp::getOperationName(), module.getContext());
  StringAttr mark = LLVM::BrOp::getLoopAnnotationAttrName(branch);
  module.walk([&](scf::ForOp loop) {
    if (!loop->removeDiscardableAttr(kRolledAttr))
      return;
    std::optional<APInt> first = getKnownNumber(loop.getLowerBound());
    std::optional<APInt> end = getKnownNumber(loop.getUpperBound());
    if (first && end && *first + 1 == *end)
      loop->setDiscardableAttr(mark, getRolledAnnotation(module.getContext()));
  });
}

struct ConvertAttnToNVVMPass
    : attn::impl::ConvertAttnToNVVMPassBase<ConvertAttnToNVVMPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    MLIRContext *context = &getContext();
    // Alignments are computed at translation, so the layout is needed before.
    module->setAttr(LLVM::LLVMDialect::getDataLayoutAttrName(),
                    StringAttr::get(context, getDataLayout()));

    WalkResult formats = module.walk(
        [](gpu::PrintfOp op) { return WalkResult(checkFormat(op)); });
    if (formats.wasInterrupted())
      return signalPassFailure();
    markRolledLoops(module);
    LowerToLLVMOptions options(context);
    options.overrideIndexBitwidth(kIndexBits);
    LLVMTypeConverter converter(context, options);
    converter.addConversion([](TensorMapType type) {
      return LLVM::LLVMPointerType::get(type.getContext());
    });

    RewritePatternSet patterns(context);
    populateSCFToControlFlowConversionPatterns(patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    patterns.add<
        BarrierLowering, ReturnLowering, PrintfLowering, KernelLowering,
        TensorMapAddress,
        SpecialRegister<gpu::ThreadIdOp, NVVM::ThreadIdXOp, NVVM::ThreadIdYOp,
                        NVVM::ThreadIdZOp>,
        SpecialRegister<gpu::BlockIdOp, NVVM::BlockIdXOp, NVVM::BlockIdYOp,
                        NVVM::BlockIdZOp>,
        SpecialRegister<gpu::ClusterBlockIdOp, NVVM::BlockInClusterIdXOp,
                        NVVM::BlockInClusterIdYOp, NVVM::BlockInClusterIdZOp>,
        SpecialRegister<gpu::BlockDimOp, NVVM::BlockDimXOp, NVVM::BlockDimYOp,
                        NVVM::BlockDimZOp>,
        SpecialRegister<gpu::GridDimOp, NVVM::GridDimXOp, NVVM::GridDimYOp,
                        NVVM::GridDimZOp>>(converter, context);

    ConversionTarget target(*context);
    target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
    target.addLegalOp<gpu::GPUModuleOp>();
    ConversionConfig config;
    config.allowPatternRollback = false;
    if (failed(
            applyFullConversion(module, target, std::move(patterns), config)))
      return signalPassFailure();
    advanceRung(module, Rung::NVVM);
  }
};
} // namespace
