/** Submitting: form and YAML always in step, the server's diagnostics at their lines, and what would happen. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failed, getText, jobPath, postYaml } from '../../api';
import { save } from '../../format';
import { closeDialog, said, showDialog, toast } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Drop } from '../../parts/small';
import type { Check, Diagnostic, Submitted } from '../../shapes/calls';
import { go, lazy, param } from '../../state/route';
import { has } from '../../state/session';
import { jobHref } from '../../state/url';
import { t } from '../../text';
import { DecisionCard } from './decision';
import { asNew, at, edit, parse, type Path, type Value } from './edit';
import { Form } from './form';
import { nextName, read } from './model';
import { TEMPLATES } from './templates';

const Editor = lazy(() => import('./editor'));

async function firstText(): Promise<string> {
  if (param('draft')) { const kept = sessionStorage.getItem('draft'); if (kept) return renamed(kept); }
  const clone = param('clone');
  if (clone) return renamed(await getText(`${jobPath(clone)}/config`));
  return TEMPLATES[param('template')]?.yaml ?? TEMPLATES['single']!.yaml;
}
function renamed(text: string): string {
  const clean = asNew(text);
  const m = read(clean);
  if (m) return edit(clean, m.paths.name, nextName(m.name));
  const name = at(parse(clean), ['metadata', 'name']);
  return typeof name === 'string' ? edit(clean, ['metadata', 'name'], nextName(name)) : clean;
}

export default function Submit(): JSX.Element {
  const [text, setText] = useState<string | null>(null);
  const [check, setCheck] = useState<Check | null>(null);
  const [asking, setAsking] = useState(false);
  /** What the check is about; the text may have changed since. */
  const [checked, setChecked] = useState<string | null>(null);
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const file = useRef<HTMLInputElement>(null);
  useEffect(() => { document.title = `${t('Submit Job')} · Muster`; }, []);
  useEffect(() => { firstText().then(setText, (e: unknown) => { setWrong(said(e)); setText(TEMPLATES['single']!.yaml); }); }, [param('clone'), param('template'), param('draft')]);
  useCheck(text, (c) => { setCheck(c); setChecked(text); }, setAsking);

  const change = (path: Path, value: Value): void => setText((now) => (now === null ? now : edit(now, path, value)));
  const take = async (f: File | undefined): Promise<void> => { if (f) { if (f.size > 1_048_576) setWrong(t('The file is larger than 1 MiB.')); else setText(await f.text()); } };
  const submit = async (sure = false): Promise<void> => {
    if (busy || text === null) return;
    if (!sure && checked === text && check?.decision?.verdict === 'never') { askNever(check.decision.text, () => void submit(true)); return; }
    setBusy(true);
    setWrong('');
    try {
      const done = await postYaml<Submitted>('/jobs', text);
      toast(t('Submitted {name}', { name: done.name }), jobHref(done.id), t('Open'));
      go(jobHref(done.id));
    } catch (e) { setWrong(e instanceof Failed ? `${e.message} (${e.code})` : said(e)); }
    setBusy(false);
  };
  const model = text === null ? null : read(text);
  return (
    <div onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); void take(e.dataTransfer?.files[0]); }} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) void submit(); }}>
      <div class="head">
        <h1 tabIndex={-1}>{t('Submit Job')}</h1>
        {param('clone') ? <span class="sub">{t('a copy of {id}', { id: param('clone') })}</span> : null}
        <div class="acts">
          <Drop label={t('Templates')} end>{(close) => Object.entries(TEMPLATES).map(([key, x]) => <button key={key} class="item" onClick={() => { close(); setText(x.yaml); }}>{x.word}</button>)}</Drop>
          <button class="button" onClick={() => file.current!.click()}><Icon name="upload" />{t('Import')}</button>
          <input ref={file} type="file" accept=".yaml,.yml,.json,text/yaml" hidden aria-label={t('Import')} onChange={(e) => { void take(e.currentTarget.files?.[0]); e.currentTarget.value = ''; }} />
          <button class="button" onClick={() => save(`${model?.name || 'job'}.yaml`, 'text/yaml', text ?? '')}><Icon name="download" />{t('Export')}</button>
          <button class="button first" disabled={busy || text === null} title="Ctrl Enter" onClick={() => void submit()}>{t('Submit')}</button>
        </div>
      </div>
      <div class="body submit">
        <div class="stack">
          <section class="card"><header><h2>{t('Form')}</h2><span class="note">{model ? { openpai: 'OpenPAI', pytorchjob: 'PyTorchJob', mpijob: 'MPIJob', other: '' }[model.kind] : ''}</span></header><div class="in">{model ? <Form model={model} change={change} /> : <p class="faint">{t('The form knows OpenPAI jobs, PyTorchJobs and MPIJobs. Write any other Kubernetes manifest on the right.')}</p>}</div></section>
        </div>
        <div class="stack">
          {wrong ? <section class="decision toned-FAILED" role="alert"><h2>{t('Refused')}</h2><p>{wrong}</p></section> : null}
          {check?.decision ? <DecisionCard decision={check.decision} asking={asking || checked !== text} use={setText} /> : check?.undecided && has('decide') ? <section class="decision" role="status"><h2>{t('No decision now')}</h2><p class="faint">{check.undecided}</p></section> : null}
          <section class="card"><header><h2>YAML</h2><span class="note">{check && !check.diagnostics.length ? t('no findings') : ''}</span></header><div class="editor-frame">{text === null ? null : <Editor text={text} changed={setText} diagnostics={check?.diagnostics ?? []} label={t('YAML of the job')} submit={() => void submit()} />}</div>
            {check?.diagnostics.length ? <Findings list={check.diagnostics} /> : null}
          </section>
        </div>
      </div>
    </div>
  );
}

