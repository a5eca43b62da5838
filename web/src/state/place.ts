/** Where the portal is served: the path before `/assets/` of this very file; empty at the root. */
export const prefix = ((): string => {
  const at = new URL(import.meta.url).pathname.indexOf('/assets/');
  return at > 0 ? new URL(import.meta.url).pathname.slice(0, at) : '';
})();

export const api = (path: string): string => `${prefix}/api/portal/v1${path}`;
export const page = (path: string): string => `${prefix}${path}`;
