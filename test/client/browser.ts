import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";

/** The program's name; undefined if this machine has none. */
export const browser = ["chromium", "chromium-browser", "google-chrome"].find((name) => {
  try {
    execFileSync(name, ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
});
if (browser === undefined)
  console.log("no chromium on this machine (apt-get install chromium): the tests in a browser are skipped");

/** Opens pages until it is disposed of. `profile`: an empty folder. */
export function openInBrowser(urls: readonly string[], profile: string): AsyncDisposable {
  const options = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${profile}`];
  const chromium = spawn(browser ?? "", [...options, ...urls], { stdio: "ignore", detached: true });
  return {
    async [Symbol.asyncDispose]() {
      if (chromium.exitCode !== null || chromium.pid === undefined) return;
      process.kill(-chromium.pid, "SIGKILL"); // includes the processes it started
      await once(chromium, "exit");
    },
  };
}
