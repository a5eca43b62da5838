import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { get } from '../../api';
import type { Suggest } from '../../shapes/calls';
import { session } from '../../state/session';
import { t } from '../../text';
import type { Path, Value } from './edit';
import type { Model, Role } from './model';

type Change = (path: Path, value: Value) => void;
function useSuggest(field: string, when = true): string[] {
  const [values, set] = useState<string[]>([]);
  useEffect(() => { if (when) get<Suggest>(`/suggest?field=${field}`).then((s) => set(s.values.map((v) => v.value)), () => {}); }, [field, when]);
  return values;
}

export function Form({ model: m, change }: { model: Model; change: Change }): JSX.Element {
  const pai = m.kind === 'openpai';
  const tenants = useSuggest(pai ? 'vc' : 'queue');
  const images = useSuggest('image');
  const priorities = useSuggest('priority');
  const known = tenants.length ? tenants : pai ? (session.value?.vcs ?? []) : [];
  return (
    <div class="form">
      <Field word={t('Name')} value={m.name} set={(v) => change(m.paths.name, v)} required />
      <div class="pair">
        <Field word={pai ? t('Virtual cluster') : t('Queue')} value={m.tenant} set={(v) => change(m.paths.tenant, v || null)} list={known} />
        <Field word={t('Priority')} value={m.priority} set={(v) => change(m.paths.priority, v || null)} list={priorities.length ? priorities : pai ? ['oppo', 'test', 'prod'] : []} />
        {m.paths.namespace ? <Field word={t('Namespace')} value={m.namespace} set={(v) => change(m.paths.namespace!, v || null)} list={session.value?.namespaces ?? []} /> : null}
      </div>
      <Field word={t('Image')} value={m.image} set={(v) => { for (const p of m.paths.images) change(p, v); }} list={images} mono />
      {m.paths.gang ? <label class="check"><input type="checkbox" checked={m.gang} onClick={() => change(m.paths.gang!, !m.gang)} />{t('All tasks start together, or none')}</label> : null}
      {m.roles.map((r) => <RoleForm key={r.name} role={r} change={change} kind={m.kind} />)}
    </div>
  );
}

function RoleForm({ role: r, change, kind }: { role: Role; change: Change; kind: Model['kind'] }): JSX.Element {
  const number = (path: Path) => (v: string): void => { if (/^\d+$/.test(v)) change(path, Number(v)); };
  return (
    <fieldset>
      <legend>{r.name}</legend>
      <div class="pair">
        <Field word={t('Tasks')} value={String(r.replicas)} set={number(r.paths.replicas)} type="number" />
        <Field word={t('GPUs each')} value={String(r.gpus)} set={number(r.paths.gpus)} type="number" />
        <Field word={kind === 'openpai' ? t('CPU cores each') : t('CPU each')} value={r.cpu} set={(v) => change(r.paths.cpu, kind === 'openpai' ? Number(v) || 1 : v || null)} />
        <Field word={kind === 'openpai' ? t('Memory each, MB') : t('Memory each')} value={r.memory} set={(v) => change(r.paths.memory, kind === 'openpai' ? Number(v) || 1 : v || null)} />
      </div>
      {kind === 'openpai' && !r.command.includes('\n') ? <Field word={t('Command')} value={r.command} set={(v) => change([...r.paths.command, 0], v)} mono /> : r.command ? <label>{t('Command')}<textarea class="field mono" rows={Math.min(6, r.command.split('\n').length + 1)} readOnly value={r.command} /><span class="hint">{t('Several commands are edited in the YAML.')}</span></label> : null}
    </fieldset>
  );
}

let lists = 0;
function Field({ word, value, set, list, type = 'text', required = false, mono = false }: { word: string; value: string; set: (v: string) => void; list?: string[]; type?: "text" | "number"; required?: boolean; mono?: boolean }): JSX.Element {
  const [id] = useState(() => `list${++lists}`);
  return (
    <label>{word}
      <input class={`field ${mono ? 'mono' : ''}`} type={type} min={type === 'number' ? 0 : undefined} value={value} required={required} list={list?.length ? id : undefined} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} />
      {list?.length ? <datalist id={id}>{list.map((v) => <option key={v} value={v} />)}</datalist> : null}
    </label>
  );
}
