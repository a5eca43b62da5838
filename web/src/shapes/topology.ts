import type { JobId, Millis } from './base';
import type { NodeState } from './cluster';
import type { State } from './job';

export interface MapJob {
  id: JobId;
  name: string;
  user: string;
  vc: string;
  queue: string;
  prio: number;
  prioClass: string;
  state: State;
  oppo: boolean;
  started: Millis | null;
}

/** Number of a node's state in `states`. */
export const NODE_STATES: readonly NodeState[] = ['ready', 'cordoned', 'not-ready'];

/** Topic `topology`: columns, so that 10,000 x 8 is small. All node columns have equal length and one order: by group, then by name. */
export interface Topology {
  at: Millis;
  nodes: string[];
  /** Index into NODE_STATES. */
  states: number[];
  /** GPUs of each node. */
  gpus: number[];
  /** Index into `models`, -1 = none. */
  model: number[];
  models: string[];
  /** Index into `racks`, -1 = none. Racks are HyperNodes or the rack label; empty without either. */
  rack: number[];
  racks: string[];
  /** Index into `chains` (chains of HiveD's cells), -1 = none. */
  chain: number[];
  chains: string[];
  /** Index into `vcs`, -1 = none: the VC to which the node's cells are bound, if it is one. */
  vc: number[];
  vcs: string[];
  jobs: MapJob[];
  /**
   * Run-length coded over all GPUs, node after node: value, count, value, count …
   * 0 = free, k > 0 = jobs[k-1] is on it, -k = held for jobs[k-1] (a reservation).
   */
  owner: number[];
  /** GPUs that are bad, by number; those of unusable nodes are not listed. */
  bad: number[];
  /** Since when a free GPU is idle: run-length coded like `owner`, in minutes; 0 = in use or unknown. */
  idle: number[];
}

/** Difference of the topology. When nodes come or go, the whole value is sent instead. */
export interface TopologyPatch {
  at: Millis;
  /** index, owner, index, owner … of GPUs that changed. */
  owner: number[];
  /** index, state, … of nodes that changed. */
  states: number[];
  /** New or changed entries of `jobs`, by index (an index is reused once its job holds nothing). */
  jobs: Record<string, MapJob>;
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
