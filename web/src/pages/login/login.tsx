import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failed } from '../../api';
import { Logo } from '../../app';
import { Icon } from '../../parts/icon';
import { go, hash, param, path, query } from '../../state/route';
import { logIn, safeNext, session } from '../../state/session';
import { language, speak, t } from '../../text';

export function Login(): JSX.Element {
  const s = session.value!;
  const [byToken, setByToken] = useState(false);
  const [wrong, setWrong] = useState('');
  const [busy, setBusy] = useState(false);
  const name = useRef<HTMLInputElement>(null);
  const secret = useRef<HTMLInputElement>(null);
  useEffect(() => { document.title = `${t('Sign in')} · Muster`; name.current?.focus(); }, []);
  // Already signed in (another tab): go on.
  useEffect(() => { if (s.user) go(safeNext(param('next')), true); }, [s.user]);

  async function submit(e: Event): Promise<void> {
    e.preventDefault();
    setBusy(true);
    setWrong('');
    const next = path.value === '/login' ? safeNext(param('next')) : path.value + query.value + hash.value;
    try {
      await logIn(byToken ? { token: secret.current!.value.trim() } : { user: name.current!.value.trim(), password: secret.current!.value });
      go(next, true);
    } catch (e) {
      setWrong(words(e));
      secret.current!.value = '';
      secret.current!.focus();
    }
    setBusy(false);
  }
  return (
    <main class="login">
      <div class="card">
        <div class="brand"><Logo />Muster</div>
        <h1 class="faint" style={{ fontSize: '13px', fontWeight: 400 }}>{s.cluster ? t('Sign in to {cluster}', { cluster: s.cluster }) : t('Sign in')}</h1>
        {s.plainHttp ? <p class="banner" style={{ margin: '12px 0 0', borderRadius: '6px', border: 0 }}><Icon name="warn" />{t('This connection is not encrypted: passwords and tokens can be read on the way.')}</p> : null}
        <form class="form" style={{ marginTop: '20px' }} onSubmit={submit}>
          {byToken ? (
            <label>{t('Token')}<input ref={secret} class="field mono" type="password" autocomplete="off" required /><span class="hint">{t('A Kubernetes token or an application token; it is exchanged for a session and not kept.')}</span></label>
          ) : (
            <>
              <label>{t('User name')}<input ref={name} class="field" name="username" autocomplete="username" autocapitalize="none" spellcheck={false} required /></label>
              <label>{t('Password')}<input ref={secret} class="field" name="password" type="password" autocomplete="current-password" required /></label>
            </>
          )}
          {wrong ? <p class="wrong" role="alert">{wrong}</p> : null}
          <button class="button first" disabled={busy}>{t('Sign in')}</button>
          <button type="button" class="link" onClick={() => { setByToken(!byToken); setWrong(''); }}>{byToken ? t('Sign in with a password') : t('Sign in with token')}</button>
        </form>
        <p class="faint" style={{ marginTop: '20px', fontSize: '11.5px', display: 'flex' }}>{s.version ? `muster ${s.version}` : ''}<button class="link" style={{ marginLeft: 'auto' }} onClick={() => void speak(language.value === 'en' ? 'zh' : 'en')}>{language.value === 'en' ? '中文' : 'English'}</button></p>
      </div>
    </main>
  );
}
function words(e: unknown): string {
  if (!(e instanceof Failed)) return String(e);
  if (e.status === 429) return t('Too many attempts. Try again in {n} s.', { n: e.retryAfter || 30 });
  return e.message;
}
