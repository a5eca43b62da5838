import { signal } from '@preact/signals';

/** Counts up four times a minute: texts with an age read it. */
export const minute = signal(0);
setInterval(() => { if (!document.hidden) minute.value++; }, 15_000);
document.addEventListener('visibilitychange', () => { minute.value++; });
