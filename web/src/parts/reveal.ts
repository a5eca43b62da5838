import { useEffect, useRef } from 'preact/hooks';

/** A strip of links that may be wider than the screen: the one that is current is brought into view. */
export function useReveal(current: string): { current: HTMLElement | null } {
  const strip = useRef<HTMLElement>(null);
  useEffect(() => {
    const link = strip.current?.querySelector('[aria-current]')?.getBoundingClientRect();
    const box = strip.current?.getBoundingClientRect();
    if (!link || !box) return;
    if (link.right > box.right - 24) strip.current!.scrollLeft += link.right - box.right + 24;
    else if (link.left < box.left + 16) strip.current!.scrollLeft += link.left - box.left - 16;
  }, [current]);
  return strip;
}
