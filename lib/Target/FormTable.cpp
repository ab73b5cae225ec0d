//===- FormTable.cpp - What each instruction form needs -------------------===//
//
// Every cell (form, chip, least PTX version) was found by compiling the form's
// smallest use with LLVM 22 and ptxas 13.0, and test/Target/PTX/forms.test does
// that again. Where LLVM asks for more than the PTX ISA, LLVM's requirement
// stands on the operation and the ISA's on the mnemonic.
//
//===----------------------------------------------------------------------===//

#include "attn/Target/FormTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <algorithm>

using namespace mlir::attn;

using C = Capability;

static constexpr Form forms[] = {
    //===------------------------------------------------------------------===//
    // Scalar code
    //===------------------------------------------------------------------===//
    {"scalar", C::Base, 70,
     "abs.*|add.*|addc.*|and.*|bfe.*|bfi.*|bfind.*|bmsk.*|bra|bra.*|brev.*|"
     "call|call.*|clz.*|cnot.*|copysign.*|cvt.*|cvta.*|div.*|exit|fma.*|ld.*|"
     "lop3.*|mad.*|mad24.*|madc.*|max.*|min.*|mov.*|mul.*|mul24.*|neg.*|not.*|"
     "or.*|popc.*|prmt.*|rem.*|ret|sad.*|selp.*|set.*|setp.*|shf.*|shl.*|shr.*|"
     "slct.*|st.*|sub.*|subc.*|szext.*|testp.*|trap|xor.*|isspacep.*|fns.*|"
     "brkpt|!st.async*|!st.bulk*|!cvt.*x4*|!setmaxnreg*|!call.uni*",
     "prmt*|mulhi.*|mul24.*|sad.*|flo.*|bmsk.*|fns|fshl.clamp|fshr.clamp|"
     "sext.*|zext.*|isspacep.*|move.*|lohi.*|d2i.*|d2ui.*|d2ll.*|d2ull.*|"
     "f2i.*|f2ui.*|f2ll.*|f2ull.*|i2f.*|ui2f.*|ll2f.*|ull2f.*|i2d.*|ui2d.*|"
     "ll2d.*|ull2d.*|d2f.*|exit|internal.addrspace*|reflect|saturate.*|"
     "bf2h.*|f2h.*",
     "llvm.add|llvm.sub|llvm.mul|llvm.sdiv|llvm.udiv|llvm.srem|llvm.urem|"
     "llvm.and|llvm.or|llvm.xor|llvm.shl|llvm.lshr|llvm.ashr|llvm.icmp|"
     "llvm.select|llvm.trunc|llvm.zext|llvm.sext|llvm.bitcast|llvm.ptrtoint|"
     "llvm.inttoptr|llvm.addrspacecast|llvm.getelementptr|llvm.extractvalue|"
     "llvm.insertvalue|llvm.extractelement|llvm.insertelement|"
     "llvm.shufflevector|llvm.freeze|llvm.mlir.*|llvm.func|llvm.return|"
     "llvm.br|llvm.cond_br|llvm.switch|llvm.unreachable|llvm.alloca|"
     "llvm.call|llvm.comdat|llvm.comdat_selector|"
     "llvm.intr.abs|llvm.intr.bitreverse|llvm.intr.bswap|llvm.intr.ctlz|"
     "llvm.intr.cttz|llvm.intr.ctpop|llvm.intr.fshl|llvm.intr.fshr|"
     "llvm.intr.smax|llvm.intr.smin|llvm.intr.umax|llvm.intr.umin|"
     "llvm.intr.*.sat|llvm.intr.*.with.overflow|llvm.intr.assume|"
     "llvm.intr.expect|llvm.intr.expect.with.probability|"
     "llvm.intr.lifetime.*|llvm.intr.invariant.*|llvm.intr.is.constant|"
     "llvm.intr.experimental.noalias.scope.decl|llvm.intr.memcpy*|"
     "llvm.intr.memset*|llvm.intr.memmove|llvm.intr.trap|llvm.intr.dbg.*|"
     "llvm.intr.vector.*|nvvm.prmt|nvvm.exit|nvvm.breakpoint"},
    {"special registers", C::Base, 70, "",
     "read.ptx.sreg.*|!read.ptx.sreg.*cluster*|!*is_explicit_cluster",
     "nvvm.read.ptx.sreg.*|!nvvm.read.ptx.sreg.*cluster*"},
    {"memory", C::Base, 70, "ldu.*|discard.*|applypriority.*",
     "ldu.global.*|discard.*|applypriority.*",
     "llvm.load/ptr|llvm.load/ptr<1>|llvm.load/ptr<3>|llvm.load/ptr<4>|"
     "llvm.load/ptr<5>|llvm.store/ptr|llvm.store/ptr<1>|llvm.store/ptr<3>|"
     "llvm.store/ptr<5>"},
    {"32-byte vectors", C::Vector256, 88,
     "ld.*v4.?64*|ld.*v8.?32*|st.*v4.?64*|st.*v8.?32*", "", ""},
    {"atomics", C::Base, 70, "atom.*|red.*|!red.async*|!redux*", "atomic.*",
     "llvm.atomicrmw/ptr|llvm.atomicrmw/ptr<1>|llvm.atomicrmw/ptr<3>|"
     "llvm.cmpxchg/ptr|llvm.cmpxchg/ptr<1>|llvm.cmpxchg/ptr<3>"},
    {"prefetch", C::Tma, 80, "", "prefetch.*|prefetchu.*|!prefetch.tensormap",
     "nvvm.prefetch"},
    {"prefetch mnemonic", C::Base, 70,
     "prefetch.*|prefetchu.*|!prefetch.*tensormap", "", ""},
    {"nanosleep", C::Base, 70, "nanosleep.*|pmevent*", "nanosleep|pm.event*",
     "nvvm.nanosleep|nvvm.pmevent"},
    {"dp4a", C::Base, 70, "dp4a.*|dp2a.*", "idp4a.*|idp2a.*",
     "nvvm.dot.accumulate.*"},

    //===------------------------------------------------------------------===//
    // Floating point
    //===------------------------------------------------------------------===//
    {"float", C::Base, 70,
     "ex2.approx.*f32|lg2.*|rcp.*|sqrt.*|rsqrt.*|sin.*|cos.*|tanh.approx.*f32",
     "add.*|mul.*|div.*|fma.*|rcp.*|sqrt.*|rsqrt.*|sin.*|cos.*|lg2.*|"
     "ex2.approx|ex2.approx.ftz|ex2.approx.f|ex2.approx.ftz.f|"
     "ex2.approx.f32|ex2.approx.ftz.f32|fabs*|floor.*|ceil.*|trunc.*|round.*|"
     "fmin.*|fmax.*|neg.bf16*",
     "llvm.fadd|llvm.fsub|llvm.fmul|llvm.fdiv|llvm.frem|llvm.fneg|llvm.fcmp|"
     "llvm.fptrunc|llvm.fpext|llvm.fptosi|llvm.fptoui|llvm.sitofp|llvm.uitofp|"
     "llvm.intr.fma/*|llvm.intr.fmuladd/*|llvm.intr.maxnum/*|"
     "llvm.intr.minnum/*|llvm.intr.maximum/*|llvm.intr.minimum/*|"
     "llvm.intr.fabs/*|llvm.intr.copysign/*|llvm.intr.sqrt/*|"
     "llvm.intr.floor/*|llvm.intr.ceil/*|llvm.intr.trunc/*|llvm.intr.rint/*|"
     "llvm.intr.round/*|llvm.intr.roundeven/*|llvm.intr.nearbyint/*|"
     "llvm.intr.exp2/f32*|llvm.intr.sin/f32/afn|llvm.intr.cos/f32/afn|"
     "llvm.intr.tanh/f32/afn|nvvm.rcp.approx.ftz.f"},
    {"ex2 f16", C::Base, 70, "ex2.approx.*f16|ex2.approx.*f16x2|tanh.*f16*",
     "ex2.approx.f16*|ex2.approx.ftz.f16*|ex2.approx.v2f16|"
     "ex2.approx.ftz.v2f16",
     "llvm.intr.exp2/*f16*|llvm.intr.tanh/f16/afn|llvm.intr.tanh/bf16/afn"},
    {"ex2 bf16", C::Bf16Arith, 78, "ex2.*bf16*|tanh.*bf16*",
     "ex2.approx.ftz.bf16*|ex2.approx.ftz.v2bf16", "llvm.intr.tanh/bf16*"},
    {"add and mul bf16", C::Bf16Arith, 78,
     "add.*bf16*|sub.*bf16*|mul.*bf16*|atom.*bf16*", "", ""},
    {"f32x2", C::F32x2, 86, "*.f32x2", "*f32x2", ""},
    {"max with three inputs", C::MinMax3, 88, "max.*f32/4|min.*f32/4", "", ""},
    {"cvt f16x2 and bf16x2", C::Base, 70, "",
     "ff2f16x2.r[nz]*|ff2bf16x2.r[nz]*|f2f16.*|f2bf16.*",
     "nvvm.convert.f32x2.to.f16x2|nvvm.convert.f32x2.to.bf16x2"},
    {"cvt tf32", C::Base, 70, "", "f2tf32.rna",
     "nvvm.convert.float.to.tf32/rna"},
    {"cvt tf32 rn", C::Cluster, 78, "cvt.rn.*tf32*|cvt.rz.*tf32*",
     "f2tf32.r[nz]|f2tf32.r[nz].relu",
     "nvvm.convert.float.to.tf32/rn|nvvm.convert.float.to.tf32/rz"},
    {"cvt fp8", C::Fp8, 81, "cvt.*e4m3x2*|cvt.*e5m2x2*",
     "e4m3x2.to.f16x2.*|e5m2x2.to.f16x2.*|ff.to.e4m3x2.*|ff.to.e5m2x2.*|"
     "f16x2.to.e4m3x2.*|f16x2.to.e5m2x2.*",
     "nvvm.convert.f32x2.to.f8x2/f8E4M3FN|nvvm.convert.f32x2.to.f8x2/f8E5M2|"
     "nvvm.convert.f16x2.to.f8x2|nvvm.convert.f8x2.to.f16x2"},
    {"cvt fp4, fp6 and scales", C::Fp4, 86,
     "cvt.*e2m1x2*|cvt.*e2m3x2*|cvt.*e3m2x2*|cvt.*ue8m0x2*",
     "e2m1x2.*|e2m3x2.*|e3m2x2.*|ue8m0x2.*|ff.to.e2m1x2.*|ff.to.e2m3x2.*|"
     "ff.to.e3m2x2.*|ff.to.ue8m0x2.*|bf16x2.to.ue8m0x2.*",
     "nvvm.convert.f32x2.to.f4x2|nvvm.convert.f32x2.to.f6x2|"
     "nvvm.convert.f32x2.to.f8x2/f8E8M0FNU|nvvm.convert.bf16x2.to.f8x2|"
     "nvvm.convert.f6x2.to.f16x2|nvvm.convert.f4x2.to.f16x2|"
     "nvvm.convert.f8x2.to.bf16x2"},

    //===------------------------------------------------------------------===//
    // Warps, barriers, fences
    //===------------------------------------------------------------------===//
    {"warp", C::Base, 70,
     "shfl.sync.*|vote.*|match.*|activemask.*|redux.sync.*|bar.warp.*",
     "shfl.*|vote.*|match.*|activemask|redux.sync.*|bar.warp.sync",
     "nvvm.shfl.sync|nvvm.vote.sync|nvvm.match.sync|nvvm.redux.sync|"
     "nvvm.bar.warp.sync"},
    {"redux f32", C::ReduxF32, 86, "redux.sync.*f32", "redux.sync.f*",
     "nvvm.redux.sync/f32"},
    {"elect.sync", C::Cluster, 80, "elect.sync", "elect.sync",
     "nvvm.elect.sync"},
    {"barrier", C::Base, 70, "bar.*|barrier.*|!barrier.cluster.*",
     "barrier.cta.*|barrier0*",
     "nvvm.barrier|nvvm.barrier0|nvvm.barrier.arrive"},
    {"fence", C::Base, 70, "membar.*|fence.sc.*|fence.acq_rel.*", "membar.*",
     "llvm.fence/block|llvm.fence/device|llvm.fence/system|"
     "nvvm.memory.barrier"},
    {"fence.proxy.alias", C::Base, 78, "fence.proxy.alias", "fence.proxy.alias",
     "nvvm.fence.proxy/alias"},
    {"fence.proxy.async", C::Tma, 80,
     "fence.proxy.async*|fence.mbarrier_init.*",
     "fence.proxy.async|fence.proxy.async.global|fence.proxy.async.shared*|"
     "fence.mbarrier_init.*",
     "nvvm.fence.proxy/async*|nvvm.fence.mbarrier.init"},
    {"fence.proxy.tensormap", C::Tma, 83,
     "fence.proxy.tensormap*|tensormap.cp_fenceproxy*",
     "fence.proxy.tensormap*",
     "nvvm.fence.proxy.acquire|"
     "nvvm.fence.proxy.release|nvvm.fence.proxy/tensormap"},
    {"fence sync_restrict", C::Cluster, 86, "fence.*sync_restrict*",
     "fence.*sync_restrict*",
     "nvvm.fence.sync_restrict|nvvm.fence.proxy.sync_restrict"},
    {"griddepcontrol", C::Cluster, 78, "griddepcontrol.*", "griddepcontrol.*",
     "nvvm.griddepcontrol"},

    //===------------------------------------------------------------------===//
    // Clusters
    //===------------------------------------------------------------------===//
    {"cluster", C::Cluster, 80,
     "barrier.cluster.*|mapa*|getctarank*|*.shared::cluster.*|isspacep.*"
     "cluster*",
     "barrier.cluster.*|mapa*|getctarank*|read.ptx.sreg.*cluster*|"
     "is_explicit_cluster",
     "nvvm.cluster.*|nvvm.mapa|nvvm.read.ptx.sreg.*cluster*|"
     "llvm.load/ptr<7>|llvm.store/ptr<7>|llvm.atomicrmw/ptr<7>"},
    {"cluster fence", C::Cluster, 80, "fence.*.cluster", "fence.sc.cluster",
     "llvm.fence/cluster|nvvm.fence.sc.cluster|nvvm.memory.barrier/cluster"},

    //===------------------------------------------------------------------===//
    // mbarriers
    //===------------------------------------------------------------------===//
    {"mbarrier", C::Base, 70,
     "mbarrier.init.*|mbarrier.inval.*|mbarrier.arrive.*|"
     "mbarrier.arrive_drop.*|mbarrier.test_wait.*|mbarrier.pending_count.*",
     "mbarrier.init*|mbarrier.inval*|mbarrier.arrive|mbarrier.arrive.shared|"
     "mbarrier.arrive.noComplete*|mbarrier.arrive.drop|"
     "mbarrier.arrive.drop.shared|mbarrier.arrive.drop.noComplete*|"
     "mbarrier.test.wait*|mbarrier.pending.count",
     "nvvm.mbarrier.init|nvvm.mbarrier.inval|nvvm.mbarrier.arrive|"
     "nvvm.mbarrier.arrive.nocomplete|nvvm.mbarrier.arrive_drop.nocomplete|"
     "nvvm.mbarrier.test.wait"},
    {"mbarrier.test_wait.parity", C::Base, 71, "mbarrier.test_wait.parity*",
     "mbarrier.test.wait.parity*", "nvvm.mbarrier.test.wait/parity"},
    {"mbarrier.arrive with count or drop", C::Tma, 80, "",
     "mbarrier.arrive.scope.*|mbarrier.arrive.relaxed.*|"
     "mbarrier.arrive.drop.scope.*|mbarrier.arrive.drop.relaxed.*",
     "nvvm.mbarrier.arrive/count|nvvm.mbarrier.arrive_drop"},
    {"mbarrier transaction counts", C::Tma, 80,
     "mbarrier.expect_tx.*|mbarrier.complete_tx.*|mbarrier.*.expect_tx.*",
     "mbarrier.expect.tx.*|mbarrier.complete.tx.*|mbarrier.*expect.tx.*",
     "nvvm.mbarrier.expect_tx|nvvm.mbarrier.complete_tx|"
     "nvvm.mbarrier.arrive.expect_tx|nvvm.mbarrier.arrive_drop.expect_tx"},
    {"mbarrier.try_wait", C::Tma, 78, "mbarrier.try_wait.*", "",
     "nvvm.mbarrier.try_wait.parity"},
    {"mbarrier.try_wait with scope", C::Tma, 80,
     "mbarrier.try_wait.*acquire*|mbarrier.test_wait.*acquire*",
     "mbarrier.try.wait.*", "nvvm.mbarrier.try_wait"},
    {"mbarrier in the cluster", C::Tma, 80,
     "mbarrier.*.cluster*|mbarrier.*shared::cluster*|mbarrier.*shared::cta*",
     "mbarrier.*scope.cluster*|mbarrier.*space.cluster*",
     "nvvm.mbarrier.*/cluster*"},
    {"mbarrier relaxed", C::Tma, 86, "mbarrier.*relaxed*", "mbarrier.*relaxed*",
     "nvvm.mbarrier.*/relaxed*"},

    //===------------------------------------------------------------------===//
    // Copies
    //===------------------------------------------------------------------===//
    {"cp.async", C::Base, 70,
     "cp.async.ca.*|cp.async.cg.*|cp.async.commit_group|cp.async.wait_*|"
     "cp.async.mbarrier.*",
     "cp.async.ca.*|cp.async.cg.*|cp.async.commit.group|cp.async.wait.*|"
     "cp.async.mbarrier.*",
     "nvvm.cp.async.shared.global|nvvm.cp.async.commit.group|"
     "nvvm.cp.async.wait.group|nvvm.cp.async.mbarrier.arrive"},
    {"cp.async prefetch size", C::Base, 74,
     "*.L2::64B*|*.L2::128B*|*.L2::256B*", "", ""},
    {"createpolicy", C::Base, 74, "createpolicy.*|*.L2::cache_hint*", "", ""},
    {"cp.async.bulk", C::Tma, 80,
     "cp.async.bulk.*|!cp.async.bulk.tensor.*|!cp.async.bulk.prefetch.tensor.*",
     "cp.async.bulk.*|!cp.async.bulk.tensor.*",
     "nvvm.cp.async.bulk.*|!nvvm.cp.async.bulk.tensor.*"},
    {"cp.async.bulk to shared::cta", C::Tma, 86,
     "cp.async.bulk.shared::cta.global.*",
     "cp.async.bulk.global.to.shared.cta*",
     "nvvm.cp.async.bulk.shared.cluster.global/ptr<3>"},
    {"cp.reduce.async.bulk", C::Tma, 80, "cp.reduce.async.bulk.*",
     "cp.async.bulk.tensor.reduce.*", "nvvm.cp.async.bulk.tensor.reduce"},
    {"cp.async.bulk.tensor", C::Tma, 80,
     "cp.async.bulk.tensor.*|cp.async.bulk.prefetch.tensor.*",
     "cp.async.bulk.tensor.g2s.tile.*|cp.async.bulk.tensor.g2s.im2col.?d|"
     "cp.async.bulk.tensor.s2g.tile.*|cp.async.bulk.tensor.s2g.im2col.*|"
     "cp.async.bulk.tensor.prefetch.tile.*|"
     "cp.async.bulk.tensor.prefetch.im2col.?d|"
     "cp.async.bulk.tensor.g2s.cta.tile.*|"
     "cp.async.bulk.tensor.g2s.cta.im2col.?d",
     "nvvm.cp.async.bulk.tensor.shared.cluster.global|"
     "nvvm.cp.async.bulk.tensor.global.shared.cta|"
     "nvvm.cp.async.bulk.tensor.prefetch"},
    {"cp.async.bulk.tensor to shared::cta", C::Tma, 86,
     "cp.async.bulk.tensor.*.shared::cta.global.*",
     "cp.async.bulk.tensor.g2s.cta.*",
     "nvvm.cp.async.bulk.tensor.shared.cluster.global/cta"},
    {"cp.async.bulk.tensor for pairs", C::TmaPair, 86,
     "cp.async.bulk.*cta_group::*|cp.async.bulk.tensor.*gather4*|"
     "cp.async.bulk.tensor.*scatter4*|cp.async.bulk.tensor.*im2col::w*",
     "cp.async.bulk.tensor.*gather4*|cp.async.bulk.tensor.*scatter4*|"
     "cp.async.bulk.tensor.*im2col.w*",
     "nvvm.cp.async.bulk.tensor.*/pair"},
    {"prefetch.tensormap", C::Tma, 80, "prefetch.*tensormap",
     "prefetch.tensormap", "nvvm.prefetch/tensormap"},
    {"tensormap.replace", C::Tma, 83, "tensormap.replace.*",
     "tensormap.replace.*", ""},
    {"st.async and red.async", C::Tma, 81, "st.async.*|red.async.*", "", ""},
    {"st.bulk", C::F32x2, 86, "st.bulk*", "st.bulk*", "nvvm.st.bulk"},

    //===------------------------------------------------------------------===//
    // Matrix loads and MMA
    //===------------------------------------------------------------------===//
    {"ldmatrix", C::Base, 70, "ldmatrix.*", "ldmatrix.*", "nvvm.ldmatrix"},
    {"ldmatrix b8", C::Matrix8, 86, "ldmatrix.*b8*", "ldmatrix.*b8*",
     "nvvm.ldmatrix/b8*"},
    {"stmatrix", C::StMatrix, 78, "stmatrix.*", "stmatrix.*", "nvvm.stmatrix"},
    {"stmatrix b8", C::Matrix8, 86, "stmatrix.*b8", "stmatrix.*b8",
     "nvvm.stmatrix/b8"},
    {"mma.sync", C::Base, 70, "mma.sync.aligned.m*|wmma.*",
     "mma.m*|mma.xor.*|mma.and.*|wmma.*|!mma.*.kind.*",
     "nvvm.mma.sync/f16|nvvm.mma.sync/bf16|nvvm.mma.sync/tf32|"
     "nvvm.mma.sync/?8|nvvm.mma.sync/?4|nvvm.mma.sync/b1|nvvm.mma.sync/f64|"
     "nvvm.wmma.*"},
    {"mma.sync fp8", C::Fp8, 84,
     "mma.sync.aligned.m*e4m3*|mma.sync.aligned.m*e5m2*",
     "mma.m*.e4m3.*|mma.m*.e5m2.*|!mma.*.kind.*", ""},
    {"mma.sync fp8, f16 accumulator or k16", C::Fp8, 87,
     "mma.sync.aligned.m16n8k16.*e?m?*|mma.sync.aligned.m16n8k32.*.f16.e?m?.*",
     "mma.m16n8k16.*.e?m?.*|mma.m16n8k32.row.col.f16.e?m?.*", ""},
    {"wgmma", C::Wgmma, 80, "wgmma.*", "wgmma.*", "nvvm.wgmma.*"},
    {"setmaxnreg", C::SetMaxNReg, 80, "setmaxnreg.*", "setmaxnreg.*",
     "nvvm.setmaxregister"},
    {"clusterlaunchcontrol", C::ClusterLaunchControl, 86,
     "clusterlaunchcontrol.*", "clusterlaunchcontrol.*",
     "nvvm.clusterlaunchcontrol.*"},
    {"clusterlaunchcontrol multicast", C::Tcgen05, 86,
     "clusterlaunchcontrol.*multicast*", "clusterlaunchcontrol.*multicast*",
     "nvvm.clusterlaunchcontrol.try.cancel/multicast"},
    {"tcgen05", C::Tcgen05, 86, "tcgen05.*",
     "tcgen05.*|!tcgen05.mma.sp.*|!tcgen05.mma.ws.sp.*",
     "nvvm.tcgen05.*|!nvvm.tcgen05.mma.sp*|!nvvm.tcgen05.mma.ws.sp*"},
    {"tcgen05.mma block scales", C::Tcgen05, 88, "tcgen05.mma.*block_scale*",
     "tcgen05.mma.*block_scale*", "nvvm.tcgen05.mma.block_scale"},
    {"tcgen05.mma i8", C::Tcgen05I8, 86, "tcgen05.mma.*kind::i8*", "",
     "nvvm.tcgen05.mma/i8|nvvm.tcgen05.mma.ws/i8"},
    {"tcgen05.shift", C::Tcgen05Shift, 86, "tcgen05.shift.*", "tcgen05.shift.*",
     "nvvm.tcgen05.shift"},
    {"tcgen05.ld.red", C::Tcgen05LdRed, 88, "tcgen05.ld.red.*", "", ""},
};

