//===- TensorMapTest.cpp - Tensor maps as a driver makes them -------------===//
//
// The bytes are what cuTensorMapEncodeTiled of driver 13.0 and
// tensormap.replace on an H200 gave.
//
//===----------------------------------------------------------------------===//

#include "attn/Simulator/Async/TensorMap.h"
#include "../TestKernel.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

struct MapCase {
  const char *name;
  TensorMapInfo info;
  const char *bytes; ///< the first 76 in hexadecimal; the rest are zero
};

const MapCase mapCases[] = {
    {"base",
     {0x7f1234567000,
      TensorMapElement::F16,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000200300000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000001000000"
     "000000010000000"},
    {"rank1",
     {0x7f1234567000,
      TensorMapElement::F16,
      1,
      {64, 1, 1, 1, 1},
      {0, 0, 0, 0, 0},
      {64, 1, 1, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000000300000000000000000000000000000000000000000000"
     "3f000000000000000000000000000000000000000000003f0000000000000000800000000"
     "000000010000000"},
    {"rank2",
     {0x7f1234567000,
      TensorMapElement::F16,
      2,
      {64, 48, 1, 1, 1},
      {0, 4096, 0, 0, 0},
      {64, 8, 1, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000100300000001000000000000000000000000000000000000"
     "3f0000002f0000000000000000000000000000000000003f0700000000000000000400000"
     "000000010000000"},
    {"rank5",
     {0x7f1234567000,
      TensorMapElement::F16,
      5,
      {64, 48, 40, 3, 4},
      {0, 4096, 262144, 16777216, 1073741824},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000400300000001000000400000000010000000000400000000"
     "3f0000002f0000002700000002000000030000000000003f0703000000000000001000000"
     "000000010000000"},
    {"swizzle3",
     {0x7f1234567000,
      TensorMapElement::F16,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      128,
      false},
     "00705634127f0000206300000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000001000000"
     "000000000040000"},
    {"oob",
     {0x7f1234567000,
      TensorMapElement::F16,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      true},
     "00705634127f0000208300000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000001000000"
     "000000010000000"},
    {"es",
     {0x7f1234567000,
      TensorMapElement::F16,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 2, 3, 1, 1},
      0,
      false},
     "00705634127f0000200300000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000008800003f0703000000000000000200000"
     "000000010000000"},
    {"es5",
     {0x7f1234567000,
      TensorMapElement::F16,
      5,
      {64, 48, 40, 3, 4},
      {0, 4096, 262144, 16777216, 1073741824},
      {64, 8, 4, 1, 1},
      {1, 5, 6, 7, 8},
      0,
      false},
     "00705634127f0000400300000001000000400000000010000000000400000000"
     "3f0000002f000000270000000200000003000000607d003f0703000000000000000000000"
     "000000010000000"},
    {"dims",
     {0x7f1234567000,
      TensorMapElement::F16,
      3,
      {1, 4294967295ull, 4294967296ull, 1, 1},
      {0, 4096, 262144, 0, 0},
      {8, 1, 1, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000200300000001000000400000000000000000000000000000"
     "00000000feffffffffffffff0000000000000000000000070000000000000000100000000"
     "000000010000000"},
    {"strides",
     {0x7f1234567000,
      TensorMapElement::F16,
      5,
      {8, 8, 8, 8, 8},
      {0, 16, 549755813904ull, 103079215152ull, 1099511627760ull},
      {8, 1, 1, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f000040030000010000000100000003000080ffffffff80f10000"
     "0700000007000000070000000700000007000000000000070000000000000000100000000"
     "000000010000000"},
    {"dtype0",
     {0x7f1234567000,
      TensorMapElement::U8,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000200000000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000000800000"
     "000000010000000"},
    {"dtype3",
     {0x7f1234567000,
      TensorMapElement::S32,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000a00100000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000002000000"
     "000000010000000"},
    {"dtype5",
     {0x7f1234567000,
      TensorMapElement::S64,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000a00200000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000004000000"
     "000000010000000"},
    {"dtype8",
     {0x7f1234567000,
      TensorMapElement::F64,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000a00400000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000004000000"
     "000000010000000"},
    {"dtype10",
     {0x7f1234567000,
      TensorMapElement::F32Ftz,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000200400000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000002000000"
     "000000010000000"},
    {"dtype11",
     {0x7f1234567000,
      TensorMapElement::TF32,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000a00301000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000002000000"
     "000000010000000"},
    {"dtype12",
     {0x7f1234567000,
      TensorMapElement::TF32Ftz,
      3,
      {64, 48, 40, 1, 1},
      {0, 4096, 262144, 0, 0},
      {64, 8, 4, 1, 1},
      {1, 1, 1, 1, 1},
      0,
      false},
     "00705634127f0000200401000001000000400000000000000000000000000000"
     "3f0000002f0000002700000000000000000000000000003f0703000000000000002000000"
     "000000010000000"},
};

std::string hexOf(llvm::ArrayRef<uint8_t> bytes) {
  return llvm::toHex(bytes, /*LowerCase=*/true);
}

std::array<uint8_t, 128> baseMap() {
  return llvm::cantFail(encodeTensorMap(mapCases[0].info));
}

struct ReplaceCase {
  TensorMapField field;
  unsigned ordinal;
  uint64_t value;
  std::vector<std::pair<unsigned, uint8_t>> changed; ///< byte and new value
};

const ReplaceCase replaceCases[] = {
    {TensorMapField::GlobalAddress,
     0,
     0x123456789abcd0,
     {{0, 0xd0},
      {1, 0xbc},
      {2, 0x9a},
      {3, 0x78},
      {4, 0x56},
      {5, 0x34},
      {6, 0x12}}},
    {TensorMapField::Rank, 0, 4, {{8, 0x40}}},
    {TensorMapField::BoxDim, 0, 33, {{55, 0x20}}},
    {TensorMapField::BoxDim, 4, 77, {{59, 0x4c}}},
    {TensorMapField::GlobalDim,
     0,
     0x1234567,
     {{32, 0x66}, {33, 0x45}, {34, 0x23}, {35, 0x1}}},
    {TensorMapField::GlobalDim,
     4,
     0x1234568,
     {{48, 0x67}, {49, 0x45}, {50, 0x23}, {51, 0x1}}},
    {TensorMapField::GlobalStride,
     0,
     0x123456780,
     {{12, 0x78}, {13, 0x56}, {14, 0x34}, {15, 0x12}}},
    {TensorMapField::GlobalStride,
     3,
     0xab23456780,
     {{24, 0x78}, {25, 0x56}, {26, 0x34}, {27, 0xb2}, {29, 0xa0}}},
    {TensorMapField::ElementStride, 0, 3, {{52, 0x2}}},
    {TensorMapField::ElementStride, 4, 7, {{53, 0x60}}},
    {TensorMapField::ElementType, 0, 0, {{9, 0x0}}},
    {TensorMapField::ElementType, 0, 12, {{9, 0x4}, {10, 0x1}}},
    {TensorMapField::Interleave, 0, 1, {{9, 0xb}}},
    {TensorMapField::Interleave, 0, 2, {{9, 0x13}}},
    {TensorMapField::SwizzleMode, 0, 1, {{9, 0x23}}},
    {TensorMapField::SwizzleMode, 0, 2, {{9, 0x43}}},
    {TensorMapField::FillMode, 0, 1, {{9, 0x83}}},
    {TensorMapField::BoxDim, 1, 256, {{56, 0xff}}},
    {TensorMapField::GlobalStride,
     1,
     0xab23456780,
     {{16, 0x78}, {17, 0x56}, {18, 0x34}, {19, 0xb2}, {28, 0xa0}}},
    {TensorMapField::Rank, 0, 0, {{8, 0x0}}},
};

} // namespace

TEST(DriverMaps, EncodeAsTheDriver) {
  for (const MapCase &c : mapCases) {
    auto bytes = encodeTensorMap(c.info);
    ASSERT_TRUE(bool(bytes)) << c.name << llvm::toString(bytes.takeError());
    EXPECT_EQ(hexOf(llvm::ArrayRef(*bytes).take_front(76)), c.bytes) << c.name;
  }
}

TEST(DriverMaps, DecodeWhatTheDriverMade) {
  for (const MapCase &c : mapCases) {
    std::string raw;
    ASSERT_TRUE(llvm::tryGetFromHex(c.bytes, raw));
    raw.resize(128);
    auto info = decodeTensorMap(
        llvm::ArrayRef(reinterpret_cast<const uint8_t *>(raw.data()), 128));
    ASSERT_TRUE(bool(info)) << c.name << llvm::toString(info.takeError());
    EXPECT_EQ(info->address, c.info.address) << c.name;
    EXPECT_EQ(info->element, c.info.element) << c.name;
    EXPECT_EQ(info->rank, c.info.rank) << c.name;
    EXPECT_EQ(info->dims, c.info.dims) << c.name;
    EXPECT_EQ(info->strides, c.info.strides) << c.name;
    EXPECT_EQ(info->box, c.info.box) << c.name;
    EXPECT_EQ(info->elementStrides, c.info.elementStrides) << c.name;
    EXPECT_EQ(info->swizzleBytes, c.info.swizzleBytes) << c.name;
    EXPECT_EQ(info->nanFill, c.info.nanFill) << c.name;
  }
}

TEST(DriverMaps, OtherFlags) {
  auto bytes = baseMap();
  bytes[10] |= 6; // L2 promotion of 256 bytes
  EXPECT_TRUE(bool(decodeTensorMap(bytes)));
  bytes[9] |= 8;
  EXPECT_EQ(llvm::toString(decodeTensorMap(bytes).takeError()),
            "tensor map: expected a layout without interleaving");
  bytes = baseMap();
  bytes[8] |= 0x80;
  bytes[9] = 5; // type 11
  EXPECT_EQ(llvm::toString(decodeTensorMap(bytes).takeError()),
            "tensor map: expected a known element type, got 11");
}

TEST(DriverMaps, ReplaceAsHardware) {
  for (const ReplaceCase &c : replaceCases) {
    auto bytes = baseMap(), want = bytes;
    for (auto [at, value] : c.changed)
      want[at] = value;
    EXPECT_FALSE(
        bool(replaceTensorMapField(bytes, c.field, c.ordinal, c.value)));
    EXPECT_EQ(hexOf(bytes), hexOf(want)) << int(c.field) << " " << c.ordinal;
  }
  auto bytes = baseMap();
  EXPECT_EQ(llvm::toString(
                replaceTensorMapField(bytes, TensorMapField::BoxDim, 0, 257)),
            "tensor map: expected a field value between 1 and 256, got 257");
  EXPECT_EQ(llvm::toString(replaceTensorMapField(
                bytes, TensorMapField::GlobalStride, 4, 16)),
            "tensor map: expected a dimension below 4, got 4");
}

TEST(DriverMaps, BoxesHaveAtMost256Elements) {
  TensorMapInfo info;
  info.address = 0x1000;
  info.element = TensorMapElement::U8;
  info.rank = 2;
  info.dims = {512, 512, 1, 1, 1};
  info.strides[1] = 512;
  info.box = {256, 256, 1, 1, 1};
  EXPECT_TRUE(bool(encodeTensorMap(info)));
  info.box = {16, 257, 1, 1, 1};
  EXPECT_EQ(llvm::toString(encodeTensorMap(info).takeError()),
            "tensor map: expected a box between 1 and 256 in dimension 1, got "
            "257");
}

TEST(DriverMaps, PaddedElements) {
  // 128 elements of 4 bits take 64 bytes of global and 128 of shared memory.
  TensorMapInfo info;
  info.address = 0x1000;
  info.element = TensorMapElement::B4x16P64;
  info.rank = 2;
  info.dims = {256, 4, 1, 1, 1};
  info.strides[1] = 128;
  info.box = {128, 2, 1, 1, 1};
  EXPECT_TRUE(bool(encodeTensorMap(info)));
  EXPECT_EQ(getSharedBytes(info.element, 128), 128u);
  info.box[0] = 64;
  EXPECT_EQ(llvm::toString(encodeTensorMap(info).takeError()),
            "tensor map: expected an inner box of 128 padded elements in rows "
            "of a multiple of 128, got 64 in 256");
  info.box[0] = 128;
  info.elementStrides[1] = 9;
  EXPECT_EQ(llvm::toString(encodeTensorMap(info).takeError()),
            "tensor map: expected an element stride between 1 and 8 in "
            "dimension 1, got 9");
}

/// Builds a map of 4x8 words in shared memory, publishes it to the last 128
/// bytes of `out`, and loads a box through it. `rank` counts from zero.
static std::string builtMap(const char *rank) {
  return std::string(R"(
mov.u32 %r1, smem;
shl.b32 %r2, %r0, 2;
add.u32 %r3, %r1, %r2;
mov.u32 %r4, 0;
st.shared.b32 [%r3], %r4;
bar.warp.sync -1;
setp.eq.u32 %p0, %r0, 0;
@!%p0 bra F;
tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %d0;
tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], )") +
         rank + R"(;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, 4;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 1, 2;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 0, 8;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 1, 4;
mov.u64 %d2, 32;
tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 0, %d2;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 0, 1;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 1, 2;
tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 2;
tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 0;
tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 0;
tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 0;
mbarrier.init.shared::cta.b64 [%r1+256], 1;
F:
bar.warp.sync -1;
add.u64 %d3, %d1, 128;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d3], [%r1], 128;
@!%p0 bra E;
fence.proxy.tensormap::generic.acquire.gpu [%d3], 128;
mbarrier.arrive.expect_tx.shared::cta.b64 %d4, [%r1+256], 16;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1+512], [%d3, {4, 1}], [%r1+256];
W:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1+256], 0;
@!%p1 bra W;
ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r1+512];
st.global.v4.b32 [%d1], {%r4, %r5, %r6, %r7};
E:
)";
}

TEST(TensorMapReplace, BuildsAMapOnTheDevice) {
  std::vector<uint32_t> in(32);
  for (unsigned i = 0; i < 32; ++i)
    in[i] = 100 + i;
  // Of two rows every second is taken: one row from (4, 1).
  Outcome r = runBody(builtMap("1"), bytesOf(in), 256, 32, 1024);
  EXPECT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(r.at<uint32_t>(i), 100 + 8 + 4 + i);
}

TEST(TensorMapReplace, BadTwins) {
  std::vector<uint32_t> in(32, 1);
  Outcome r = runBody(builtMap("0"), bytesOf(in), 256, 32, 1024);
  EXPECT_EQ(r.report.countErrors(FindingKind::InvalidOperation), 1u)
      << r.text();
  EXPECT_NE(r.text().find("expected a tensor map of rank 2, got 1"),
            std::string::npos);
  r = runBody("mov.u32 %r1, smem;\n"
              "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 5;\n",
              bytesOf(in), 256, 1, 1024);
  EXPECT_NE(r.text().find("expected a field value between 0 and 4, got 5"),
            std::string::npos)
      << r.text();
  for (const char *wrong :
       {"tensormap.replace.tile.ranks.shared::cta.b1024.b32 [%r1], 5;",
        "tensormap.replace.tile.rank.shared::cta.b1024.b64 [%r1], %d2;",
        "tensormap.make.tile.rank.b1024.b32 [%r1], 5;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release."
        "gpu.sync.aligned [%d1], [%r1], 64;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release."
        "sync.aligned [%d1], [%r1], 128;"})
    EXPECT_FALSE(runBody(wrong, bytesOf(in), 256).error.empty()) << wrong;
}
