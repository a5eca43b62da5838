import { t } from '../../text';

/** Lines of a CSV of users, each with what is wrong with it. Pure. */
export interface NewUser { line: number; username: string; password: string; email: string; admin: boolean; vcs: string[]; wrong: string }

export function parseUsers(text: string, known: string[]): NewUser[] {
  const out: NewUser[] = [];
  const seen = new Set<string>();
  text.split(/\r?\n/).forEach((raw, i) => {
    if (!raw.trim()) return;
    const cells = splitCsv(raw).map((c) => c.trim());
    if (i === 0 && /^user ?name$/i.test(cells[0] ?? '')) return;
    const [username = '', password = '', email = '', admin = '', vcs = ''] = cells;
    const user = { line: i + 1, username, password, email, admin: /^(true|yes|1)$/i.test(admin), vcs: vcs.split('|').map((v) => v.trim()).filter(Boolean) };
    out.push({ ...user, wrong: whatIsWrong(user, known, seen) });
    seen.add(username);
  });
  return out;
}
function whatIsWrong(u: Omit<NewUser, 'wrong'>, known: string[], seen: Set<string>): string {
  if (!/^[\w.-]+$/.test(u.username)) return t('a user name has letters, digits, . _ -');
  if (seen.has(u.username)) return t('this name is already in a line above');
  if (u.password.length < 6) return t('the password needs at least six characters');
  if (u.email && !/^[^@\s]+@[^@\s]+$/.test(u.email)) return t('not an e-mail address');
  const unknown = u.vcs.find((v) => known.length > 0 && !known.includes(v));
  return unknown ? t('there is no virtual cluster {name}', { name: unknown }) : '';
}
function splitCsv(line: string): string[] {
  const out: string[] = [];
  let cell = '';
  let quoted = false;
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quoted) { if (c === '"' && line[i + 1] === '"') { cell += '"'; i++; } else if (c === '"') quoted = false; else cell += c; }
    else if (c === '"') quoted = true;
    else if (c === ',') { out.push(cell); cell = ''; }
    else cell += c;
  }
  out.push(cell);
  return out;
}