llvm::ArrayRef<Form> mlir::attn::getForms() { return forms; }

/// Matches `text` against `glob`, in which '*' stands for any text, '?' for any
/// character and "[ab]" for one of the characters.
static bool matchGlob(llvm::StringRef glob, llvm::StringRef text) {
  while (!glob.empty()) {
    if (glob.front() == '*') {
      glob = glob.drop_front();
      for (size_t skip = 0; skip <= text.size(); ++skip)
        if (matchGlob(glob, text.drop_front(skip)))
          return true;
      return false;
    }
    if (text.empty())
      return false;
    if (glob.front() == '[') {
      auto [set, rest] = glob.drop_front().split(']');
      if (!set.contains(text.front()))
        return false;
      glob = rest;
    } else {
      if (glob.front() != '?' && glob.front() != text.front())
        return false;
      glob = glob.drop_front();
    }
    text = text.drop_front();
  }
  return text.empty();
}

static bool matchList(llvm::StringRef list, llvm::StringRef text) {
  bool matched = false;
  while (!list.empty()) {
    auto [glob, rest] = list.split('|');
    list = rest;
    if (glob.consume_front("!")) {
      if (matchGlob(glob, text))
        return false;
    } else {
      matched = matched || matchGlob(glob, text);
    }
  }
  return matched;
}

