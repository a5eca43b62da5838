import './style/index.css';
import { render } from 'preact';
import { App } from './app';
import { startVisibility } from './live/socket';
import { startKeys } from './state/keys';
import { askSession } from './state/session';
import { startTheme } from './state/theme';
import { firstLanguage, speak } from './text';

startTheme();
startKeys();
startVisibility();
const first = firstLanguage();
// The session is asked while the language loads; a server that is away shows its own page (app.tsx).
void Promise.allSettled([askSession(), first === 'en' ? undefined : speak(first)]).then(() => {
  render(<App />, document.getElementById('app')!);
});
