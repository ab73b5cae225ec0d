//===- Reference.cpp - attention in float64 -------------------------------===//
//
// Straight from the formula, one (batch, head) pair at a time: the pair's
// operands become row-major float64, K transposed, so that both products run
// along contiguous rows. Two threads take pairs from a counter.
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Reference.h"
#include "BlockLists.h"
#include "RowMatrix.h"
#include "TensorShape.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// The rows of one sequence inside the tensors.
struct Sequence {
  /// Index along the tensors' batch dimension.
  int64_t batch;
  int64_t firstQuery, queries, firstKey, keys;
  /// Where its part of a page table begins: index along the last dimension.
  int64_t firstPage = 0;
  /// Keys beside these, which are numbered behind them.
  int64_t added = 0;
};

/// Computes the reference; one object for one call.
class Computation {
public:
  Computation(const AttentionProblem &problem, const AttentionInputs &inputs,
              ProgressMeter *progress)
      : problem(problem), inputs(inputs), progress(progress) {}

  Expected<AttentionResult> run() {
    if (Error error = check())
      return std::move(error);
    if (Error error = findSequences())
      return std::move(error);
    if (Error error = checkDescales())
      return std::move(error);
    result.shape = {inputs.q.shape[0], problem.heads, inputs.q.shape[2],
                    problem.dv};
    int64_t rows = result.shape[0] * result.shape[1] * result.shape[2];
    result.o.assign(rows * problem.dv, 0.0);
    result.lse.assign(rows, -infinity);
    result.hasStates = problem.rowState;
    result.sums.assign(problem.rowState ? rows : 0, 0);
    result.defined.assign(rows, 0);

    std::atomic<int64_t> next{0};
    int64_t pairs = int64_t(sequences.size()) * problem.heads;
    for (const Sequence &sequence : sequences)
      totalRows += sequence.queries * problem.heads;
    auto work = [&](bool isCaller) {
      for (int64_t pair = next++; pair < pairs && !isStopped(); pair = next++)
        if (isAsked(sequences[pair / problem.heads], pair % problem.heads))
          computeHead(pair / problem.heads, pair % problem.heads, isCaller);
    };
    std::future<void> helper =
        std::async(std::launch::async, [&] { work(/*isCaller=*/false); });
    work(/*isCaller=*/true);
    while (helper.wait_for(std::chrono::milliseconds(50)) !=
           std::future_status::ready)
      report();
    if (progress)
      if (Error error = progress->takeError())
        return std::move(error);
    return std::move(result);
  }

private:
  Error check();
  /// Checks that what the problem has is there.
  Error checkPresence();
  Error findSequences();
  Error findPackedSequences();
  /// Cuts the keys of each sequence to what lengths and pages say.
  Error limitKeys();
  /// Entries of the page table that belong to a sequence, and the first one.
  std::pair<int64_t, int64_t> getPages(int64_t sequence) const;
  Error checkDescales();
  Expected<std::vector<int64_t>>
  readLengths(StringRef name, const TensorView &view, int64_t limit);
  /// The first row of a sequence and head in the result.
  int64_t getRow(const Sequence &sequence, int64_t head) const {
    return (sequence.batch * problem.heads + head) * result.shape[2] +
           sequence.firstQuery;
  }
  bool isAsked(const Sequence &sequence, int64_t head) const {
    return inputs.rows.empty() ||
           llvm::is_contained(
               inputs.rows.slice(getRow(sequence, head), sequence.queries), 1);
  }
  void computeHead(int64_t sequence, int64_t head, bool isCaller);
  /// Caps a score, and changes it.
  double finishScore(double score, int64_t sequence, int64_t head,
                     int64_t query, int64_t key) const;
  /// Says whether a key of a block of some kind has no weight.
  bool isHidden(BlockKind kind, double score, int64_t sequence, int64_t head,
                int64_t query, int64_t key) const {
    if (kind == BlockKind::Partial && inputs.maskMod &&
        !inputs.maskMod(score, sequence, head, query, key))
      return true;
    return kind == BlockKind::Hidden ||
           ((problem.selected || key >= sequences[sequence].keys) &&
            isAbsent(sequence, key));
  }
  /// Returns what list `list` of a head says of each block of keys.
  std::vector<BlockKind> readBlocks(int64_t sequence, int64_t head,
                                    int64_t list) const;
  /// Does with a row of results what stands between attention and rounding.
  void finishRow(int64_t sequence, int64_t head, int64_t query,
                 double *o) const;
  /// Stores what a row has beside o.
  void setLogs(int64_t row, double max, double sum) {
    result.lse[row] = problem.rowState ? max : max + std::log(sum);
    if (problem.rowState)
      result.sums[row] = sum;
  }
  bool isStopped() const { return progress && progress->isStopped(); }
  void report() {
    if (progress)
      progress->update(totalRows ? double(doneRows) / double(totalRows) : 1);
  }
  std::vector<double> load(const TensorView &view, int64_t batch, int64_t head,
                           int64_t first, int64_t rows, bool transpose);
  /// The queries of a head of a sequence, whose rotated columns may be apart.
  std::vector<double> loadQueries(const Sequence &sequence, int64_t head);
  /// The same of the keys of a sequence: those in pages that are not in the
  /// pool are zeros.
  std::vector<double> loadKeys(const TensorView &view, int64_t sequence,
                               int64_t head, bool transpose);
  /// The page of a key of a sequence, which need not be in the pool.
  int64_t getPage(int64_t sequence, int64_t key) const;
  /// Returns that of an added key; these are counted from their first one.
  int64_t getAddedPage(int64_t sequence, int64_t key) const;
  /// Returns rows in pages, those of no page of the pool as zeros.
  std::vector<double> loadPages(const TensorView &view, int64_t head,
                                int64_t rows, bool transpose,
                                llvm::function_ref<int64_t(int64_t)> getPage);
  /// Rows of added keys.
  std::vector<double> loadAdded(const TensorView &view, int64_t sequence,
                                int64_t head);
  /// Says whether a selection, or the added keys, lack the key at a place.
  bool isAbsent(int64_t sequence, int64_t key) const {
    int64_t own = sequences[sequence].keys;
    int64_t page =
        key < own ? getPage(sequence, key) : getAddedPage(sequence, key - own);
    const TensorView &pool = key < own ? inputs.k : *inputs.addedK;
    return page < 0 || page >= pool.shape[0];
  }

