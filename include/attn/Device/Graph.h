//===- Graph.h - Work that is recorded once and launched often --*- C++ -*-===//

#ifndef ATTN_DEVICE_GRAPH_H
#define ATTN_DEVICE_GRAPH_H

#include "attn/Device/Device.h"
#include <functional>
#include <optional>

namespace mlir::attn::device {

/// Does one operation in a stream.
using Work = std::function<llvm::Error(Stream &)>;

/// Operations, and which come after which.
struct Graph {
  struct Node {
    Work work;
    /// Earlier nodes that it waits for.
    llvm::SmallVector<unsigned, 2> after;
    /// The only one of them, where its stream had it last: a kernel that is
    /// launched programmatically may begin before that one has ended.
    std::optional<unsigned> previous;
  };
  std::vector<Node> nodes;
};

/// Runs a graph behind the stream's work and behind `end`, which its launches
/// before have come to, and the stream's later work behind it. Nodes that do
/// not wait for each other are as work of different streams.
llvm::Error launchGraph(Device &device, const Graph &graph, Stream &stream,
                        OrderClock &end);

/// Takes work of streams for a graph instead of doing it: that of the stream it
/// began with, and of those that wait for its events.
class Capture {
public:
  /// The last nodes of a stream, which later ones wait for.
  using Tips = llvm::SmallVector<unsigned, 2>;

  explicit Capture(uint32_t origin) : origin(origin) { tips[origin]; }

  bool has(uint32_t stream) const { return tips.count(stream); }
  void add(uint32_t stream, Work work);
  /// Returns what an event stands for that is recorded in a stream now.
  Tips record(uint32_t stream) const { return tips.at(stream); }
  /// Later work of the stream waits for the event; it becomes part of this.
  void wait(uint32_t stream, const Tips &event);
  /// Ends it in the stream it began with, which must have waited for all
  /// others.
  llvm::Expected<Graph> end(uint32_t stream);

private:
  uint32_t origin;
  Graph graph;
  std::map<uint32_t, Tips> tips;
  /// The last node that was added in a stream.
  std::map<uint32_t, unsigned> added;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_GRAPH_H
