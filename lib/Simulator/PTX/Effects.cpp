//===- Effects.cpp - What others see of an instruction --------------------===//

#include "Decoder.h"

using namespace mlir::attn::sim;

static Effect getEffect(const Inst &inst) {
  switch (inst.cls) {
  case InstClass::Move:
    // Clocks go on.
    return inst.text.contains("%clock") || inst.text.contains("%globaltimer")
               ? Effect::Other
               : Effect::None;
  case InstClass::Alu:
  case InstClass::Imad:
  case InstClass::Float:
  case InstClass::Fma:
  case InstClass::Half:
  case InstClass::Double:
  case InstClass::Convert:
  case InstClass::Compare:
  case InstClass::Special:
  case InstClass::Ex2:
  case InstClass::Branch:
  case InstClass::LdGlobal:
  case InstClass::LdShared:
  case InstClass::LdLocal:
  case InstClass::LdParam:
  case InstClass::StGlobal:
  case InstClass::StShared:
  case InstClass::StLocal:
  case InstClass::Atomic:
  case InstClass::Shuffle:
  case InstClass::Vote:
  case InstClass::Fence:
  case InstClass::LdMatrix:
  case InstClass::Mma:
  case InstClass::TmemLd:
    // Those that store and count nothing are st.async and st.bulk.
    return inst.text.contains("async") || inst.text.contains(".bulk")
               ? Effect::Other
               : Effect::None;
  case InstClass::Barrier:
    // Votes at a barrier carry values from warp to warp.
    return inst.text.contains(".red") ? Effect::Other : Effect::Meeting;
  case InstClass::Mbarrier:
    return inst.text.contains("_wait") || inst.text.contains("pending_count")
               ? Effect::None
               : Effect::Other;
  default:
    return inst.text.starts_with("nanosleep") ||
                   inst.text.starts_with("prefetch") ||
                   inst.text.starts_with("griddepcontrol")
               ? Effect::None
               : Effect::Other;
  }
}

void mlir::attn::sim::markEffects(ProgramImpl &program) {
  for (Inst &inst : program.code)
    inst.effect = getEffect(inst);
}
