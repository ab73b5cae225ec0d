//===- GraphCalls.cpp - Graphs by capture ---------------------------------===//

#include "Platform.h"

using namespace cuda;
using mlir::attn::device::Capture;
using mlir::attn::device::Graph;
using mlir::attn::device::OrderClock;

/// CUstreamCaptureStatus.
enum CaptureStatus { CaptureNone = 0, CaptureActive = 1 };

ATTN_API int cuStreamBeginCapture_v2(Handle stream, int) {
  return call("cuStreamBeginCapture", [&](Platform &p) -> Error {
    Expected<LoadedStream *> found = p.getStream(stream);
    if (!found)
      return found.takeError();
    if ((*found)->stream.kind == mlir::attn::device::StreamKind::Default)
      return fail(Status::CaptureUnsupported,
                  "expected a stream of the program's to capture, got the "
                  "default one");
    if (p.findCapture((*found)->stream))
      return fail(Status::InvalidValue, "expected a stream that is not "
                                        "captured, got one that is");
    p.captures.push_back(std::make_shared<Capture>((*found)->stream.actor));
    return Error::success();
  });
}
ATTN_API int cuStreamBeginCapture(Handle stream) {
  return cuStreamBeginCapture_v2(stream, 0);
}
ATTN_API int cuStreamEndCapture(Handle stream, Handle *graph) {
  return call("cuStreamEndCapture", [&](Platform &p) -> Error {
    Expected<LoadedStream *> found = p.getStream(stream);
    if (!found)
      return found.takeError();
    std::shared_ptr<Capture> capture = p.findCapture((*found)->stream);
    if (!graph || !capture)
      return fail(Status::InvalidValue, "expected a stream that is captured, "
                                        "got one that is not");
    *graph = nullptr;
    llvm::erase(p.captures, capture);
    Expected<Graph> made = capture->end((*found)->stream.actor);
    if (!made)
      return made.takeError();
    *graph = p.graphs.add({(*found)->ordinal,
                           std::make_shared<const Graph>(std::move(*made)),
                           std::make_shared<OrderClock>()});
    return Error::success();
  });
}
ATTN_API int cuStreamIsCapturing(Handle stream, int *state) {
  return call("cuStreamIsCapturing", [&](Platform &p) -> Error {
    if (Error error = checkOutput(state))
      return error;
    Expected<LoadedStream *> found = p.getStream(stream);
    if (!found)
      return found.takeError();
    *state = p.findCapture((*found)->stream) ? CaptureActive : CaptureNone;
    return Error::success();
  });
}
ATTN_API int cuThreadExchangeStreamCaptureMode(int *) {
  return call("cuThreadExchangeStreamCaptureMode",
              [](Platform &) { return Error::success(); });
}

ATTN_API int cuGraphInstantiateWithFlags(Handle *executable, Handle graph,
                                         unsigned long long) {
  return call("cuGraphInstantiate", [&](Platform &p) -> Error {
    if (Error error = checkOutput(executable))
      return error;
    Expected<LoadedGraph *> found = p.graphs.get(graph);
    if (!found)
      return found.takeError();
    *executable = p.graphs.add(
        {(*found)->ordinal, (*found)->graph, std::make_shared<OrderClock>()});
    return Error::success();
  });
}
ATTN_API int cuGraphInstantiate_v2(Handle *executable, Handle graph, Handle *,
                                   char *, size_t) {
  return cuGraphInstantiateWithFlags(executable, graph, 0);
}
ATTN_API int cuGraphLaunch(Handle executable, Handle stream) {
  return callWork("cuGraphLaunch", [&](Platform &p) -> Error {
    Expected<LoadedGraph *> found = p.graphs.get(executable);
    if (!found)
      return found.takeError();
    Expected<LoadedStream *> behind = p.getStream(stream);
    if (!behind)
      return behind.takeError();
    // The graph may be destroyed by what it runs.
    std::shared_ptr<const Graph> graph = (*found)->graph;
    std::shared_ptr<OrderClock> end = (*found)->end;
    return mlir::attn::device::launchGraph(**p.getDevice((*found)->ordinal),
                                           *graph, (*behind)->stream, *end);
  });
}
ATTN_API int cuGraphGetNodes(Handle graph, Handle *nodes, size_t *count) {
  return call("cuGraphGetNodes", [&](Platform &p) -> Error {
    if (!count || nodes)
      return fail(Status::NotSupported,
                  "expected to count the nodes of a graph, got a place for "
                  "them");
    Expected<LoadedGraph *> found = p.graphs.get(graph);
    if (!found)
      return found.takeError();
    *count = (*found)->graph->nodes.size();
    return Error::success();
  });
}
static int destroyGraph(const char *name, Handle graph) {
  return call(name, [&](Platform &p) -> Error {
    if (Error error = p.graphs.get(graph).takeError())
      return error;
    p.graphs.drop(graph);
    return Error::success();
  });
}
ATTN_API int cuGraphDestroy(Handle graph) {
  return destroyGraph("cuGraphDestroy", graph);
}
ATTN_API int cuGraphExecDestroy(Handle executable) {
  return destroyGraph("cuGraphExecDestroy", executable);
}
