/** A terminal in a document of its own: xterm needs inline styles, which the portal's policy forbids. */
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import './terminal.css';

const asked = new URLSearchParams(location.search);
const note = document.getElementById('note')!;
const say = (text: string): void => { note.textContent = text; };
document.title = `${asked.get('task') ?? asked.get('job') ?? ''} · Terminal`;

const terminal = new Terminal({ fontFamily: 'ui-monospace, "Liberation Mono", "DejaVu Sans Mono", monospace', fontSize: 13, cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches, scrollback: 10_000, theme: { background: '#0d0f12', foreground: '#e7eaee' } });
const fit = new FitAddon();
terminal.loadAddon(fit);
terminal.open(document.getElementById('terminal')!);
fit.fit();
terminal.focus();

const enum Channel { In = 0, Out = 1, Err = 2, Status = 3, Resize = 4 }
const text = new TextEncoder();
const decode = new TextDecoder();

/** What the status channel says, as a sentence. */
export function ending(status: string): string {
  try {
    const s = JSON.parse(status) as { status?: string; message?: string; details?: { causes?: { reason: string; message: string }[] } };
    if (s.status === 'Success') return 'The shell has ended.';
    const code = s.details?.causes?.find((c) => c.reason === 'ExitCode')?.message;
    return code ? `The shell has ended with ${code}.` : (s.message ?? 'The shell has ended.');
  } catch { return status || 'The shell has ended.'; }
}

function open(): void {
  const url = new URL(/* @vite-ignore */ '../api/portal/v1/exec', import.meta.url);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  for (const [k, v] of asked) url.searchParams.append(k, v);
  const socket = new WebSocket(url, ['v5.channel.k8s.io']);
  socket.binaryType = 'arraybuffer';
  const send = (channel: Channel, data: string): void => {
    if (socket.readyState !== WebSocket.OPEN) return;
    const bytes = text.encode(data);
    const frame = new Uint8Array(bytes.length + 1);
    frame[0] = channel;
    frame.set(bytes, 1);
    socket.send(frame);
  };
  const resize = (): void => send(Channel.Resize, JSON.stringify({ Width: terminal.cols, Height: terminal.rows }));
  const keys = terminal.onData((data) => send(Channel.In, data));
  const size = terminal.onResize(resize);
  let ended = '';
  socket.onopen = () => { say(''); resize(); };
  socket.onmessage = (e) => {
    const frame = new Uint8Array(e.data as ArrayBuffer);
    if (frame[0] === Channel.Out || frame[0] === Channel.Err) terminal.write(frame.subarray(1));
    else if (frame[0] === Channel.Status) ended = ending(decode.decode(frame.subarray(1)));
  };
  socket.onclose = (e) => {
    keys.dispose();
    size.dispose();
    say(`${ended || e.reason || (e.code === 1006 ? 'The connection was refused or lost; you may not have the right to open a shell here.' : 'The connection has ended.')} Press Enter for a new shell.`);
    const again = terminal.onKey(({ domEvent }) => { if (domEvent.key === 'Enter') { again.dispose(); terminal.reset(); open(); } });
  };
}
new ResizeObserver(() => fit.fit()).observe(document.getElementById('terminal')!);
open();
