import type { JobId, Millis } from './base';
import type { NodeState } from './cluster';
import type { State } from './job';

/** What a job on the map has in common with others. */
export interface MapSort {
  user: string;
  vc: string;
  queue: string;
  prio: number;
  prioClass: string;
  state: State;
  oppo: boolean;
}

/** Number of a node's state in `states`. */
export const NODE_STATES: readonly NodeState[] = ['ready', 'cordoned', 'not-ready'];

/** Run-length coded: value, count, value, count … */
export type Runs = number[];

/**
 * Texts, most of which end in a number. Text i begins with stems[stem[i]]; unless the width of that stem is 0, its number follows, filled with
 * zeros to that width. `number` has the steps from each number to the next, beginning at 0.
 */
export interface Names {
  stems: string[];
  widths: number[];
  stem: number[];
  number: number[];
}

/** Topic `topology`: columns, so that 10,000 x 8 is small. All node columns have equal length and one order: by rack, then by name. */
export interface Topology {
  at: Millis;
  nodes: Names;
  /** Indexes into NODE_STATES. */
  states: Runs;
  /** GPUs of each node. */
  gpus: Runs;
  /** Index into `models`, -1 = none. */
  model: Runs;
  models: Names;
  /** Index into `racks`, -1 = none. Racks are HyperNodes or the rack label; empty without either. */
  rack: Runs;
  racks: Names;
  /** Numbered from 1 in the order in which `owner` comes upon them. An empty id stands for all whom the user may not see. */
  jobs: { ids: Names; sort: number[]; sorts: MapSort[] };
  /**
   * Who is on each GPU, node after node, in runs: 0 = nobody, 1 = the job after the highest so far, 2 = the highest so far, 3 = the one before it …;
   * negative: held for that job (a reservation).
   */
  owner: { who: number[]; count: number[] };
  /** GPUs that are bad, by number; those of unusable nodes are not listed. */
  bad: number[];
  /** For how many minutes each free GPU has been idle; 0 = in use or unknown. */
  idle: Runs;
}

/** Difference of the topology. When nodes come or go, the whole value is sent instead. */
export interface TopologyPatch {
  at: Millis;
  /** index, owner, index, owner … of GPUs that changed: 0 = nobody, k > 0 = the k-th job is on it, -k = held for it. */
  owner: number[];
  /** index, state, … of nodes that changed. */
  states: number[];
  /** New or changed jobs, by number less one (a number is used again once its job holds nothing). */
  jobs: Record<string, MapSort & { id: JobId }>;
  bad?: number[];
}

/** A cell as in `GET /cells` (`hived::tree_json`, the shape of /v1/inspect/clusterstatus). */
export interface Cell {
  cellType: string;
  cellAddress: string;
  cellState: string;
  cellHealthiness: string;
  cellPriority: number;
  leafCellType?: string;
  isNodeLevel?: boolean;
  cellChildren?: Cell[];
  /** Physical cells: the virtual cell bound to it, and its VC. */
  vc?: string;
  virtualCell?: Cell;
  /** Virtual cells: the physical cell bound to it. */
  physicalCell?: Cell;
}

export interface Cells {
  physicalCluster: Cell[];
  virtualClusters: Record<string, Cell[]>;
  affinityGroups?: unknown[];
}
