//===- LinkCalls.cpp - Linking, as far as it is handing PTX on ------------===//
//
// Compilers that make PTX link it before they load it: Numba and CuPy do where
// they find no linker of their own. A link of one input hands that on.
//
//===----------------------------------------------------------------------===//

#include "Platform.h"

using namespace cuda;
using llvm::formatv;

namespace {
/// The input of a link.
struct Link {
  std::string ptx;
};
} // namespace

/// Under the platform's lock, as its own tables.
static HandleTable<Link> links(7, "link");

/// CUjitInputType of machine code, text and bundles of both.
enum LinkInput { InputCubin = 0, InputPtx = 1, InputFatbin = 2 };

ATTN_API int cuLinkCreate_v2(unsigned, void *, void **, Handle *link) {
  return call("cuLinkCreate", [&](Platform &) -> Error {
    if (Error error = checkOutput(link))
      return error;
    *link = links.add({});
    return Error::success();
  });
}
ATTN_API int cuLinkAddData_v2(Handle link, int kind, const void *data,
                              size_t bytes, const char *name, unsigned, void *,
                              void **) {
  return call("cuLinkAddData", [&](Platform &) -> Error {
    Expected<Link *> found = links.get(link);
    if (!found)
      return found.takeError();
    if (Error error = checkOutput(data))
      return error;
    if (kind < InputCubin || kind > InputFatbin)
      return fail(
          Status::NotSupported,
          formatv("expected PTX to link, got an input of kind {0}", kind));
    if (!(*found)->ptx.empty())
      return fail(Status::NotSupported,
                  formatv("expected one input to link, got '{0}' beside it",
                          name ? name : ""));
    return mlir::attn::device::extractPTX(data, bytes).moveInto((*found)->ptx);
  });
}
ATTN_API int cuLinkComplete(Handle link, void **image, size_t *bytes) {
  return call("cuLinkComplete", [&](Platform &) -> Error {
    if (!image || !bytes)
      return checkOutput(nullptr);
    Expected<Link *> found = links.get(link);
    if (!found)
      return found.takeError();
    if ((*found)->ptx.empty())
      return fail(Status::InvalidValue, "expected an input to link, got none");
    *image = (*found)->ptx.data();
    // Loaders look for the zero at the end.
    *bytes = (*found)->ptx.size() + 1;
    return Error::success();
  });
}
ATTN_API int cuLinkDestroy(Handle link) {
  return call("cuLinkDestroy", [&](Platform &) -> Error {
    if (Error error = links.get(link).takeError())
      return error;
    links.drop(link);
    return Error::success();
  });
}
