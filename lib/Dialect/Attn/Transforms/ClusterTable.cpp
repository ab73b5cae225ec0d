//===- ClusterTable.cpp - What a cluster's CTAs share ---------------------===//

#include "ClusterTable.h"
#include "attn/Analysis/Memory/SharedAccess.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attn;

ReinterpretOp attn::findRingView(Value buffer) {
  while (Operation *def = buffer.getDefiningOp()) {
    if (auto view = dyn_cast<ReinterpretOp>(def)) {
      auto ring = view.getSource().getDefiningOp<AllocOp>();
      bool isOther =
          ring &&
          ring.getType().getNumSlots() == view.getType().getNumSlots() &&
          ring.getType().getSlotShape() != view.getType().getSlotShape();
      if (isOther)
        return view;
    }
    auto viewLike = dyn_cast<ViewLikeOpInterface>(def);
    if (!viewLike)
      return {};
    buffer = viewLike.getViewSource();
  }
  return {};
}

namespace {

/// Rows of texts, printed in columns.
class Table {
public:
  void add(SmallVector<std::string> row) { rows.push_back(std::move(row)); }
  std::string print() const;

private:
  SmallVector<SmallVector<std::string>> rows;
};

} // namespace

std::string Table::print() const {
  SmallVector<size_t> widths;
  for (const SmallVector<std::string> &row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (auto [column, text] : llvm::enumerate(row))
      widths[column] = std::max(widths[column], text.size());
  }
  std::string printed;
  for (const SmallVector<std::string> &row : rows) {
    std::string line = "\n ";
    for (auto [column, text] : llvm::enumerate(row))
      line += " " + text + std::string(widths[column] - text.size() + 1, ' ');
    printed += StringRef(line).rtrim().str();
  }
  return printed;
}

static std::string printShape(ArrayRef<int64_t> shape) {
  return llvm::join(
      llvm::map_range(shape,
                      [](int64_t extent) { return std::to_string(extent); }),
      "x");
}

/// Something for each rank, such as "1 1 4 4".
static std::string printRanks(int64_t ctas,
                              function_ref<std::string(uint32_t)> print) {
  SmallVector<std::string> texts;
  for (uint32_t rank = 0; rank < ctas; ++rank)
    texts.push_back(print(rank));
  return llvm::join(texts, " ");
}

/// A buffer with a layout: what a CTA holds of which value, how many CTAs hold
/// the same, the box that an instruction of its loads copies, and where that
/// goes.
static void addBuffer(Table &table, StringRef name, BufferType type,
                      CGAAttr cga, BulkCopyOpInterface load) {
  std::string box = "-", mask = "-";
  if (load) {
    auto map = cast<TensorMapType>(load.getMap().getType());
    box = printShape({map.getRows(), map.getColumns()});
    SignalMask targets =
        SignalMask(0, load.getMulticastCTAs() ? load.getMulticastBits() : 0);
    int64_t ctas = cga.countCTAs();
    mask = printRanks(ctas, [&](uint32_t rank) {
      return std::to_string(targets.getTargets(rank, ctas));
    });
  }
  SmallVector<std::string> bases;
  for (unsigned bit = 0; bit < cga.getBases().size(); ++bit)
    bases.push_back(llvm::formatv(
        "[{0:$[, ]}]",
        llvm::make_range(cga.getBasis(bit).begin(), cga.getBasis(bit).end())));
  int64_t copies = int64_t(1) << llvm::popcount(cga.getCopiedBits());
  table.add({name.str(), printShape(type.getSlotShape()),
             llvm::join(bases, " "), std::to_string(copies), box, mask});
}

static std::string printBuffers(const ChannelAnalysis &channels) {
  Table table;
  table.add({"buffer", "block", "bases", "copies", "box", "loads go to"});
  channels.getKernel().walk([&](Operation *op) {
    // A ring whose slots hold other values by turns has a line for each view.
    auto view = dyn_cast<ReinterpretOp>(op);
    auto alloc = view ? findAlloc(view) : dyn_cast<AllocOp>(op);
    CGAAttr cga = view    ? view.getCgaAttr()
                  : alloc ? alloc.getCgaAttr()
                          : CGAAttr();
    if (alloc && cga) {
      BulkCopyOpInterface load;
      channels.getKernel().walk([&](BulkCopyOpInterface copy) {
        if (copy.isBulkLoad() && findAlloc(copy.getCopiedBuffer()) == alloc &&
            findRingView(copy.getCopiedBuffer()) == view)
          load = copy;
      });
      addBuffer(table, alloc.getName().value_or("buffer"),
                view ? view.getType() : alloc.getType(), cga, load);
    } else if (auto alloc = dyn_cast<TmemAllocOp>(op);
               alloc && alloc.getCga()) {
      addBuffer(table, alloc.getName().value_or("buffer"), alloc.getType(),
                alloc.getCgaAttr(), {});
    }
  });
  return table.print();
}

/// A role: which CTAs run it, what completes a phase of the barriers that count
/// it, and for each rank the CTAs to whose barriers it signals.
static void addRole(Table &table, ChannelCreateOp channel,
                    const ChannelInfo &info, unsigned index) {
  const RoleInfo &role = info.roles[index];
  SignalMask target = info.getTarget(index);
  std::string bytes;
  for (int64_t own : role.bytes)
    bytes += llvm::formatv("{0}{1}", bytes.empty() ? "" : ", ",
                           info.getBytes(index, own));
  SmallVector<std::string> runs;
  for (uint32_t rank = 0; rank < info.cluster; ++rank)
    if ((rank & role.leaderBits) == 0)
      runs.push_back(std::to_string(rank));
  std::string masks = printRanks(info.cluster, [&](uint32_t rank) {
    return (rank & role.leaderBits) != 0
               ? std::string("-")
               : std::to_string(target.getTargets(rank, info.cluster));
  });
  table.add({(channel.getName() + "." + channel.getRole(index).getName()).str(),
             llvm::join(runs, " "), std::to_string(info.getCount(index)),
             bytes.empty() ? "-" : bytes, masks,
             info.hasTail(index, channel) ? "waits at its end" : ""});
}

std::string attn::describeCluster(const ChannelAnalysis &channels,
                                  int64_t ctas) {
  Table roles;
  roles.add({"role", "runs in", "count", "bytes", "signals go to", ""});
  for (auto [channel, info] : channels.getChannels())
    for (unsigned index = 0; index < info.roles.size(); ++index)
      addRole(roles, channel, info, index);
  return llvm::formatv("{0} CTAs in pairs of ranks 2n and 2n + 1{1}{2}", ctas,
                       printBuffers(channels), roles.print());
}
