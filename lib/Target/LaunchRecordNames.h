//===- LaunchRecordNames.h - words of the launch record ---------*- C++ -*-===//
//
// The names that stand for enumerators in a launch record, used by its reader
// and its writer.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_TARGET_LAUNCHRECORDNAMES_H
#define ATTN_LIB_TARGET_LAUNCHRECORDNAMES_H

#include "attn/Target/LaunchRecord.h"
#include <utility>

namespace mlir::attn {

template <typename T>
using NameEntry = std::pair<T, llvm::StringLiteral>;

inline constexpr NameEntry<DType> dtypeNames[] = {{DType::F16, "f16"},
                                                  {DType::BF16, "bf16"},
                                                  {DType::F32, "f32"},
                                                  {DType::F64, "f64"},
                                                  {DType::F8E4M3FN, "f8E4M3FN"},
                                                  {DType::F8E5M2, "f8E5M2"},
                                                  {DType::I8, "i8"},
                                                  {DType::I32, "i32"},
                                                  {DType::I64, "i64"}};

inline constexpr NameEntry<DType> indexTypeNames[] = {{DType::I32, "i32"},
                                                      {DType::I64, "i64"}};

inline constexpr NameEntry<TensorAccess> accessNames[] = {
    {TensorAccess::Read, "read"}, {TensorAccess::Write, "write"}};

inline constexpr NameEntry<ArgKind> argKindNames[] = {
    {ArgKind::Pointer, "pointer"},      {ArgKind::Size, "size"},
    {ArgKind::Stride, "stride"},        {ArgKind::Scalar, "scalar"},
    {ArgKind::TensorMap, "tensor_map"}, {ArgKind::Workspace, "workspace"}};

inline constexpr NameEntry<TensorMapSwizzle> swizzleNames[] = {
    {TensorMapSwizzle::None, "none"},
    {TensorMapSwizzle::B32, "32B"},
    {TensorMapSwizzle::B64, "64B"},
    {TensorMapSwizzle::B128, "128B"}};

inline constexpr NameEntry<TensorMapView> mapViewNames[] = {
    {TensorMapView::Whole, "whole"},
    {TensorMapView::Transposed, "transposed"},
    {TensorMapView::Quads, "quads"},
    {TensorMapView::Packed, "packed"}};

inline constexpr NameEntry<LaunchMaskKind> maskKindNames[] = {
    {LaunchMaskKind::None, "none"},
    {LaunchMaskKind::Causal, "causal"},
    {LaunchMaskKind::Window, "window"}};

inline constexpr NameEntry<LaunchMaskAlign> maskAlignNames[] = {
    {LaunchMaskAlign::TopLeft, "top_left"},
    {LaunchMaskAlign::BottomRight, "bottom_right"}};

/// The name of `value`; every enumerator has one.
template <typename T, size_t N>
llvm::StringRef getName(const NameEntry<T> (&names)[N], T value) {
  for (const NameEntry<T> &entry : names)
    if (entry.first == value)
      return entry.second;
  return "";
}

/// The enumerator called `name`.
template <typename T>
std::optional<T> findByName(llvm::ArrayRef<NameEntry<T>> names,
                            llvm::StringRef name) {
  for (const NameEntry<T> &entry : names)
    if (entry.second == name)
      return entry.first;
  return std::nullopt;
}

} // namespace mlir::attn

#endif // ATTN_LIB_TARGET_LAUNCHRECORDNAMES_H
