//===- BoardsTest.cpp - The boards that carry a chip ----------------------===//

#include "attn/Target/Boards.h"
#include "attn/Support/Files.h"
#include "attn/Target/TargetTable.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir::attn;

namespace {

std::string getError(llvm::StringRef text) {
  return llvm::toString(parseBoards(text).takeError());
}

TEST(Boards, ErrorsNameThePlace) {
  EXPECT_EQ(getError("[]"),
            "boards: expected version 1 and an array \"boards\"");
  EXPECT_EQ(getError("{\"version\": 1, \"boards\": [3]}"),
            "boards: boards[0]: expected an object");
  EXPECT_EQ(getError("{\"version\": 1, \"boards\": [{}]}"),
            "boards: boards[0].name: expected a string");
  EXPECT_EQ(getError("{\"version\": 1, \"boards\": [{\"name\": \"a\", "
                     "\"title\": \"A\", \"driver\": [1]}]}"),
            "boards: boards[0].driver: expected an array of strings");
  EXPECT_EQ(getError("{\"version\": 1, \"boards\": [{\"name\": \"a\", "
                     "\"title\": \"A\", \"driver\": [], \"chips\": [], "
                     "\"default_of\": [], \"sms\": -1}]}"),
            "boards: boards[0].sms: expected a number of at least 0");
}

TEST(Boards, EachChipHasOneDefault) {
  for (const TargetRow &row : getTargets()) {
    int count = 0;
    for (const Board &board : getBoards())
      if (llvm::is_contained(board.defaultOf, row.chip)) {
        EXPECT_TRUE(llvm::is_contained(board.chips, row.chip));
        EXPECT_EQ(row.board, board.title);
        EXPECT_EQ(row.smCount, board.smCount);
        ++count;
      }
    EXPECT_EQ(count, 1) << row.chip.str();
  }
}

TEST(Boards, AreNamedOnceAndAreOfKnownChips) {
  std::set<std::string> names, models;
  for (const Board &board : getBoards()) {
    EXPECT_TRUE(names.insert(board.name).second) << board.name;
    EXPECT_GT(board.smCount, 0u);
    EXPECT_GT(board.clockMHz, 0u);
    EXPECT_GT(board.dramGBPerSecond, 0u);
    EXPECT_FALSE(board.source.empty());
    for (const std::string &chip : board.chips)
      llvm::cantFail(lookupTarget(chip));
    for (const std::string &model : board.driverNames) {
      EXPECT_TRUE(models.insert(model).second) << model;
      EXPECT_EQ(findBoardOfDriver(model), &board);
    }
  }
  EXPECT_EQ(findBoardOfDriver("NVIDIA Abacus"), nullptr);
}

TEST(Boards, ReplaceTheReferenceBoard) {
  TargetRow h100 = llvm::cantFail(lookupTarget("sm_90a", ""));
  TargetRow h200 = llvm::cantFail(lookupTarget("sm_90a", "h200"));
  EXPECT_EQ(h100.board, "H100 SXM");
  EXPECT_EQ(h200.board, "H200 SXM");
  EXPECT_GT(h200.dramGBPerSecond, h100.dramGBPerSecond);
  EXPECT_EQ(h200.sharedBytesPerSM, h100.sharedBytesPerSM);
}

TEST(Boards, TheDriverNamesTheNativeOne) {
  llvm::SmallString<64> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("gpus", folder));
  auto find = [&] { return findNativeBoard(folder); };
  EXPECT_EQ(llvm::toString(find().takeError()),
            "board 'native': expected a driver that names a board, found none");
  llvm::SmallString<64> device = folder;
  llvm::sys::path::append(device, "0000:19:00.0");
  ASSERT_FALSE(llvm::sys::fs::create_directory(device));
  auto write = [&](llvm::StringRef model) {
    llvm::cantFail(
        writeFile((device + "/information").str(), [&](llvm::raw_ostream &os) {
          os << "Model: \t\t " << model << "\nIRQ:   \t\t 251\n";
        }));
  };
  write("NVIDIA H200");
  EXPECT_EQ(llvm::cantFail(find()).name, "h200");
  write("NVIDIA Abacus");
  EXPECT_EQ(
      llvm::toString(find().takeError()),
      "board 'native': the driver names 'NVIDIA Abacus', of which nothing "
      "is known");
  llvm::sys::fs::remove_directories(folder);
}

TEST(Boards, WrongOnesAreErrors) {
  EXPECT_EQ(llvm::toString(lookupTarget("sm_90a", "h2001").takeError()),
            "unknown board 'h2001', expected native or one of a100, a40, l40s, "
            "h100, h200, b200, b300, thor, rtx5090, spark; did you mean "
            "'h200'?");
  EXPECT_EQ(llvm::toString(lookupTarget("sm_80", "h200").takeError()),
            "expected a board of chip 'sm_80', got 'h200', which has chip "
            "'sm_90a'");
  EXPECT_NE(llvm::toString(lookupTarget("sm_9", "h200").takeError()), "");
}

} // namespace
