#include "cells.h"

#include <fmt/core.h>

namespace muster::bottle {

std::string cells_text(const Split& split) {
  std::string text =
      "physicalCluster:\n"
      "  cellTypes:\n"
      "    PAIR: {childCellType: GPU, childCellNumber: 2}\n"
      "    NODE: {childCellType: PAIR, childCellNumber: 2, isNodeLevel: true}\n"
      "  physicalCells:\n";
  for (int i = 0; i < split.nodes; ++i)
    text += fmt::format("  - {{cellType: NODE, cellAddress: node-{}}}\n", i);
  text += "virtualClusters:\n";
  const int rest = split.nodes - split.first;
  if (split.first > 0)
    text += fmt::format("  default:\n    virtualCells: [{{cellType: NODE, cellNumber: {}}}]\n",
                        split.first);
  if (rest > 0)
    text += fmt::format("  {}:\n    virtualCells: [{{cellType: {}, cellNumber: {}}}]\n",
                        kTeam,
                        split.pairs ? "NODE.PAIR" : "NODE",
                        split.pairs ? 2 * rest : rest);
  return text;
}

}  // namespace muster::bottle
