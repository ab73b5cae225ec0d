//===- TmaTest.cpp - Tensor copies through mbarriers, executed ------------===//

#include "KernelRunner.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;

namespace {

struct Copy {
  DType dtype;
  int64_t rows, columns;
  unsigned swizzle;
};

std::string nameCopy(const ::testing::TestParamInfo<Copy> &info) {
  return llvm::formatv("{0}_{1}x{2}_swizzle{3}",
                       stringifyDType(info.param.dtype), info.param.rows,
                       info.param.columns, info.param.swizzle);
}

class TmaTest : public ::testing::TestWithParam<Copy> {
protected:
  /// The kernel's text with the placeholders of a copy filled in.
  std::string fill(std::string body) {
    const Copy &copy = GetParam();
    int64_t bytes = getByteWidth(copy.dtype);
    int64_t width = copy.swizzle ? copy.swizzle / bytes : copy.columns;
    std::string type = stringifyDType(copy.dtype).str();
    box = {1, 1, copy.rows, width};
    int64_t memory = (copy.rows + 7) / 8 * 8 * copy.columns * bytes;
    sharedBytes = memory + 16;
    auto set = [&](const std::string &key, const std::string &value) {
      for (size_t at; (at = body.find(key)) != std::string::npos;)
        body.replace(at, key.size(), value);
    };
    set("$MAP", llvm::formatv("!attn.tensor_map<1x1x{0}x{1}x{2}, swizzle = "
                              "{3}>",
                              copy.rows, width, type, copy.swizzle));
    set("$BUFFER", llvm::formatv("!attn.buffer<{0}x{1}x{2}, #attn.auto, "
                                 "shared>",
                                 copy.rows, copy.columns, type));
    set("$TILE", llvm::formatv("tensor<{0}x{1}x{2}, #attn.mma<warps = [4, 1]>>",
                               copy.rows, copy.columns, type));
    set("$GLOBAL",
        llvm::formatv("!attn.global<?x{0}x{1}>", copy.columns, type));
    set("$BYTES", std::to_string(copy.rows * copy.columns * bytes));
    set("$BARRIERS", std::to_string(memory));
    set("$PLANE", std::to_string(kSequence * copy.columns));
    set("$COLUMNS", std::to_string(copy.columns));
    set("$SEQUENCE", std::to_string(kSequence));
    return "gpu.module @kernels [#attn.target<chip = \"sm_90a\">] {" + body +
           "}";
  }

  static constexpr int64_t kSequence = 100;
  llvm::SmallVector<int64_t> box;
  unsigned sharedBytes = 0;
};

/// A box of head 1 of a tensor of 2 x 3 heads, from row `row`, to registers.
/// Rows from the end of the sequence on are zeros.
TEST_P(TmaTest, Load) {
  std::string text = fill(R"(
gpu.func @load(%map: $MAP, %out: !llvm.ptr<1>, %row: i32, %rows: i32) kernel
    attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %buffer = attn.alloc {offset = 0 : i64} : $BUFFER
  %full = attn.mbarrier.alloc {offset = $BARRIERS : i64} : !attn.mbarriers<2>
  attn.elect {
    attn.tma.prefetch %map : $MAP
    attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
    attn.mbarrier.fence_init
  }
  gpu.barrier
  attn.elect {
    attn.mbarrier.expect_tx %full[%one] {bytes = $BYTES} : !attn.mbarriers<2>
    attn.tma.load %map[%one, %one, %row, %zero], %buffer barrier %full[%one] : !attn.mbarriers<2> : $MAP, $BUFFER
  }
  attn.mbarrier.wait %full[%one] parity %zero : !attn.mbarriers<2>
  %tile = attn.local_load %buffer : $BUFFER -> $TILE
  %offset = arith.constant 0 : i64
  %stride = arith.constant $COLUMNS : i64
  %view = attn.global_view %out[%offset] rows %rows stride %stride : $GLOBAL
  attn.global_store %tile, %view[%zero] : $TILE, $GLOBAL
  gpu.return
})");
  const Copy &copy = GetParam();
  // Inside, across the end of the sequence, and past it.
  for (int32_t row : {17, int32_t(kSequence - copy.rows / 2), 120}) {
    HostTensor in =
        HostTensor::random(copy.dtype, {2, 3, kSequence, copy.columns});
    HostTensor out = HostTensor::output(copy.dtype, {copy.rows, copy.columns});
    KernelRunner kernel(text);
    if (!kernel)
      return;
    kernel.passMap(in, box, copy.swizzle);
    kernel.pass(out);
    kernel.pass(row);
    kernel.pass(copy.rows);
    kernel.run(128, sharedBytes);
    for (int64_t i = 0; i < copy.rows; ++i)
      for (int64_t j = 0; j < copy.columns; ++j) {
        int64_t source = ((1 * 3 + 1) * kSequence + row + i) * copy.columns + j;
        double expected = row + i < kSequence ? in.at(source) : 0;
        ASSERT_EQ(out.at(i * copy.columns + j), expected)
            << "row " << row << " + " << i << ", column " << j;
      }
  }
}