  const AttentionProblem &problem;
  const AttentionInputs &inputs;
  ProgressMeter *progress;
  int64_t totalRows = 0;
  std::atomic<int64_t> doneRows{0};
  std::vector<Sequence> sequences;
  AttentionResult result;
};

} // namespace

Error Computation::checkPresence() {
  if (!inputs.kScales != !inputs.vScales)
    return createStringError("reference: expected scales of k and v, or none");
  bool hasOwnKeys = inputs.pageTable && inputs.kvLengths;
  bool lacksLengths = !inputs.cuSeqlensQ || (!inputs.cuSeqlensK && !hasOwnKeys);
  bool lacksAdded =
      inputs.addedK && (inputs.addedK->shape.size() != 4 || !inputs.addedV ||
                        !inputs.addedTable || !inputs.addedLengths);
  for (auto [isMissing, what] :
       {std::pair(problem.sinks && !inputs.sinks, "sinks"),
        {problem.initState && (!inputs.initO || !inputs.initLse),
         "a state to go on from"},
        {problem.varlen && lacksLengths, "cumulative lengths"},
        {problem.scoreMod && !inputs.scoreMod, "a score_mod"},
        {problem.selected && !inputs.pageTable, "a selection of keys"},
        {lacksAdded, "pools, a table and lengths of added keys"},
        {problem.maskMod && !inputs.maskMod, "a mask_mod"},
        {problem.outMod && !inputs.outMod, "an out_mod"}})
    if (isMissing)
      return createStringError("reference: the problem has " + Twine(what) +
                               ", which was not given");
  return Error::success();
}

