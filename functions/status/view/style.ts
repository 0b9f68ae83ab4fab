/**
 * The style of the status page, dark and light. Its colours have a contrast of 4.5 or more on their ground (WCAG AA).
 */
const COLOURS = {
  light: `--ground: #ffffff; --card: #f6f8fa; --line: #d0d7de; --text: #1f2328; --faint: #59636e; --link: #0550ae;
  --good: #116329; --busy: #7d4e00; --bad: #a40e26; --moving: #0550ae;`,
  dark: `--ground: #0d1117; --card: #161b22; --line: #3d444d; --text: #e6edf3; --faint: #9da7b3; --link: #79c0ff;
  --good: #56d364; --busy: #e3b341; --bad: #ff938a; --moving: #79c0ff;`,
} as const;

export const STYLE = `
:root { color-scheme: light dark; ${COLOURS.light} }
@media (prefers-color-scheme: dark) { :root { ${COLOURS.dark} } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 80rem; padding: 1rem 1.5rem 3rem; background: var(--ground); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; align-items: baseline; border-bottom: 1px solid var(--line); padding-bottom: .75rem; }
header > div { flex-basis: 100%; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1.1rem; margin: 1.75rem 0 .5rem; } h3 { font-size: 1rem; margin: 0 0 .5rem; } h4 { font-size: .9rem; margin: .75rem 0 0; }
#headline { font-size: 1.1rem; font-weight: 600; margin: 0; }
button { font: inherit; color: inherit; background: var(--card); border: 1px solid var(--faint); border-radius: 6px; padding: .15rem .75rem; margin-left: auto; }
p { margin: .25rem 0; } ul, ol { margin: .25rem 0; padding-left: 1.25rem; }
dl { display: flex; flex-wrap: wrap; gap: .25rem 2rem; margin: .25rem 0; } dl div { display: flex; gap: .5rem; } dt { color: var(--faint); } dd { margin: 0; }
.group { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1rem; margin: .75rem 0; }
.group, header, .scroll { overflow-wrap: break-word; } time { white-space: nowrap; } .name { display: inline-block; max-width: 100%; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0; border-top: 1px solid var(--line); font-weight: normal; }
thead th { color: var(--faint); border-top: 0; white-space: nowrap; } tbody th { font-weight: 600; white-space: nowrap; } tbody th .faint { white-space: normal; }
td ul { padding-left: 0; list-style: none; margin: 0; }
.pods { display: flex; flex-wrap: wrap; gap: .25rem .4rem; }
.pods li { border: 1px solid currentColor; border-radius: 6px; padding: 0 .45rem; white-space: nowrap; }
.mono { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9em; } .new { font-weight: 700; }
.faint { color: var(--faint); font-weight: normal; } .good { color: var(--good); } .busy { color: var(--busy); } .bad, .problem { color: var(--bad); }
.phase { border: 1px solid currentColor; border-radius: 99px; padding: 0 .6rem; font-size: .85rem; font-weight: 600; }
.ready { color: var(--good); } .rollingout { color: var(--moving); } .waiting, .paused, .unknown { color: var(--faint); } .blocked { color: var(--bad); }
.done { display: flex; flex-wrap: wrap; gap: .25rem .75rem; align-items: center; } progress { accent-color: var(--moving); width: 12rem; max-width: 100%; }
header:has(.stopped) ~ main .phase { color: var(--faint); }
/* A phone: a row below the other, each cell with the name of its column. */
@media (max-width: 40rem) {
  body { padding: .75rem .75rem 2rem; } .scroll { overflow-x: visible; }
  table, tbody, tr, tbody th, td { display: block; } thead { display: none; } tbody th { white-space: normal; }
  tr { border-top: 1px solid var(--line); padding: .35rem 0; } th, td { border-top: 0; padding: .1rem 0; }
  td::before { content: attr(data-label) ": "; color: var(--faint); } .pods li { white-space: normal; }
}
.fix { margin: .4rem 0; } .fix p { margin: .3rem 0 .1rem; }
.command { display: flex; gap: .5rem; align-items: flex-start; margin: .15rem 0; }
code { font: .87em/1.5 ui-monospace, Menlo, Consolas, monospace; background: var(--ground); border: 1px solid var(--line); border-radius: 6px;
  padding: .2rem .5rem; white-space: pre-wrap; overflow-wrap: anywhere; min-width: 0; }
.copy { display: none; margin: 0; flex: none; font-size: .8rem; } .copy::after { content: "Copy"; } .copied::after { content: "Copied"; } .live .copy { display: block; }
.holds { list-style: none; padding: .1rem 0 .1rem .75rem; border-left: 4px solid var(--line); }
@media (prefers-reduced-motion: no-preference) { .changed { animation: changed 1.5s; } @keyframes changed { from { border-color: var(--link); } } }
`;
