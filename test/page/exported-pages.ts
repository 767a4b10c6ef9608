import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { startCli } from "tapedeck/testing/cli";
import type { Stack } from "../stack/stack.ts";
import { type Opened, openPage } from "./browser.ts";

/** A folder for exported pages. */
export type ExportedPages = Disposable & {
  path(name: string): string;
  /** Runs the command on a Tapedeck, as its users do; `more`: environment variables. */
  tapedeck(
    on: Stack,
    more: Readonly<Record<string, string>>,
    ...args: string[]
  ): Promise<{ code: number | string; out: string; err: string }>;
};

export function exportedPages(): ExportedPages {
  const folder = mkdtempSync(join(tmpdir(), "exported-pages-"));
  return {
    path: (name) => join(folder, name),
    async tapedeck(on, more, ...args) {
      const env = { TAPEDECK_URL: `http://${on.http}`, TAPEDECK_GRPC_PORT: on.grpc.split(":").at(-1), ...more };
      await using cli = startCli(args, { cwd: folder, env });
      return { code: await cli.ended, out: cli.stdout(), err: cli.stderr() };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Opens a file from disk, without a network. `requests`: the browser's other requests. */
export async function openFile(
  browser: Browser,
  path: string,
  options: Parameters<typeof openPage>[2] = {},
): Promise<Opened & { readonly requests: readonly string[] }> {
  const requests: string[] = [];
  const opened = await openPage(browser, "about:blank", { ...options, offline: true });
  const url = pathToFileURL(path).href;
  opened.context.on("request", (request) => {
    if (request.url().split("#")[0] !== url && !request.url().startsWith("data:")) requests.push(request.url());
  });
  await opened.page.goto(url);
  return { ...opened, requests };
}

/** Navigates from the session to the first of its failed loops. */
export async function openFailedLoop(page: Page): Promise<void> {
  const failed = page
    .getByLabel("Loops")
    .getByRole("link", { name: /^failed/ })
    .last();
  const number = await failed.locator(".number").textContent();
  await failed.click();
  await page.getByRole("link", { name: number ?? "", exact: true }).click();
  await page.getByRole("heading", { name: number ?? "" }).waitFor();
}
