//===- Bufferize.cpp - attn ops from tensors to memrefs -------------------===//

#include "attn/Dialect/Attn/Transforms/Bufferize.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::bufferization;

namespace {

/// The model of both ops: results share the buffers of the inits.
template <typename Model, typename OpTy>
struct DestinationModel
    : public DstBufferizableOpInterfaceExternalModel<Model, OpTy> {
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand,
                              const bufferization::AnalysisState &) const {
    if (!cast<DestinationStyleOpInterface>(op).isDpsInit(&operand))
      return true;
    // Every element of an output is written, except for the rows that no
    // packed sequence owns: they keep their values.
    auto attention = dyn_cast<AttentionOp>(op);
    return attention && attention.isVariableLength();
  }

  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      if (!isa<TensorType>(operand.getType())) {
        operands.push_back(operand);
        continue;
      }
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      operands.push_back(*buffer);
    }
    OperationState created(op->getLoc(), op->getName(), operands, TypeRange());
    created.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
    created.propertiesAttr = op->getPropertiesAsAttribute();
    for (Region &region : op->getRegions())
      created.addRegion()->takeBody(region);
    Operation *onBuffers = rewriter.create(created);
    SmallVector<Value> results;
    for (Value init :
         cast<DestinationStyleOpInterface>(onBuffers).getDpsInits())
      results.push_back(init);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

struct AttentionModel : public DestinationModel<AttentionModel, AttentionOp> {
  /// score_mod and mask_mod run once for each pair, in no order.
  bool isRepetitiveRegion(Operation *, unsigned) const { return true; }
  bool isParallelRegion(Operation *, unsigned) const { return true; }
};

struct CombineModel : public DestinationModel<CombineModel, CombineOp> {};

} // namespace

void attn::registerBufferizationModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, AttnDialect *) {
    AttentionOp::attachInterface<AttentionModel>(*context);
    CombineOp::attachInterface<CombineModel>(*context);
  });
}
