import { useLayoutEffect, useRef, useState } from 'preact/hooks';

/** The width of an element in pixels, kept up: pictures are drawn for it, so that their texts keep their size. */
export function useBoxWidth<E extends Element>(first: number): [{ current: E | null }, number] {
  const box = useRef<E>(null);
  const [width, set] = useState(first);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([e]) => { const w = Math.round(e!.contentRect.width); if (w > 0) set(w); });
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  return [box, width];
}