/** Asks 300 ms after typing stops, and again every 10 s: the cluster changes too. */
function useCheck(text: string | null, set: (c: Check | null) => void, asking: (on: boolean) => void): void {
  useEffect(() => {
    if (text === null || !has('check')) { set(null); return; }
    const stop = new AbortController();
    const ask = async (): Promise<void> => {
      asking(true);
      try {
        const quick = await postYaml<Check>('/check', text, stop.signal);
        set(quick);
        // When it would start, and what would start now, takes courses on a copy: asked for once the first answer stands.
        if (quick.decision?.verdict === 'waits') { const whole = await postYaml<Check>('/check?whole=true', text, stop.signal); if (whole.decision) set(whole); }
      } catch (e) { if ((e as Error).name !== 'AbortError') set(null); }
      if (!stop.signal.aborted) asking(false);
    };
    const timer = setTimeout(() => void ask(), 300);
    const again = setInterval(() => { if (!document.hidden) void ask(); }, 10_000);
    return () => { clearTimeout(timer); clearInterval(again); stop.abort(); };
  }, [text]);
}

const Findings = ({ list }: { list: Diagnostic[] }): JSX.Element => (
  <ul class="in">{list.slice(0, 20).map((d, i) => <li key={i} class={d.severity === 'error' ? 'bad' : 'soft'}>{d.line ? <span class="mono">{d.line}:{d.col} </span> : null}{d.path ? <span class="mono">{d.path} </span> : null}{d.message}</li>)}</ul>
);
function askNever(text: string, then: () => void): void {
  showDialog(t('Can never run'), () => (
    <><h2>{t('This job can never run')}</h2><p>{text}</p><p class="faint">{t('It would be accepted and wait until the cluster changes.')}</p>
      <div class="foot"><button class="button" data-first onClick={closeDialog}>{t('Change it')}</button><button class="button" onClick={() => { closeDialog(); then(); }}>{t('Submit anyway')}</button></div></>
  ));
}
