import { expect, test } from 'vitest';
import { parseUsers } from './bulk';

test('each line says what it makes or what is wrong with it', () => {
  const lines = parseUsers('username,password,email,admin,virtual cluster\ncarol,secret-1,carol@example.org,false,vc1|default\ndan,short,,,\ncarol,secret-2,,,\n"e rin",secret-3,,,\nfrank,secret-4,,yes,vc9', ['default', 'vc1']);
  expect(lines.map((l) => [l.line, l.username, l.wrong])).toEqual([
    [2, 'carol', ''],
    [3, 'dan', 'the password needs at least six characters'],
    [4, 'carol', 'this name is already in a line above'],
    [5, 'e rin', 'a user name has letters, digits, . _ -'],
    [6, 'frank', 'there is no virtual cluster vc9'],
  ]);
  expect(lines[0]).toMatchObject({ vcs: ['vc1', 'default'], admin: false });
});