llvm::SmallVector<const Form *, 2>
mlir::attn::lookupForms(FormSpelling spelling, llvm::StringRef text) {
  llvm::SmallVector<const Form *, 2> result;
  for (const Form &form : forms) {
    llvm::StringRef list = spelling == FormSpelling::Mnemonic ? form.mnemonics
                           : spelling == FormSpelling::Intrinsic
                               ? form.intrinsics
                               : form.operations;
    if (matchList(list, text))
      result.push_back(&form);
  }
  return result;
}

bool mlir::attn::isAvailable(const Form &form, const TargetRow &target) {
  return target.has(form.needs);
}

unsigned mlir::attn::getLeastPTX(const Form &form, const TargetRow &target) {
  return std::max(form.ptx, target.minPTX);
}

std::optional<std::string>
mlir::attn::explainForms(llvm::ArrayRef<const Form *> matches,
                         const TargetRow &target, unsigned ptx) {
  if (matches.empty())
    return "is not in the form table";
  unsigned least = 0;
  const Form *missing = nullptr;
  for (const Form *form : matches) {
    least = std::max(least, form->ptx);
    if (!isAvailable(*form, target))
      missing = form;
  }
  if (!missing && ptx >= least)
    return std::nullopt;
  llvm::StringRef chips =
      getCapabilityChips(missing ? missing->needs : Capability::Base);
  std::string needs = missing ? chips.str() + " and " : std::string();
  std::string got = target.chip.str() + " and PTX " + formatPTXVersion(ptx);
  if (missing && target.instructionCapability != target.computeCapability)
    got += ", with the instructions of sm_" +
           std::to_string(target.instructionCapability);
  return "needs " + needs + "PTX " + formatPTXVersion(least) + ", got " + got;
}

