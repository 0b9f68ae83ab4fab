/** Debian's Chromium, or one that CHROMIUM names, for tests in a real browser. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const PATH = process.env["CHROMIUM"] ?? "/usr/bin/chromium";

/** False, or why tests in a browser are left out. */
export const WITHOUT_BROWSER = existsSync(PATH)
  ? false
  : `there is no browser: apt-get install chromium, or set CHROMIUM to the path of one`;

/** Root may not use the browser's sandbox; the pages are our own. */
export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: PATH, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