Error Computation::check() {
  const TensorView &q = inputs.q, &k = inputs.k, &v = inputs.v;
  for (const TensorView *view : {&q, &k, &v})
    if (view->shape.size() != 4)
      return createStringError("reference: expected operands of rank 4, got " +
                               printShape(view->shape));
  if (Error error = checkPresence())
    return error;
  // Pools have pages in the place of the batch.
  int64_t batch = q.shape[0], queries = q.shape[2], keys = k.shape[2];
  int64_t keyBatch = inputs.pageTable ? k.shape[0] : batch;
  int64_t heads = problem.heads, kvHeads = problem.kvHeads;
  int64_t d = problem.d, dv = problem.dv;
  Error failed = Error::success();
  auto expect = [&](StringRef name, const std::optional<TensorView> &view,
                    ArrayRef<int64_t> shape) {
    if (view && !failed)
      failed = checkShape(name, view->shape, shape);
  };
  expect("q", q, {batch, heads, queries, inputs.qRope ? dv : d});
  expect("q_rope", inputs.qRope, {batch, heads, queries, d - dv});
  expect("k", k, {keyBatch, kvHeads, keys, inputs.kRope ? dv : d});
  expect("k_rope", inputs.kRope, {keyBatch, kvHeads, keys, d - dv});
  expect("v", v, {keyBatch, kvHeads, keys, dv});
  if (problem.sinks)
    expect("sinks", inputs.sinks, {heads});
  if (problem.initState) {
    expect("init_o", inputs.initO, {batch, heads, queries, dv});
    expect("init_lse", inputs.initLse, {batch, heads, queries});
  }
  for (auto [name, scales, rows] :
       {std::tuple("k_scales", &inputs.kScales, &k),
        std::tuple("v_scales", &inputs.vScales, &v)}) {
    // As many columns as the rows have groups.
    int64_t columns = rows->shape[3];
    int64_t groups =
        !*scales || (*scales)->shape.empty() ? 0 : (*scales)->shape.back();
    if (groups == 0 || columns % groups != 0)
      groups = columns;
    expect(name, *scales, {keyBatch, kvHeads, keys, groups});
  }
  if (const std::optional<TensorView> &pool = inputs.addedK) {
    int64_t pages = pool->shape[0], rows = pool->shape[2];
    expect("added_k", pool, {pages, kvHeads, rows, d});
    expect("added_v", inputs.addedV, {pages, kvHeads, rows, dv});
    ArrayRef<int64_t> table = inputs.addedTable->shape;
    expect("added_table", inputs.addedTable,
           {batch, table.empty() ? 0 : table.back()});
    expect("added_lengths", inputs.addedLengths, {batch});
  }
  if (failed)
    return failed;
  ArrayRef<int64_t> counts, indices;
  if (inputs.blockCounts)
    counts = inputs.blockCounts->shape;
  if (inputs.blockIndices)
    indices = inputs.blockIndices->shape;
  return checkBlockLists(problem, {q.shape, k.shape, counts, indices});
}

Expected<std::vector<int64_t>> Computation::readLengths(StringRef name,
                                                        const TensorView &view,
                                                        int64_t limit) {
  auto fail = [&](const Twine &problem) {
    return createStringError("reference: \"" + name + "\": " + problem);
  };
  if (view.shape.size() != 1 || view.shape[0] < 1)
    return fail("expected shape [sequences + 1], got " +
                printShape(view.shape));
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    int64_t value = int64_t(view.get({i}));
    int64_t low = lengths.empty() ? 0 : lengths.back();
    int64_t high = lengths.empty() ? 0 : limit;
    if (value < low || value > high)
      return fail("expected a value from " + Twine(low) + " to " + Twine(high) +
                  " at index " + Twine(i) + ", got " + Twine(value));
    lengths.push_back(value);
  }
  return lengths;
}

Error Computation::findSequences() {
  int64_t queries = inputs.q.shape[2], keys = inputs.k.shape[2];
  if (inputs.pageTable)
    keys = std::numeric_limits<int32_t>::max();
  if (problem.varlen) {
    if (Error error = findPackedSequences())
      return error;
  } else {
    for (int64_t batch = 0; batch < inputs.q.shape[0]; ++batch)
      sequences.push_back({batch, 0, queries, 0, keys});
  }
  return limitKeys();
}

std::pair<int64_t, int64_t> Computation::getPages(int64_t sequence) const {
  const TensorView &table = *inputs.pageTable;
  if (!inputs.pageIndptr)
    return {0, table.shape[1]};
  int64_t all = table.shape[0];
  int64_t first =
      std::clamp<int64_t>(inputs.pageIndptr->get({sequence}), 0, all);
  int64_t last =
      std::clamp<int64_t>(inputs.pageIndptr->get({sequence + 1}), first, all);
  return {first, last - first};
}

