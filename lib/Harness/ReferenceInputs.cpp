//===- ReferenceInputs.cpp - What the reference is computed from ----------===//

#include "ReferenceInputs.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;

Expected<AttentionInputs>
sim::getReferenceInputs(const LaunchRecord &record,
                        llvm::ArrayRef<HarnessTensor> tensors,
                        const HarnessOptions &options) {
  auto find = [&](StringRef name) -> const HarnessTensor * {
    std::optional<unsigned> index = record.findTensor(name);
    return index ? &tensors[*index] : nullptr;
  };
  // Latent attention: the values are the first columns of the keys.
  const HarnessTensor *keys = find("k"), *values = find("v");
  bool isLatent = keys && !values && keys->argument.shape.size() == 4 &&
                  record.problem->dv <= keys->argument.shape[3];
  for (StringRef name : {"q", "k", "v", "o"})
    if (!find(name) && !(isLatent && name == "v"))
      return createStringError("launch record: expected a tensor \"" + name +
                               "\" to verify, got none");
  for (StringRef name : {"q",
                         "k",
                         "v",
                         "sinks",
                         "cu_seqlens_q",
                         "cu_seqlens_k",
                         "q_descale",
                         "k_descale",
                         "v_descale",
                         "page_table",
                         "page_indptr",
                         "kv_lengths",
                         "block_counts",
                         "block_indices",
                         "init_o",
                         "init_lse",
                         "k_scales",
                         "v_scales",
                         "k_rope",
                         "q_rope"})
    if (std::optional<unsigned> index = record.findTensor(name);
        index && isWritten(record.tensors[*index].access))
      return createStringError("launch record: expected tensor \"" + name +
                               "\" to be read, got one that is written");
  AttentionInputs inputs;
  inputs.q = find("q")->getView();
  inputs.k = keys->getView();
  inputs.v = values ? values->getView() : inputs.k;
  if (!values)
    inputs.v.shape[3] = record.problem->dv;
  auto getOptional = [&](StringRef name) -> std::optional<TensorView> {
    if (const HarnessTensor *tensor = find(name))
      return tensor->getView();
    return std::nullopt;
  };
  inputs.sinks = getOptional("sinks");
  inputs.cuSeqlensQ = getOptional("cu_seqlens_q");
  inputs.cuSeqlensK = getOptional("cu_seqlens_k");
  inputs.qDescale = getOptional("q_descale");
  inputs.kDescale = getOptional("k_descale");
  inputs.vDescale = getOptional("v_descale");
  inputs.pageTable = getOptional("page_table");
  inputs.pageIndptr = getOptional("page_indptr");
  inputs.kvLengths = getOptional("kv_lengths");
  inputs.blockCounts = getOptional("block_counts");
  inputs.blockIndices = getOptional("block_indices");
  inputs.initO = getOptional("init_o");
  inputs.initLse = getOptional("init_lse");
  inputs.kScales = getOptional("k_scales");
  inputs.vScales = getOptional("v_scales");
  inputs.kRope = getOptional("k_rope");
  inputs.qRope = getOptional("q_rope");
  // Values are scaled as the keys whose columns they are.
  if (!values)
    inputs.vScales = inputs.kScales;
  inputs.scoreMod = options.scoreMod;
  inputs.maskMod = options.maskMod;
  inputs.outMod = options.outMod;
  return inputs;
}
