// Compresses what vite built, once and for good: each file of DIR gets .gz and .br beside it, files.txt names them all.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const dir = process.argv[2];
function* files(at) {
  for (const name of readdirSync(at).sort()) {
    const path = join(at, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else if (!/\.(gz|br)$|^files\.txt$/.test(name)) yield path;
  }
}
const names = [];
const sum = { plain: 0, gzip: 0, br: 0 };
for (const path of files(dir)) {
  const data = readFileSync(path);
  const gzip = gzipSync(data, { level: 9 });
  const br = brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: data.length } });
  writeFileSync(`${path}.gz`, gzip);
  writeFileSync(`${path}.br`, br);
  names.push(relative(dir, path));
  sum.plain += data.length; sum.gzip += gzip.length; sum.br += br.length;
}
writeFileSync(join(dir, 'files.txt'), names.map((n) => `${n}\n`).join(''));
const kb = (n) => `${(n / 1000).toFixed(0)} kB`;
console.log(`portal: ${names.length} files, ${kb(sum.plain)}, gzip ${kb(sum.gzip)}, brotli ${kb(sum.br)}`);
