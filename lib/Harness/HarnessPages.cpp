//===- HarnessPages.cpp - pages and lengths of a launch -------------------===//
#include "HarnessPages.h"

#include "HarnessRandom.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

/// Most sequences, entries of a table, and keys of a page: products of two of
/// them fit an int64_t.
constexpr int64_t kMostEntries = int64_t(1) << 31;

/// Of so many entries of a selection one is left out.
constexpr int64_t kAbsentShare = 7;

HarnessTensor *PageMaker::find(StringRef name) const {
  auto found = llvm::find_if(tensors, [&](const HarnessTensor &tensor) {
    return tensor.argument.name == name;
  });
  return found == tensors.end() ? nullptr : &*found;
}

bool PageMaker::makes(const HarnessTensor &tensor) const {
  const std::string &name = tensor.argument.name;
  return tensor.access == TensorAccess::Read && !options.inputs.count(name) &&
         (name == names.lengths || name == names.table ||
          (isOwn() && name == "page_indptr"));
}

llvm::SmallVector<HarnessTensor *> PageMaker::listRows() const {
  // Values may be columns of the keys.
  if (!isOwn())
    return {keys, find(names.values)};
  return {keys, find(names.values), find("k_scales"), find("v_scales"),
          find("k_rope")};
}

/// The tensors are of rank 1 or have dense rows; elements are counted
/// row-major.
static int64_t getOffset(const TensorArgument &argument, int64_t element) {
  if (argument.shape.size() == 1)
    return 4 * element * argument.strides[0];
  int64_t columns = argument.shape[1];
  return 4 * (element / columns * argument.strides[0] +
              element % columns * argument.strides[1]);
}

int64_t PageMaker::read(const HarnessTensor &tensor, int64_t element) const {
  return int64_t(decodeElement(
      DType::I32, &tensor.bytes[getOffset(tensor.argument, element)]));
}

void PageMaker::write(HarnessTensor &tensor, int64_t element,
                      int64_t value) const {
  encodeElement(DType::I32, double(value),
                &tensor.bytes[getOffset(tensor.argument, element)]);
}

void PageMaker::allocate(HarnessTensor &tensor) const {
  const TensorArgument &argument = tensor.argument;
  tensor.bytes.resize(cantFail(
      getExtentBytes(argument.shape, argument.strides, argument.dtype)));
}

int64_t PageMaker::countSequences() const {
  if (lengths)
    return lengths->argument.shape[0];
  if (counts)
    return std::max<int64_t>(0, counts->argument.shape[0] - 1);
  return table ? table->argument.shape[0] : 0;
}

std::pair<int64_t, int64_t> PageMaker::getEntries(int64_t sequence) const {
  if (!counts)
    return {sequence * table->argument.shape[1], table->argument.shape[1]};
  int64_t all = table->argument.shape[0];
  int64_t first = std::clamp<int64_t>(read(*counts, sequence), 0, all);
  int64_t last = std::clamp<int64_t>(read(*counts, sequence + 1), first, all);
  return {first, last - first};
}

int64_t PageMaker::getCapacity(int64_t sequence) const {
  if (!table)
    return keys->argument.shape[2];
  // Before the counts are made a list has equal parts.
  if (counts && counts->bytes.empty())
    return table->argument.shape[0] / std::max<int64_t>(1, sequences) *
           pageSize;
  return getEntries(sequence).second * pageSize;
}

int64_t PageMaker::getLength(int64_t sequence) const {
  int64_t capacity = getCapacity(sequence);
  if (packedKeys)
    return std::clamp<int64_t>(read(*packedKeys, sequence + 1) -
                                   read(*packedKeys, sequence),
                               0, capacity);
  if (!lengths)
    return capacity;
  return std::clamp<int64_t>(read(*lengths, sequence), 0, capacity);
}

/// The first sequence is as long as may be, and the second one has no key.
void PageMaker::makeLengths() {
  Random random(options.seed, names.lengths);
  allocate(*lengths);
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    int64_t capacity = getCapacity(sequence);
    int64_t length = random.integer(capacity);
    write(*lengths, sequence,
          sequence == 0   ? capacity
          : sequence == 1 ? 0
                          : length);
  }
}

/// Each sequence has the pages that its keys take.
void PageMaker::makeCounts() {
  allocate(*counts);
  int64_t all = table->argument.shape[0], sum = 0;
  int64_t part = all / std::max<int64_t>(1, sequences);
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    write(*counts, sequence, sum);
    int64_t pages = part;
    if (lengths)
      pages = llvm::divideCeil(
          std::clamp<int64_t>(read(*lengths, sequence), 0, part * pageSize),
          pageSize);
    sum = std::min(all, sum + pages);
  }
  write(*counts, sequences, sum);
}

