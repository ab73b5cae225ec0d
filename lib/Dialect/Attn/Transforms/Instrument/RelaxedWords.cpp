//===- RelaxedWords.cpp - Words that a checked kernel keeps ---------------===//

#include "RelaxedWords.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::instrument;

Value Words::assemble(Type result, StringRef text, StringRef constraints,
                      ValueRange operands) {
  auto op = LLVM::InlineAsmOp::create(
      b, result ? TypeRange(result) : TypeRange(), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  return result ? op->getResult(0) : Value();
}

/// An index of the gpu dialect as i32.
template <typename Op>
static Value read(ImplicitLocOpBuilder &b, gpu::Dimension dimension) {
  return arith::IndexCastOp::create(b, b.getI32Type(),
                                    Op::create(b, dimension));
}

Value Words::warp() {
  Value thread = read<gpu::ThreadIdOp>(b, gpu::Dimension::x);
  return arith::ShRUIOp::create(b, thread, constant(5));
}

Value Words::isFirstLane() {
  Value thread = read<gpu::ThreadIdOp>(b, gpu::Dimension::x);
  return compare(arith::CmpIPredicate::eq,
                 arith::AndIOp::create(b, thread, constant(31)), constant(0));
}

Value Words::cta() {
  auto block = [&](gpu::Dimension d) { return read<gpu::BlockIdOp>(b, d); };
  auto grid = [&](gpu::Dimension d) { return read<gpu::GridDimOp>(b, d); };
  Value yz = add(block(gpu::Dimension::y),
                 arith::MulIOp::create(b, grid(gpu::Dimension::y),
                                       block(gpu::Dimension::z)));
  return add(block(gpu::Dimension::x),
             arith::MulIOp::create(b, grid(gpu::Dimension::x), yz));
}

Value Words::sharedAddress(int64_t bytes) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  // As attn-lower-tiles makes it.
  constexpr StringLiteral name = "attn_shared";
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!global) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    global = LLVM::GlobalOp::create(
        top, kernel.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0),
        /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
        /*alignment=*/1024, /*addrSpace=*/3);
  }
  Value base = LLVM::PtrToIntOp::create(
      b, b.getI32Type(), LLVM::AddressOfOp::create(b, global).getResult());
  return add(base, constant(bytes));
}

Value Words::inCTA(Value address, Value rank) {
  return assemble(b.getI32Type(), "mapa.shared::cluster.u32 $0, $1, $2;",
                  "=r,r,r", {address, rank});
}

Value Words::load(Value address) {
  return assemble(b.getI32Type(), "ld.relaxed.cluster.shared.u32 $0, [$1];",
                  "=r,r,~{memory}", address);
}

void Words::store(Value address, Value value) {
  assemble(Type(), "st.relaxed.cluster.shared.u32 [$0], $1;", "r,r,~{memory}",
           {address, value});
}

Value Words::fetchAdd(Value address, Value value, bool remote) {
  return assemble(
      b.getI32Type(),
      remote ? "atom.relaxed.cluster.shared::cluster.add.u32 $0, [$1], "
               "$2;"
             : "atom.relaxed.cluster.shared.add.u32 $0, [$1], $2;",
      "=r,r,r,~{memory}", {address, value});
}

Value Words::now() {
  return assemble(b.getI64Type(), "mov.u64 $0, %globaltimer;", "=l", {});
}

void Words::sleep(Value nanoseconds) {
  assemble(Type(), "nanosleep.u32 $0;", "r", nanoseconds);
}

void Words::exit() { assemble(Type(), "exit;", "", {}); }

Value Words::reports() {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  auto global = module.lookupSymbol<LLVM::GlobalOp>(kReportsName);
  return LLVM::PtrToIntOp::create(
      b, b.getI64Type(), LLVM::AddressOfOp::create(b, global).getResult());
}

Value Words::loadSeed() {
  return assemble(b.getI32Type(), "ld.relaxed.gpu.global.u32 $0, [$1];",
                  "=r,l,~{memory}", reports());
}

void Words::report(int64_t record, ArrayRef<Value> words) {
  std::string text = "{\n.reg .u32 n;\n.reg .pred p;\n"
                     "atom.relaxed.gpu.global.add.u32 n, [$0], 1;\n"
                     "setp.eq.u32 p, n, 0;\n";
  std::string constraints = "l";
  Value bytes = arith::ConstantIntOp::create(
      b, 4 * (kHeaderWords + record * kRecordWords), 64);
  SmallVector<Value> operands = {arith::AddIOp::create(b, reports(), bytes)};
  for (Value word : words) {
    std::string number = std::to_string(operands.size());
    text += "@p st.relaxed.gpu.global.u32 [$0+" +
            std::to_string(4 * operands.size()) + "], $" + number + ";\n";
    constraints += ",r";
    operands.push_back(word);
  }
  assemble(Type(), text + "}", constraints + ",~{memory}", operands);
}