Error Computation::limitKeys() {
  int64_t count = sequences.size();
  for (auto [name, view, extent] :
       {std::tuple("kv_lengths", &inputs.kvLengths, count),
        std::tuple("page_indptr", &inputs.pageIndptr, count + 1)})
    if (*view)
      if (Error error = checkShape(name, (*view)->shape, {extent}))
        return error;
  if (inputs.pageTable) {
    ArrayRef<int64_t> shape = inputs.pageTable->shape;
    if (shape.size() != (inputs.pageIndptr ? 1 : 2) ||
        (!inputs.pageIndptr && shape[0] != count))
      return createStringError("reference: \"page_table\": expected a row for "
                               "each of " +
                               Twine(count) + " sequences, got " +
                               printShape(shape));
  }
  for (auto [index, sequence] : llvm::enumerate(sequences)) {
    if (inputs.pageTable) {
      auto [first, pages] = getPages(index);
      sequence.firstPage = first;
      sequence.keys = std::min(sequence.keys, pages * inputs.k.shape[2]);
    }
    if (inputs.kvLengths)
      sequence.keys = std::clamp<int64_t>(
          inputs.kvLengths->get({int64_t(index)}), 0, sequence.keys);
    if (inputs.addedK)
      sequence.added = std::clamp<int64_t>(
          inputs.addedLengths->get({int64_t(index)}), 0,
          inputs.addedTable->shape[1] * inputs.addedK->shape[2]);
  }
  return Error::success();
}

Error Computation::findPackedSequences() {
  int64_t queries = inputs.q.shape[2], keys = inputs.k.shape[2];
  if (inputs.pageTable)
    keys = std::numeric_limits<int32_t>::max();
  if (inputs.q.shape[0] != 1)
    return createStringError("reference: expected batch size 1 with variable "
                             "lengths, got " +
                             Twine(inputs.q.shape[0]));
  Expected<std::vector<int64_t>> q =
      readLengths("cu_seqlens_q", *inputs.cuSeqlensQ, queries);
  if (!q)
    return q.takeError();
  // Without lengths of its own each sequence has all that its pages hold.
  Expected<std::vector<int64_t>> k = std::vector<int64_t>(q->size(), 0);
  if (inputs.cuSeqlensK)
    k = readLengths("cu_seqlens_k", *inputs.cuSeqlensK, keys);
  if (!k)
    return k.takeError();
  if (q->size() != k->size())
    return createStringError("reference: expected cumulative lengths of as "
                             "many sequences, got " +
                             Twine(q->size() - 1) + " and " +
                             Twine(k->size() - 1));
  for (size_t i = 0; i + 1 < q->size(); ++i) {
    int64_t length = (*q)[i + 1] - (*q)[i];
    if (problem.maxSeqlenQ && length > problem.maxSeqlenQ)
      return createStringError(
          "reference: \"cu_seqlens_q\": expected at most " +
          Twine(problem.maxSeqlenQ) + " queries in sequence " + Twine(i) +
          ", got " + Twine(length));
    sequences.push_back({0, (*q)[i], length, (*k)[i],
                         inputs.cuSeqlensK ? (*k)[i + 1] - (*k)[i] : keys});
  }
  return Error::success();
}

Error Computation::checkDescales() {
  int64_t count = sequences.size();
  if (!inputs.kDescale != !inputs.vDescale ||
      (inputs.qDescale && !inputs.kDescale))
    return createStringError("reference: expected descales of k and v, or "
                             "none");
  for (const auto &[name, view, heads] :
       {std::tuple("q_descale", &inputs.qDescale, problem.heads),
        std::tuple("k_descale", &inputs.kDescale, problem.kvHeads),
        std::tuple("v_descale", &inputs.vDescale, problem.kvHeads)})
    if (*view)
      if (Error error = checkShape(name, (*view)->shape, {count, heads}))
        return error;
  return Error::success();
}

std::vector<double> Computation::load(const TensorView &view, int64_t batch,
                                      int64_t head, int64_t first, int64_t rows,
                                      bool transpose) {
  return makeMatrix(rows, view.shape[3], transpose,
                    [&](int64_t row, int64_t column) {
                      return view.get({batch, head, first + row, column});
                    });
}

