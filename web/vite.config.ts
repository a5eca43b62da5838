import { defineConfig } from 'vite';

/** The documents name their files from the root (a page's path may be deep); files name each other relatively, so a prefix works. */
const fromRoot = {
  name: 'documents-name-files-from-the-root',
  transformIndexHtml: { order: 'post' as const, handler: (html: string) => html.replaceAll('"./assets/', '"/assets/') },
};

export default defineConfig({
  base: './',
  plugins: [fromRoot],
  build: {
    outDir: process.env.MUSTER_WEB_OUT ?? 'dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 600,
    rollupOptions: {
      input: { index: 'index.html', terminal: 'terminal.html' },
      // What the first page needs is one file: few requests count more than fine cuts.
      output: { codeSplitting: { groups: [{ name: 'core', test: /\/(preact|@preact)\/|\/src\/(state|live|shapes|parts\/(glyph|icon|small|dialog|rows|reveal|window|sharebar|why)|text\/index|api|format|app|pages\/(login|home|jobs))/ }] } },
    },
  },
});
