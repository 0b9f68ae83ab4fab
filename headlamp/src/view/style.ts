/**
 * The style of the plugin, in its own shadow root: that of the status page, in the colours of Headlamp's theme. Pure.
 */
import { COLOURS, RULES } from "../../../functions/status/view/style.ts";

/** `isDark`: Headlamp has a dark theme. */
export const styleOf = (isDark: boolean): string => `
:host { display: block; color-scheme: ${isDark ? "dark" : "light"}; ${isDark ? COLOURS.dark : COLOURS.light} }
${RULES}
.page { background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif; padding: .75rem 1rem 1.5rem; border-radius: 8px; }
.head { border-bottom: 1px solid var(--line); padding-bottom: .75rem; overflow-wrap: anywhere; }
.head h2 { margin-top: 0; }
.head:has(.stopped) ~ .body .phase { color: var(--faint); }
`;
