//===- Boards.h - The boards that carry a chip ------------------*- C++ -*-===//
//
// A chip says what code runs; a board says how many SMs there are, at which
// clock, and how fast memory is. Plans are chosen for a board: a chip's default
// one unless another is named. lib/Target/Boards.json has the rows, each with
// its source.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_BOARDS_H
#define ATTN_TARGET_BOARDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace mlir::attn {

/// Describes one board.
struct Board {
  /// The name that `--board` takes, such as "h200", and one for people.
  std::string name, title;
  /// Names that the driver gives the device.
  std::vector<std::string> driverNames;
  /// Chips whose code runs on the board, and those that it is the default of.
  std::vector<std::string> chips, defaultOf;
  unsigned smCount = 0;
  /// SMs that CTAs of clusters of 2 and of 4 fill at once; 0 where it is not
  /// known.
  unsigned smCountInPairs = 0, smCountInFours = 0;
  unsigned clockMHz = 0;
  unsigned dramGBPerSecond = 0;
  uint64_t l2Bytes = 0;
  unsigned powerWatts = 0;
  /// Where the numbers come from.
  std::string source;
};

/// Reads rows of boards. Errors name the place.
llvm::Expected<std::vector<Board>> parseBoards(llvm::StringRef json);

/// Lists all boards.
llvm::ArrayRef<Board> getBoards();

/// Returns the board called `name`, or an error that lists the boards there
/// are. "native" is the board that the driver of this machine names.
llvm::Expected<const Board &> lookupBoard(llvm::StringRef name);

/// Returns the board to which the driver gives the name `model`; null if none.
const Board *findBoardOfDriver(llvm::StringRef model);

/// Returns the board of the first device that the driver's files below `folder`
/// describe, or an error.
llvm::Expected<const Board &>
findNativeBoard(llvm::StringRef folder = "/proc/driver/nvidia/gpus");

} // namespace mlir::attn

#endif // ATTN_TARGET_BOARDS_H
