//===- Graph.cpp - Work that is recorded once and launched often ----------===//

#include "attn/Device/Graph.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir::attn::device;
using llvm::Error;
using llvm::Expected;

Error mlir::attn::device::launchGraph(Device &device, const Graph &graph,
                                      Stream &stream, OrderClock &end) {
  StreamOrder &order = device.getOrder();
  OrderClock before = order.record(stream.actor);
  before.join(end);
  std::vector<OrderClock> ends(graph.nodes.size());
  std::vector<Stream> branches;
  auto drop = llvm::scope_exit([&] {
    for (const Stream &branch : branches)
      device.dropStream(branch);
  });
  for (auto [index, node] : llvm::enumerate(graph.nodes)) {
    Stream &branch = branches.emplace_back(device.makeBranch(before));
    for (unsigned earlier : node.after)
      order.wait(branch.actor, ends[earlier]);
    if (node.previous) {
      branch.lastTurn = branches[*node.previous].lastTurn;
      branch.lastLaunch = branches[*node.previous].lastLaunch;
    }
    if (Error error = node.work(branch))
      return error;
    ends[index] = order.record(branch.actor);
  }
  for (const OrderClock &each : ends) {
    order.wait(stream.actor, each);
    end.join(each);
  }
  return Error::success();
}

void Capture::add(uint32_t stream, Work work) {
  Tips &last = tips[stream];
  std::optional<unsigned> previous;
  if (auto own = added.find(stream);
      own != added.end() && last == Tips{own->second})
    previous = own->second;
  unsigned index = graph.nodes.size();
  graph.nodes.push_back({std::move(work), last, previous});
  last = {index};
  added[stream] = index;
}

void Capture::wait(uint32_t stream, const Tips &event) {
  Tips &last = tips[stream];
  for (unsigned node : event)
    if (!llvm::is_contained(last, node))
      last.push_back(node);
}

Expected<Graph> Capture::end(uint32_t stream) {
  if (stream != origin)
    return fail(Status::CaptureUnjoined,
                "expected a capture to end where it began, got another stream");
  // Find all that comes before the origin's last nodes.
  llvm::BitVector isJoined(graph.nodes.size());
  for (unsigned node : tips[origin])
    isJoined.set(node);
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (isJoined[i])
      for (unsigned earlier : graph.nodes[i].after)
        isJoined.set(earlier);
  if (!isJoined.all())
    return fail(Status::CaptureUnjoined,
                "expected a stream that waits for all captured work, got some "
                "left over");
  return std::move(graph);
}
