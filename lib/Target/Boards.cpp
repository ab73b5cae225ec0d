//===- Boards.cpp - The boards that carry a chip --------------------------===//

#include "attn/Target/Boards.h"
#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"
#include "attn/Support/Suggest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
namespace json = llvm::json;

static constexpr int64_t kBoardsVersion = 1;
static constexpr llvm::StringLiteral kNative("native");

namespace {

/// Reads the fields of one row.
class BoardReader {
public:
  BoardReader(const json::Object &row, std::string place)
      : row(row), place(std::move(place)) {}

  void read(llvm::StringRef field, std::string &result) {
    if (std::optional<llvm::StringRef> text = row.getString(field))
      result = text->str();
    else
      refuse(field, "a string");
  }
  template <typename Number>
  void readNumber(llvm::StringRef field, Number &result) {
    std::optional<int64_t> number = row.getInteger(field);
    if (number && *number >= 0)
      result = Number(*number);
    else
      refuse(field, "a number of at least 0");
  }
  void read(llvm::StringRef field, std::vector<std::string> &result) {
    const json::Array *array = row.getArray(field);
    if (!array)
      return refuse(field, "an array of strings");
    for (const json::Value &value : *array) {
      std::optional<llvm::StringRef> text = value.getAsString();
      if (!text)
        return refuse(field, "an array of strings");
      result.push_back(text->str());
    }
  }
  /// The first complaint; empty if there is none.
  const std::string &getError() const { return error; }

private:
  void refuse(llvm::StringRef field, llvm::StringRef expected) {
    if (error.empty())
      error = (place + "." + field + ": expected " + expected).str();
  }

  const json::Object &row;
  std::string place, error;
};

} // namespace

llvm::Expected<std::vector<Board>>
mlir::attn::parseBoards(llvm::StringRef text) {
  auto fail = [](const llvm::Twine &what) {
    return llvm::createStringError("boards: " + what);
  };
  llvm::Expected<json::Value> parsed = parseJSON(text);
  if (!parsed)
    return fail(llvm::toString(parsed.takeError()));
  const json::Object *root = parsed->getAsObject();
  const json::Array *rows = root ? root->getArray("boards") : nullptr;
  if (!rows || root->getInteger("version") != kBoardsVersion)
    return fail(llvm::formatv("expected version {0} and an array \"boards\"",
                              kBoardsVersion)
                    .str());
  std::vector<Board> boards;
  for (const auto &[i, value] : llvm::enumerate(*rows)) {
    const json::Object *object = value.getAsObject();
    std::string place = "boards[" + std::to_string(i) + "]";
    if (!object)
      return fail(place + ": expected an object");
    BoardReader reader(*object, place);
    Board &board = boards.emplace_back();
    reader.read("name", board.name);
    reader.read("title", board.title);
    reader.read("driver", board.driverNames);
    reader.read("chips", board.chips);
    reader.read("default_of", board.defaultOf);
    reader.readNumber("sms", board.smCount);
    reader.readNumber("sms_in_pairs", board.smCountInPairs);
    reader.readNumber("sms_in_fours", board.smCountInFours);
    reader.readNumber("clock_mhz", board.clockMHz);
    reader.readNumber("dram_gb_per_second", board.dramGBPerSecond);
    reader.readNumber("l2_mib", board.l2Bytes);
    board.l2Bytes <<= 20;
    reader.readNumber("power_watts", board.powerWatts);
    reader.read("source", board.source);
    if (!reader.getError().empty())
      return fail(reader.getError());
  }
  return boards;
}

llvm::ArrayRef<Board> mlir::attn::getBoards() {
  static const std::vector<Board> boards = [] {
    static constexpr char text[] =
#include "Boards.inc"
        ;
    // The text is part of the library, and a test reads it.
    return llvm::cantFail(parseBoards(text));
  }();
  return boards;
}

const Board *mlir::attn::findBoardOfDriver(llvm::StringRef model) {
  for (const Board &board : getBoards())
    if (llvm::is_contained(board.driverNames, model))
      return &board;
  return nullptr;
}

/// Returns the name that the driver gives the first device of this machine;
/// empty without a driver.
static std::string readDriverModel(llvm::StringRef folder) {
  std::error_code code;
  for (llvm::sys::fs::directory_iterator it(folder, code), end;
       it != end && !code; it.increment(code)) {
    llvm::Expected<std::string> text = readFile(it->path() + "/information");
    if (!text) {
      llvm::consumeError(text.takeError());
      continue;
    }
    for (llvm::StringRef line : llvm::split(*text, '\n'))
      if (line.consume_front("Model:"))
        return line.trim().str();
  }
  return "";
}

llvm::Expected<const Board &>
mlir::attn::findNativeBoard(llvm::StringRef folder) {
  std::string model = readDriverModel(folder);
  if (model.empty())
    return llvm::createStringError(
        "board 'native': expected a driver that names a board, found none");
  if (const Board *board = findBoardOfDriver(model))
    return *board;
  return llvm::createStringError("board 'native': the driver names '" + model +
                                 "', of which nothing is known");
}

llvm::Expected<const Board &> mlir::attn::lookupBoard(llvm::StringRef name) {
  if (name == kNative)
    return findNativeBoard();
  llvm::SmallVector<llvm::StringRef> known;
  for (const Board &board : getBoards()) {
    if (board.name == name)
      return board;
    known.push_back(board.name);
  }
  return llvm::createStringError(
      "unknown board '" + name + "', expected native or one of " +
      llvm::join(known, ", ") + suggest(name, known));
}