int64_t Computation::getPage(int64_t sequence, int64_t key) const {
  int64_t entry = sequences[sequence].firstPage + key / inputs.k.shape[2];
  return int64_t(inputs.pageIndptr ? inputs.pageTable->get({entry})
                                   : inputs.pageTable->get({sequence, entry}));
}

int64_t Computation::getAddedPage(int64_t sequence, int64_t key) const {
  int64_t entry = key / inputs.addedK->shape[2];
  return int64_t(inputs.addedTable->get({sequence, entry}));
}

std::vector<double>
Computation::loadPages(const TensorView &view, int64_t head, int64_t rows,
                       bool transpose,
                       llvm::function_ref<int64_t(int64_t)> getPage) {
  std::vector<int64_t> pages(rows);
  for (int64_t row = 0; row < rows; ++row)
    pages[row] = getPage(row);
  return makeMatrix(
      rows, view.shape[3], transpose, [&](int64_t row, int64_t column) {
        int64_t page = pages[row];
        if (page < 0 || page >= view.shape[0])
          return 0.0;
        return view.get({page, head, row % view.shape[2], column});
      });
}

std::vector<double> Computation::loadKeys(const TensorView &view,
                                          int64_t sequenceIndex, int64_t head,
                                          bool transpose) {
  const Sequence &sequence = sequences[sequenceIndex];
  if (!inputs.pageTable)
    return load(view, sequence.batch, head, sequence.firstKey, sequence.keys,
                transpose);
  return loadPages(view, head, sequence.keys, transpose,
                   [&](int64_t row) { return getPage(sequenceIndex, row); });
}

std::vector<double> Computation::loadAdded(const TensorView &view,
                                           int64_t sequence, int64_t head) {
  return loadPages(view, head, sequences[sequence].added, /*transpose=*/false,
                   [&](int64_t row) { return getAddedPage(sequence, row); });
}

std::vector<double> Computation::loadQueries(const Sequence &sequence,
                                             int64_t head) {
  auto loadRows = [&](const TensorView &view) {
    return load(view, sequence.batch, head, sequence.firstQuery,
                sequence.queries, /*transpose=*/false);
  };
  std::vector<double> q = loadRows(inputs.q);
  return !inputs.qRope || sequence.queries == 0
             ? q
             : joinColumns(q, loadRows(*inputs.qRope), sequence.queries);
}

void Computation::finishRow(int64_t sequence, int64_t head, int64_t query,
                            double *o) const {
  double factor = problem.outScale > 0 ? problem.outScale : 1;
  for (int64_t column = 0; column < problem.dv; ++column) {
    if (inputs.outMod)
      o[column] = inputs.outMod(o[column], sequence, head, query, column);
    o[column] *= factor;
  }
}

double Computation::finishScore(double score, int64_t sequence, int64_t head,
                                int64_t query, int64_t key) const {
  if (problem.softcap > 0)
    score = problem.softcap * std::tanh(score / problem.softcap);
  if (inputs.scoreMod)
    score = inputs.scoreMod(score, sequence, head, query, key);
  return score;
}

std::vector<BlockKind> Computation::readBlocks(int64_t sequence, int64_t head,
                                               int64_t list) const {
  auto read = [&](const TensorView &view) {
    std::vector<int64_t> numbers;
    for (int64_t place = 0; place < view.shape[3]; ++place)
      numbers.push_back(int64_t(view.get({sequence, head, list, place})));
    return numbers;
  };
  return readBlockList(inputs.k.shape[2] / problem.blockKeys,
                       read(*inputs.blockCounts), read(*inputs.blockIndices));
}