/// Pages in random order, each once as long as there are some. Entries behind a
/// length are -1, as some of a selection in front of it are.
void PageMaker::makeTable() {
  Random random(options.seed, names.table);
  allocate(*table);
  int64_t pages = keys->argument.shape[0], next = 0;
  std::vector<int64_t> order(pages);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = pages - 1; i > 0; --i)
    std::swap(order[i], order[random.integer(i)]);
  int64_t entries =
      table->argument.shape[0] * (counts ? 1 : table->argument.shape[1]);
  for (int64_t entry = 0; entry < entries; ++entry)
    write(*table, entry, -1);
  for (int64_t sequence = 0; sequence < sequences && pages > 0; ++sequence) {
    int64_t first = getEntries(sequence).first;
    int64_t used = llvm::divideCeil(getLength(sequence), pageSize);
    for (int64_t entry = 0; entry < used; ++entry, ++next) {
      if (isSelection && random.integer(kAbsentShare - 1) == 0)
        continue;
      write(*table, first + entry,
            next < pages ? order[next] : random.integer(pages - 1));
    }
  }
}

void PageMaker::poison(HarnessTensor &tensor) const {
  const TensorArgument &argument = tensor.argument;
  int64_t rows = argument.shape[2];
  // Rows of each page, or of each batch, that some sequence owns.
  std::vector<int64_t> owned(argument.shape[0], 0);
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    int64_t length = getLength(sequence);
    if (!table) {
      owned[sequence] = length;
      continue;
    }
    int64_t first = getEntries(sequence).first;
    for (int64_t key = 0; key < length; key += rows) {
      int64_t page = read(*table, first + key / rows);
      if (page >= 0 && page < argument.shape[0])
        owned[page] = std::max(owned[page], std::min(rows, length - key));
    }
  }
  unsigned width = getByteWidth(argument.dtype);
  if (table)
    tensor.absent.assign(tensor.bytes.size(), false);
  int64_t element = 0;
  int64_t perRow = argument.shape[3], perPage = argument.shape[1] * rows;
  forEachElement(argument, [&](int64_t offset) {
    int64_t row = element++ / perRow;
    int64_t page = row / perPage;
    if (row % rows < owned[page])
      return;
    encodeElement(argument.dtype, std::numeric_limits<double>::quiet_NaN(),
                  &tensor.bytes[offset]);
    if (table && owned[page] == 0)
      std::fill_n(tensor.absent.begin() + offset, width, true);
  });
}

Error PageMaker::check(const HarnessTensor &tensor, size_t rank) const {
  const TensorArgument &argument = tensor.argument;
  auto fail = [&](const Twine &expected, const Twine &got) {
    return createStringError("tensor \"" + argument.name + "\": expected " +
                             expected + ", got " + got);
  };
  if (argument.shape.size() != rank)
    return fail("rank " + Twine(rank), Twine(argument.shape.size()));
  if (argument.dtype != DType::I32)
    return fail("i32", stringifyDType(argument.dtype));
  if (tensor.access == TensorAccess::Write)
    return fail("it to be read", "one that is written");
  // With strides of zero few bytes are many elements.
  uint64_t elements = 1;
  for (int64_t extent : argument.shape)
    elements = llvm::SaturatingMultiply<uint64_t>(elements, extent);
  if (elements > kMostEntries)
    return fail("at most 2^31 elements", Twine(elements));
  return Error::success();
}

Error PageMaker::make() {
  keys = find(names.keys);
  lengths = find(names.lengths);
  counts = isOwn() ? find("page_indptr") : nullptr;
  table = find(names.table);
  packedKeys = isOwn() ? find("cu_seqlens_k") : nullptr;
  if (!keys || (!lengths && !table))
    return Error::success();
  for (const HarnessTensor *tensor : listRows())
    if (tensor && tensor->argument.shape.size() != 4)
      return createStringError(
          "tensor \"k\": expected k and v of rank 4 beside "
          "lengths or pages");
  for (const HarnessTensor *tensor : {lengths, counts, packedKeys, table})
    if (tensor)
      if (Error error = check(*tensor, tensor == table && !counts ? 2 : 1))
        return error;
  sequences = countSequences();
  for (const HarnessTensor *tensor : {packedKeys, counts})
    if (tensor && tensor->argument.shape[0] <= sequences)
      return createStringError("tensor \"" + tensor->argument.name +
                               "\": expected one more than the " +
                               Twine(sequences) + " sequences, got " +
                               Twine(tensor->argument.shape[0]));
  if (!table && keys->argument.shape[0] < sequences)
    return createStringError("tensor \"" + names.keys + "\": expected " +
                             Twine(sequences) + " batches, got " +
                             Twine(keys->argument.shape[0]));
  pageSize = keys->argument.shape[2];
  if (table && (pageSize < 1 || pageSize > kMostEntries))
    return createStringError("tensor \"k\": expected pages of 1 to 2^31 keys, "
                             "got " +
                             Twine(pageSize));
  if (isMissing(lengths))
    makeLengths();
  if (isMissing(counts))
    makeCounts();
  if (isMissing(table))
    makeTable();
  for (HarnessTensor *tensor : listRows())
    if (tensor && tensor->access == TensorAccess::Read &&
        !options.inputs.count(tensor->argument.name))
      poison(*tensor);
  return Error::success();
}
