//===- MatchStatistics.h - Statistics as LLVM's libraries have them -------===//
//
// LLVM's statistics have one layout where NDEBUG is defined and another where
// it is not, and nothing in LLVM's configuration says which one its libraries
// have. This build keeps its assertions beside libraries without: their
// constructor of mlir::Pass::Statistic leaves alone what counting would read.
// So the header is read as the libraries read it, and our statistics count as
// theirs do: not at all.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_CMAKE_MATCHSTATISTICS_H
#define ATTN_CMAKE_MATCHSTATISTICS_H

#ifndef NDEBUG
#define NDEBUG
#include "llvm/ADT/Statistic.h"
#undef NDEBUG
#include <cassert>
#endif

#endif // ATTN_CMAKE_MATCHSTATISTICS_H
