//===- Program.h - A parsed PTX module --------------------------*- C++ -*-===//

#ifndef ATTN_SIMULATOR_PTX_PROGRAM_H
#define ATTN_SIMULATOR_PTX_PROGRAM_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// The most shared memory of a CTA on any chip, in bytes.
constexpr uint32_t kMaxSharedBytes = 227 * 1024;

/// One kernel parameter and its place in the flat parameter buffer.
struct KernelParam {
  std::string name;
  uint32_t offset = 0; ///< in bytes, aligned as the PTX declares it
  uint32_t size = 0;   ///< in bytes
  uint32_t align = 1;
  std::string type; ///< of a scalar, such as "f32"; empty for an array
  /// A guess: the value is used as an address of global memory, of elements of
  /// this PTX type (empty where no access says), which is read, written, or
  /// both.
  bool isPointer = false;
  std::string element;
  bool isRead = false, isWritten = false;
};

/// What a module says about one `.entry`.
struct KernelInfo {
  std::string name;
  std::vector<KernelParam> params;
  uint32_t paramBytes = 0;   ///< size of the flat parameter buffer
  uint32_t staticShared = 0; ///< bytes of statically declared shared memory
  std::array<uint32_t, 3> reqntid = {0, 0, 0}; ///< zeros when absent
  std::array<uint32_t, 3> maxntid = {0, 0, 0};
  std::array<uint32_t, 3> reqnctapercluster = {0, 0, 0};
  uint32_t maxnreg = 0;
  uint32_t minnctapersm = 0;
  bool usesDynamicShared = false; ///< declares shared memory without a size
  /// Line of the first instruction that touches memory other than parameters,
  /// or branches, without a griddepcontrol.wait in front of it; 0 if there is
  /// none.
  unsigned unawaitedLine = 0;
};

/// A parsed and decoded PTX module. Immutable; may be run many times and from
/// several threads at once.
class Program {
public:
  virtual ~Program();
  /// The file name that diagnostics use.
  virtual llvm::StringRef getName() const = 0;
  /// The `.target`, such as "sm_90a".
  virtual llvm::StringRef getTarget() const = 0;
  /// The `.version` times ten: 80 for 8.0.
  virtual unsigned getVersion() const = 0;
  virtual llvm::ArrayRef<KernelInfo> getKernels() const = 0;
  /// Returns true if CTAs can wait for each other, or take what others have
  /// left: by atomics, ordered accesses of global memory, or by cancelling.
  virtual bool hasDependentCtas() const = 0;
  /// The kernel of that name, or null.
  const KernelInfo *findKernel(llvm::StringRef name) const;
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_PTX_PROGRAM_H