/// Removes comments from assembly text.
static std::string stripComments(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    if (text.starts_with("//")) {
      text = text.drop_until([](char c) { return c == '\n'; });
    } else if (text.starts_with("/*")) {
      size_t end = text.find("*/", 2);
      text = end == llvm::StringRef::npos ? "" : text.drop_front(end + 2);
    } else {
      result += text.front();
      text = text.drop_front();
    }
  }
  return result;
}

/// Number of operands in `text`, counting a braced or bracketed group once.
static unsigned countOperands(llvm::StringRef text) {
  unsigned count = text.trim().empty() ? 0 : 1;
  int depth = 0;
  for (char c : text) {
    if (c == '{' || c == '[' || c == '(')
      ++depth;
    else if (c == '}' || c == ']' || c == ')')
      --depth;
    else if (c == ',' && depth == 0)
      ++count;
  }
  return count;
}

/// Drops what can stand before an instruction: braces, labels, a predicate.
static llvm::StringRef dropHead(llvm::StringRef statement) {
  while (true) {
    statement = statement.ltrim("{} \t\r\n");
    llvm::StringRef word =
        statement.take_until([](char c) { return llvm::isSpace(c); });
    if (word.starts_with("@"))
      statement = statement.drop_front(word.size());
    else if (size_t colon = word.find(':');
             colon != llvm::StringRef::npos && !word.contains("::"))
      statement = statement.drop_front(colon + 1);
    else
      return statement;
  }
}

