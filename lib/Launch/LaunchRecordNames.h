//===- LaunchRecordNames.h - words of the launch record ---------*- C++ -*-===//
//
// The names that stand for enumerators in a launch record, used by its reader
// and its writer.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_LAUNCH_LAUNCHRECORDNAMES_H
#define ATTN_LIB_LAUNCH_LAUNCHRECORDNAMES_H

#include "DTypeNames.h"
#include "EnumNames.h"
#include "attn/Launch/LaunchRecord.h"

namespace mlir::attn {

inline constexpr NameEntry<DType> indexTypeNames[] = {{DType::I32, "i32"},
                                                      {DType::I64, "i64"}};

inline constexpr NameEntry<TensorAccess> accessNames[] = {
    {TensorAccess::Read, "read"},
    {TensorAccess::Write, "write"},
    {TensorAccess::Update, "update"}};

inline constexpr NameEntry<ArgKind> argKindNamesOfVersion1[] = {
    {ArgKind::Pointer, "pointer"},      {ArgKind::Size, "size"},
    {ArgKind::Stride, "stride"},        {ArgKind::Scalar, "scalar"},
    {ArgKind::TensorMap, "tensor_map"}, {ArgKind::Workspace, "workspace"}};

inline constexpr NameEntry<ArgKind> argKindNames[] = {
    {ArgKind::Pointer, "pointer"},      {ArgKind::Size, "size"},
    {ArgKind::Stride, "stride"},        {ArgKind::Scalar, "scalar"},
    {ArgKind::TensorMap, "tensor_map"}, {ArgKind::Workspace, "workspace"},
    {ArgKind::Expression, "expression"}};

inline constexpr NameEntry<WorkspaceAccess> workspaceAccessNames[] = {
    {WorkspaceAccess::Update, "update"},
    {WorkspaceAccess::Read, "read"},
    {WorkspaceAccess::Write, "write"}};

inline constexpr NameEntry<TensorMapSwizzle> swizzleNames[] = {
    {TensorMapSwizzle::None, "none"},
    {TensorMapSwizzle::B32, "32B"},
    {TensorMapSwizzle::B64, "64B"},
    {TensorMapSwizzle::B128, "128B"}};

inline constexpr NameEntry<TensorMapView> mapViewNames[] = {
    {TensorMapView::Whole, "whole"},
    {TensorMapView::Transposed, "transposed"},
    {TensorMapView::Quads, "quads"},
    {TensorMapView::Packed, "packed"},
    {TensorMapView::Bounded, "bounded"},
    {TensorMapView::ByRow, "by_row"},
    {TensorMapView::PackedByRow, "packed_by_row"},
    {TensorMapView::Rows, "rows"}};

inline constexpr NameEntry<SyncVerdict::Kind> verdictNames[] = {
    {SyncVerdict::Kind::Proved, "proved"},
    {SyncVerdict::Kind::Bounded, "bounded"},
    {SyncVerdict::Kind::Unchecked, "unchecked"}};

enum class ProofProfile { Isa, Hw };
inline constexpr NameEntry<ProofProfile> proofProfileNames[] = {
    {ProofProfile::Isa, "isa"}, {ProofProfile::Hw, "hw"}};

} // namespace mlir::attn

#endif // ATTN_LIB_LAUNCH_LAUNCHRECORDNAMES_H