void Computation::computeHead(int64_t sequenceIndex, int64_t head,
                              bool isCaller) {
  const Sequence &sequence = sequences[sequenceIndex];
  int64_t kvHead = head / (problem.heads / problem.kvHeads);
  int64_t queries = sequence.queries, keys = sequence.keys;
  int64_t added = sequence.added;
  int64_t d = problem.d, dv = problem.dv;
  std::vector<double> q = loadQueries(sequence, head);
  std::vector<double> kt = loadKeys(inputs.k, sequenceIndex, kvHead, true);
  std::vector<double> v = loadKeys(inputs.v, sequenceIndex, kvHead, false);
  if (inputs.kScales) {
    scaleRows(kt, loadKeys(*inputs.kScales, sequenceIndex, kvHead, true),
              inputs.k.shape[3], keys, /*isTransposed=*/true);
    scaleRows(v, loadKeys(*inputs.vScales, sequenceIndex, kvHead, false), dv,
              keys, /*isTransposed=*/false);
  }
  if (inputs.kRope)
    llvm::append_range(kt,
                       loadKeys(*inputs.kRope, sequenceIndex, kvHead, true));
  std::vector<double> addedK;
  if (added != 0) {
    addedK = loadAdded(*inputs.addedK, sequenceIndex, kvHead);
    llvm::append_range(v, loadAdded(*inputs.addedV, sequenceIndex, kvHead));
  }
  double scale = problem.scale;
  if (inputs.qDescale)
    scale *= inputs.qDescale->get({sequenceIndex, head});
  if (inputs.kDescale) {
    scale *= inputs.kDescale->get({sequenceIndex, kvHead});
    double factor = inputs.vDescale->get({sequenceIndex, kvHead});
    for (double &value : v)
      value *= factor;
  }
  double sink = problem.sinks ? inputs.sinks->get({head}) : -infinity;
  std::vector<double> scores(keys + added);
  std::vector<BlockKind> kinds;
  for (int64_t i = 0; i < queries && !isStopped(); ++i, ++doneRows) {
    if (isCaller)
      report();
    int64_t row = getRow(sequence, head) + i;
    if (!inputs.rows.empty() && !inputs.rows[row])
      continue;
    double *o = result.o.data() + row * dv;
    result.defined[row] = 1;
    llvm::scope_exit finish([&] { finishRow(sequenceIndex, head, i, o); });
    auto [begin, end] = getKeyRange(problem, queries, keys, i);
    if (inputs.blockIndices && i % problem.blockRows == 0)
      kinds = readBlocks(sequenceIndex, head, i / problem.blockRows);
    std::fill(scores.begin(), scores.end(), 0.0);
    for (int64_t column = 0; column < d; ++column) {
      double factor = q[i * d + column];
      const double *keyRow = kt.data() + column * keys;
      for (int64_t j = begin; j < end; ++j)
        scores[j] += factor * keyRow[j];
      for (int64_t j = 0; j < added; ++j)
        scores[keys + j] += factor * addedK[j * d + column];
    }
    // The mask hides none of those that are added.
    std::vector<int64_t> seen(end - begin + added);
    std::iota(seen.begin(), seen.end() - added, begin);
    std::iota(seen.end() - added, seen.end(), keys);
    double init = inputs.initLse
                      ? inputs.initLse->get(
                            {sequence.batch, head, sequence.firstQuery + i})
                      : -infinity;
    double max = std::max(sink, init);
    // Of two that take all nobody knows which takes more.
    bool isNaN = std::isnan(sink) || std::isnan(init) ||
                 (sink == infinity && init == infinity);
    for (int64_t j : seen) {
      double score = finishScore(scale * scores[j], sequenceIndex, head, i, j);
      BlockKind kind =
          kinds.empty() ? BlockKind::Partial : kinds[j / problem.blockKeys];
      if (isHidden(kind, score, sequenceIndex, head, i, j))
        score = -infinity;
      scores[j] = score;
      isNaN |= std::isnan(score);
      max = std::max(max, score);
    }
    if (isNaN) {
      std::fill_n(o, dv, std::nan(""));
      setLogs(row, std::nan(""), std::nan(""));
      continue;
    }
    // No key and no sink: O = 0 and LSE = -inf, as initialised.
    if (max == -infinity)
      continue;
    auto getInitValue = [&](int64_t column) {
      return inputs.initO->get(
          {sequence.batch, head, sequence.firstQuery + i, column});
    };
    RowLogits logits = {sink, init, getInitValue};
    double sum = addValues(scores, seen, v, logits, max, {o, size_t(dv)});
    for (int64_t column = 0; column < dv && !problem.rowState; ++column)
      o[column] /= sum;
    setLogs(row, max, sum);
  }
}

Expected<AttentionResult> sim::computeReference(const AttentionProblem &problem,
                                                const AttentionInputs &inputs,
                                                ProgressMeter *progress) {
  return Computation(problem, inputs, progress).run();
}