llvm::SmallVector<std::string>
mlir::attn::getAsmMnemonics(llvm::StringRef text) {
  llvm::SmallVector<std::string> result;
  std::string stripped = stripComments(text);
  llvm::SmallVector<llvm::StringRef> statements;
  llvm::StringRef(stripped).split(statements, ';');
  for (llvm::StringRef statement : statements) {
    statement = dropHead(statement);
    if (statement.empty() || statement.front() == '.')
      continue;
    llvm::StringRef mnemonic =
        statement.take_until([](char c) { return llvm::isSpace(c); });
    std::string spelled = mnemonic.str();
    if (mnemonic.starts_with("min.") || mnemonic.starts_with("max."))
      spelled +=
          "/" +
          std::to_string(countOperands(statement.drop_front(mnemonic.size())));
    result.push_back(std::move(spelled));
  }
  return result;
}

/// True for instructions that read and write nothing but registers, by what
/// their mnemonics begin with.
static bool isOfRegisters(llvm::StringRef mnemonic) {
  static const llvm::StringSet<> families = {
      "abs",  "add",  "addc",  "and",      "bfe",   "bfi",   "bfind", "bmsk",
      "brev", "clz",  "cnot",  "copysign", "cos",   "cvt",   "div",   "dp2a",
      "dp4a", "ex2",  "fma",   "fns",      "lg2",   "lop3",  "mad",   "mad24",
      "madc", "max",  "min",   "mov",      "mul",   "mul24", "neg",   "not",
      "or",   "popc", "prmt",  "rcp",      "rem",   "rsqrt", "sad",   "selp",
      "set",  "setp", "shf",   "shl",      "shr",   "sin",   "slct",  "sqrt",
      "sub",  "subc", "szext", "tanh",     "testp", "xor"};
  return families.contains(mnemonic.split('.').first);
}

std::optional<std::string>
mlir::attn::findBeyondRegisters(llvm::StringRef text) {
  // LLVM replaces alternatives and macros, and who ends a line differs.
  for (llvm::StringRef hidden : {"$(", "${:", "\r", "#"})
    if (text.contains(hidden))
      return text.trim().str();
  std::string stripped = stripComments(text);
  llvm::SmallVector<llvm::StringRef> statements;
  llvm::StringRef(stripped).split(statements, ';');
  for (llvm::StringRef statement : statements) {
    statement = dropHead(statement).rtrim("{} \t\n");
    llvm::StringRef first =
        statement.take_until([](char c) { return llvm::isSpace(c); });
    bool isFine =
        statement.empty() ||
        (!statement.contains('[') && (first == ".reg" || isOfRegisters(first)));
    if (!isFine)
      return statement.str();
  }
  return std::nullopt;
}