/// The reverse: rows past the end of the sequence are not written.
TEST_P(TmaTest, Store) {
  std::string text = fill(R"(
gpu.func @store(%map: $MAP, %in: !llvm.ptr<1>, %row: i32, %rows: i32) kernel
    attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %buffer = attn.alloc {offset = 0 : i64} : $BUFFER
  %offset = arith.constant 0 : i64
  %stride = arith.constant $COLUMNS : i64
  %view = attn.global_view %in[%offset] rows %rows stride %stride : $GLOBAL
  %tile = attn.global_load %view[%zero] : $GLOBAL -> $TILE
  attn.local_store %tile, %buffer : $TILE, $BUFFER
  attn.fence.proxy_async
  gpu.barrier
  attn.elect {
    attn.tma.store %buffer, %map[%zero, %one, %row, %zero] : $BUFFER, $MAP
    attn.tma.commit
    attn.tma.wait {pending = 0, read}
  }
  gpu.return
})");
  const Copy &copy = GetParam();
  for (int32_t row : {17, int32_t(kSequence - copy.rows / 2)}) {
    HostTensor in = HostTensor::random(copy.dtype, {copy.rows, copy.columns});
    HostTensor out =
        HostTensor::output(copy.dtype, {1, 2, kSequence, copy.columns});
    KernelRunner kernel(text);
    if (!kernel)
      return;
    // Fragments of 16 bits are stored as matrices.
    EXPECT_EQ(kernel.ptx.find("stmatrix") != std::string::npos,
              getByteWidth(copy.dtype) == 2);
    kernel.passMap(out, box, copy.swizzle);
    kernel.pass(in);
    kernel.pass(row);
    kernel.pass(copy.rows);
    kernel.run(128, sharedBytes, /*partial=*/true);
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t i = 0; i < kSequence; ++i)
        for (int64_t j = 0; j < copy.columns; ++j) {
          int64_t index = (head * kSequence + i) * copy.columns + j;
          bool inside = head == 1 && i >= row && i < row + copy.rows;
          uint8_t untouched[8];
          std::fill_n(untouched, 8, 0xcb);
          double expected = inside ? in.at((i - row) * copy.columns + j)
                                   : decodeElement(copy.dtype, untouched);
          ASSERT_EQ(out.at(index), expected)
              << "head " << head << ", row " << i << ", column " << j;
        }
  }
}

INSTANTIATE_TEST_SUITE_P(Swizzles, TmaTest,
                         ::testing::Values(Copy{DType::F16, 64, 128, 128},
                                           Copy{DType::F16, 64, 64, 128},
                                           Copy{DType::BF16, 64, 96, 64},
                                           Copy{DType::F16, 64, 80, 32},
                                           Copy{DType::F16, 64, 40, 0},
                                           Copy{DType::F16, 128, 256, 128},
                                           Copy{DType::F32, 64, 32, 128},
                                           Copy{DType::F8E4M3FN, 64, 128, 128}),
                         nameCopy);

} // namespace
