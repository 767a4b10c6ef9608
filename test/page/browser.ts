import { existsSync, mkdirSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { delimiter, join } from "node:path";
import { defaultDeadlineMs } from "@tapedeck/shared/testing/until";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { browser as program } from "../client/browser.ts";

export { program as browserProgram };

/** A browser for a test file; each context is a separate profile. */
export function launchBrowser(): Promise<Browser> {
  const paths = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, program ?? ""));
  return chromium.launch({ executablePath: paths.find((path) => existsSync(path)) ?? "", args: ["--no-sandbox"] });
}

export type Opened = AsyncDisposable & {
  readonly page: Page;
  readonly context: BrowserContext;
  readonly errors: string[];
};

/**
 * Opens a page in a new profile. `errors`: errors thrown by its scripts, what they write as errors to the console, and
 * violations of the content security policy.
 */
export async function openPage(
  browser: Browser,
  url: string,
  options: Parameters<Browser["newContext"]>[0] = {},
): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(defaultDeadlineMs);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("console", (message) => {
    const text = message.text();
    // A browser reports each answer that is an error, and each lost connection, by itself.
    const isOwn = message.type() === "error" && !/^(Failed to load resource|WebSocket connection to)/.test(text);
    if (isOwn || /Content Security Policy/i.test(text)) errors.push(text);
  });
  await page.goto(url);
  return { page, context, errors, [Symbol.asyncDispose]: () => context.close() };
}

const folder = join(import.meta.dirname, "../../.tapedeck/screenshots");

export async function screenshot(
  page: Page,
  name: string,
  options: { readonly fullPage?: boolean } = {},
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), ...options });
}

/** The serious and critical findings of axe, as "rule: element". */
export async function faultsOf(page: Page): Promise<string[]> {
  // Injected by evaluation, because the page's content security policy blocks foreign scripts.
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => (globalThis as unknown as { axe: typeof axe }).axe.run());
  return found.violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

/** A connection to a server that can be interrupted: connections are then cut and no new one is accepted. */
export type Cable = AsyncDisposable & { readonly address: string; interrupt(): void; restore(): void };

export async function cableTo(server: string): Promise<Cable> {
  const sockets = new Set<Socket>();
  let isInterrupted = false;
  const [host = "", port = ""] = server.split(":");
  const listener = createServer((near) => {
    if (isInterrupted) return void near.resetAndDestroy();
    const far = connect(Number(port), host);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${(listener.address() as AddressInfo).port}`,
    interrupt() {
      isInterrupted = true;
      for (const socket of sockets) socket.resetAndDestroy();
    },
    restore() {
      isInterrupted = false;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
