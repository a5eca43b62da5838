/** The lines of an open log: bounded, fed by a socket that reopens where it was. */
import type { LogMessage } from '../../shapes/live';

export interface Line { at: number | null; task: string; text: string }
const KEPT = 200_000;

export class LogStore {
  lines: Line[] = [];
  /** Lines that were dropped at the front. */
  first = 0;
  seen = 0;
  ended = false;
  error: string | null = null;
  changed: () => void = () => {};
  private socket: WebSocket | null = null;
  private closed = false;
  private failures = 0;

  open(path: string): void {
    const url = new URL(path, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const s = new WebSocket(url);
    this.socket = s;
    let fresh = true;
    s.onmessage = (e) => {
      // After a loss the log comes from its beginning again: what was there is replaced by it.
      if (fresh) { fresh = false; this.lines = []; this.first = 0; this.failures = 0; this.error = null; }
      this.take(JSON.parse(e.data as string) as LogMessage);
    };
    s.onclose = () => {
      if (this.closed || this.ended || this.error) return;
      this.failures++;
      setTimeout(() => { if (!this.closed) this.open(path); }, Math.min(10_000, 500 * 2 ** this.failures));
    };
  }
  take(m: LogMessage): void {
    if ('lines' in m) {
      this.merge(m.lines.map(([at, task, text]) => ({ at, task, text })));
      this.seen += m.lines.length;
      if (this.lines.length > KEPT + 5000) { const drop = this.lines.length - KEPT; this.lines.splice(0, drop); this.first += drop; }
    } else if ('end' in m) this.ended = true;
    else this.error = m.error.message;
    this.changed();
  }
  /** Each task's lines come in their order, but whole tasks one after the other: by time they stand as they were printed. */
  private merge(news: Line[]): void {
    const from = news[0]?.at;
    let at = this.lines.length;
    if (from) while (at > 0 && (this.lines[at - 1]!.at ?? 0) > from) at--;
    const later = this.lines.splice(at);
    for (let i = 0, j = 0; i < news.length || j < later.length; ) {
      const old = i >= news.length || (j < later.length && (later[j]!.at ?? 0) <= (news[i]!.at ?? Infinity));
      this.lines.push(old ? later[j++]! : news[i++]!);
    }
  }
  /** Numbers of the lines that contain the text; at most 10,000. */
  find(q: string): number[] {
    if (!q) return [];
    const want = q.toLowerCase();
    const out: number[] = [];
    for (let i = 0; i < this.lines.length && out.length < 10_000; i++) if (this.lines[i]!.text.toLowerCase().includes(want)) out.push(i);
    return out;
  }
  close(): void { this.closed = true; this.socket?.close(); }
}
