/** Milliseconds since 1970 UTC, or a length of time in milliseconds. */
export type Millis = number;

/** `user~job`, or `namespace/kind/name` with the kind in lower case. */
export type JobId = string;

/** Every refusal outside `/kube`, with the HTTP status that fits. */
export interface Refused {
  code: string;
  message: string;
}

/** What has been counted under which name, e.g. jobs by state. */
export type Tally = Record<string, number>;
