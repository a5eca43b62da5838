/** Calls of the portal's JSON. A refusal is thrown as `Failed`, with the server's own words. */
import { api, prefix } from './state/place';

export class Failed extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly body: unknown = null,
    readonly retryAfter = 0,
  ) {
    super(message);
  }
}

async function refused(answer: Response): Promise<Failed> {
  let code = String(answer.status);
  let message = answer.statusText || `HTTP ${answer.status}`;
  let body: unknown = null;
  try {
    body = await answer.json();
    const said = body as { code?: unknown; message?: unknown; reason?: unknown };
    if (typeof said.message === 'string' && said.message) message = said.message;
    if (typeof said.reason === 'string') code = said.reason;
    else if (typeof said.code === 'string') code = said.code;
  } catch { /* not JSON: the status has to do */ }
  return new Failed(answer.status, code, message, body, Number(answer.headers.get('Retry-After') ?? 0));
}

async function send(url: string, options: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(url, { credentials: 'same-origin', ...options });
  } catch (e) {
    if ((e as Error).name === 'AbortError') throw e;
    throw new Failed(0, 'Unreachable', 'The server cannot be reached.');
  }
  if (!answer.ok) {
    if (answer.status === 401 && !url.endsWith('/session')) lost();
    throw await refused(answer);
  }
  return answer;
}

let lost = (): void => {};
/** Called when a call is answered with 401: the session has ended. */
export const onSessionLost = (then: () => void): void => { lost = then; };

const json = { 'Content-Type': 'application/json' };

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(api(path), { signal: signal ?? null })).json() as Promise<T>;
}
export async function getText(path: string): Promise<string> {
  return (await send(api(path), {})).text();
}
export async function call<T>(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const answer = await send(api(path), body === undefined ? { method, signal: signal ?? null } : { method, headers: json, body: JSON.stringify(body), signal: signal ?? null });
  const text = await answer.text();
  return (text ? JSON.parse(text) : null) as T;
}
export async function postYaml<T>(path: string, text: string, signal?: AbortSignal): Promise<T> {
  return (await send(api(path), { method: 'POST', headers: { 'Content-Type': 'text/yaml' }, body: text, signal: signal ?? null })).json() as Promise<T>;
}
/** OpenPAI's REST, with the session's identity. */
export const pai = {
  get: <T>(path: string): Promise<T> => get<T>(`/pai${path}`),
  call: <T>(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<T> => call<T>(method, `/pai${path}`, body),
};
/** The Kubernetes API as the signed-in user. */
export async function kube<T>(method: string, path: string, body?: unknown, type = 'application/json'): Promise<T> {
  const answer = await send(`${prefix}/kube${path}`, body === undefined ? { method } : { method, headers: { 'Content-Type': type }, body: JSON.stringify(body) });
  return answer.json() as Promise<T>;
}

/** Lines of JSON as they arrive. */
export async function lines<T>(path: string, body: unknown, each: (line: T) => void): Promise<void> {
  const answer = await send(api(path), { method: 'POST', headers: json, body: JSON.stringify(body) });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? '';
    const whole = rest.split('\n');
    rest = done ? '' : whole.pop()!;
    for (const line of whole) if (line.trim()) each(JSON.parse(line) as T);
    if (done) return;
  }
}

export const jobPath = (id: string): string => `/jobs/${encodeURIComponent(id)}`;
export function search(values: Record<string, string | number | string[] | undefined | null>): string {
  const out = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) {
    if (v === undefined || v === null || v === '') continue;
    if (Array.isArray(v)) { if (v.length) out.set(k, v.join(',')); } else out.set(k, String(v));
  }
  const text = out.toString();
  return text ? `?${text}` : '';
}
